import { send, useService } from "../../../support/service.ts";

const service = useService();
afterEach(() => {
  delete process.env.CORS_ORIGINS;
});

const app = "https://app.example.com";

async function requestFrom(origin: string, method: "GET" | "OPTIONS", credential: string, path = "/v1/projects") {
  const headers = { origin, authorization: `Bearer ${credential}` };
  return send(`${service.baseUrl}${path}`, { method, headers });
}

describe("with CORS_ORIGINS set", () => {
  beforeEach(() => {
    process.env.CORS_ORIGINS = `${app}, http://localhost:5173`;
  });

  test.each([app, "http://localhost:5173"])(
    "allows a page of %s to send a credential and to read the response",
    async (origin) => {
      const { token } = service.user();
      const preflight = await requestFrom(origin, "OPTIONS", token);
      expect(preflight.status).toBe(204);
      expect(preflight.headers.get("access-control-allow-origin")).toBe(origin);
      expect(preflight.headers.get("access-control-allow-headers")).toBe(
        "Authorization,Content-Type,Idempotency-Key,MCP-Protocol-Version,Mcp-Method,Mcp-Name,traceparent,baggage,sentry-trace",
      );
      expect(preflight.headers.get("access-control-allow-methods")).toBe("GET,POST,PATCH,DELETE");
      expect(preflight.headers.get("access-control-max-age")).toBe("7200");
      const response = await requestFrom(origin, "GET", token);
      expect(response.status).toBe(200);
      expect(response.headers.get("access-control-allow-origin")).toBe(origin);
      expect(response.headers.get("access-control-expose-headers")).toBe(
        "x-request-id, Link, Retry-After, WWW-Authenticate",
      );
    },
  );

  test.each([
    ["the response to a rejected credential", 401, "not-a-token", "/v1/projects"],
    ["the response to an unknown route", 404, "", "/v1/nothing"],
  ])("allows a page to read %s", async (_, status, credential, path) => {
    const response = await requestFrom(app, "GET", credential, path);
    expect(response.status).toBe(status);
    expect(response.headers.get("access-control-allow-origin")).toBe(app);
  });

  test.each(["https://evil.example", `${app}.evil.example`, "null", "HTTPS://APP.EXAMPLE.COM"])(
    "does not allow a page of %s",
    async (origin) => {
      for (const method of ["GET", "OPTIONS"] as const) {
        const response = await requestFrom(origin, method, service.user().token);
        expect(response.headers.get("access-control-allow-origin")).toBeNull();
        expect(response.headers.get("vary")).toBe("Origin");
      }
    },
  );
});

test("without CORS_ORIGINS no page is allowed, and OPTIONS returns 405", async () => {
  const { token } = service.user();
  const response = await requestFrom(app, "GET", token);
  expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  expect((await requestFrom(app, "OPTIONS", token)).status).toBe(405);
});
