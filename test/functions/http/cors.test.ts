import { send, startTestService, type TestService } from "../../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());
afterEach(() => {
  delete process.env.CORS_ORIGINS;
});

const app = "https://app.example.com";

async function askedFrom(origin: string, method: "GET" | "OPTIONS", credential: string, path = "/v1/projects") {
  const headers = { origin, authorization: `Bearer ${credential}` };
  return send(`${service.baseUrl}${path}`, { method, headers });
}

describe("where the stage names the origins of pages", () => {
  beforeEach(() => {
    process.env.CORS_ORIGINS = `${app}, http://localhost:5173`;
  });

  test.each([app, "http://localhost:5173"])(
    "a page of %s may ask, send its credential and read the answer",
    async (origin) => {
      const { token } = service.user();
      const before = await askedFrom(origin, "OPTIONS", token);
      expect(before.status).toBe(204);
      expect(before.headers.get("access-control-allow-origin")).toBe(origin);
      expect(before.headers.get("access-control-allow-headers")).toBe("Authorization,Content-Type");
      expect(before.headers.get("access-control-allow-methods")).toBe("GET,POST,PATCH,DELETE");
      const answer = await askedFrom(origin, "GET", token);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
      expect(answer.headers.get("access-control-expose-headers")).toContain("x-request-id");
    },
  );

  test.each([
    ["a refused credential", 401, "not-a-token", "/v1/projects"],
    ["an unknown route", 404, "", "/v1/nothing"],
  ])("a page may read %s", async (_, status, credential, path) => {
    const answer = await askedFrom(app, "GET", credential, path);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("access-control-allow-origin")).toBe(app);
  });

  test.each(["https://evil.example", `${app}.evil.example`, "null", "HTTPS://APP.EXAMPLE.COM"])(
    "a page of %s may not",
    async (origin) => {
      for (const method of ["GET", "OPTIONS"] as const) {
        const answer = await askedFrom(origin, method, service.user().token);
        expect(answer.headers.get("access-control-allow-origin")).toBeNull();
        expect(answer.headers.get("vary")).toBe("Origin");
      }
    },
  );
});

test("where it names none, no page may, and OPTIONS is a method like any other", async () => {
  const { token } = service.user();
  const answer = await askedFrom(app, "GET", token);
  expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  expect((await askedFrom(app, "OPTIONS", token)).status).toBe(405);
});
