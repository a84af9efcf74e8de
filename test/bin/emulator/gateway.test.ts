import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import type { APIGatewayProxyEvent } from "aws-lambda";
import { createGateway } from "../../../bin/emulator/gateway.ts";
import { type LambdaHandler, LambdaTimeout } from "../../../bin/emulator/lambda.ts";
import { logSink } from "../../../functions/foundation/platform/log.ts";
import { listening } from "../../support/listening.ts";

/* The local gateway does what API Gateway does. The handlers are stubs, so that every response is the gateway's own. */

const project = "01930000-0000-7000-8000-00000000d301";
const errorPattern = (code: string) => ({
  error: { code, message: expect.any(String), request_id: expect.any(String) },
});

let server: http.Server;
let port: number;
let authorize: LambdaHandler;
let handle: LambdaHandler;
let invoked: string[];
let lines: string[];

beforeAll(async () => {
  // Stubs per function, so that a test can replace what they do.
  server = await createGateway(async (file) => async (event, context) => {
    invoked.push(file);
    return file === "auth-authorizer" ? authorize(event, context) : handle(event, context);
  });
  port = Number(new URL(await listening(server)).port);
});
beforeEach(() => {
  invoked = [];
  lines = [];
  logSink.write = (_, line) => void lines.push(JSON.stringify(line));
  authorize = async () =>
    policy("Allow", { userId: "u", authType: "jwt", attempts: 3, isTest: true, absent: undefined });
  handle = async () => ({ statusCode: 200, headers: { "Content-Type": "application/json" }, body: '{"data":[]}' });
});

const policy = (Effect: "Allow" | "Deny", context: Record<string, unknown>) => ({
  principalId: "u",
  policyDocument: { Version: "2012-10-17", Statement: [{ Effect, Action: "execute-api:Invoke", Resource: "*" }] },
  context,
});

interface Reply {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
}

const authorized = { Authorization: "Bearer t" };

/** @param headers an array of names and values may repeat a name */
async function call(
  method: string,
  path: string,
  headers: http.OutgoingHttpHeaders | string[] = authorized,
  body = "",
) {
  const withHost = Array.isArray(headers) ? ["Host", `127.0.0.1:${port}`, ...headers] : headers;
  const request = http.request({ host: "127.0.0.1", port, method, path, headers: withHost, agent: false });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, text } satisfies Reply;
}

/** The event that a handler gets for a request. */
async function eventOf(...args: Parameters<typeof call>): Promise<APIGatewayProxyEvent> {
  let event: unknown;
  handle = async (received) => {
    event = received;
    return { statusCode: 200, body: "" };
  };
  expect((await call(...args)).status).toBe(200);
  return event as APIGatewayProxyEvent;
}

/** Sends raw bytes, each part after the response to the part before, and returns all until the connection closes. */
async function sendRaw(first: string, ...rest: string[]): Promise<string> {
  const socket = net.connect({ host: "127.0.0.1", port });
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
    const next = rest.shift();
    if (next !== undefined) socket.write(next);
  });
  socket.write(first);
  await once(socket, "close");
  return text;
}

const openConnections = () =>
  new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );

describe("the event of a handler", () => {
  test("has the route, the path parameters, the query and the body", async () => {
    const path = `/v1/projects/${project}/webhooks/w%2F1/deliveries`;
    const event = await eventOf("GET", `${path}?status=failed?&limit=1&limit=2`, authorized);
    expect(event).toMatchObject({
      resource: "/v1/projects/{project_id}/webhooks/{webhook_id}/deliveries",
      path,
      httpMethod: "GET",
      pathParameters: { project_id: project, webhook_id: "w/1" },
      queryStringParameters: { status: "failed?", limit: "2" },
      multiValueQueryStringParameters: { status: ["failed?"], limit: ["1", "2"] },
      body: null,
      isBase64Encoded: false,
    });
    const created = await eventOf("POST", "/v1/api-keys", authorized, '{"name":"ä"}');
    expect(created.body).toBe('{"name":"ä"}');
  });

  test("has null, not an empty object, where there is no query and no path parameter", async () => {
    for (const path of ["/v1/projects", "/v1/projects?"]) {
      expect(await eventOf("GET", path)).toMatchObject({
        pathParameters: null,
        queryStringParameters: null,
        multiValueQueryStringParameters: null,
        stageVariables: null,
      });
    }
  });

  test("has the last value of a repeated header, and all of them in multiValueHeaders", async () => {
    const headers = ["Authorization", "Bearer t", "X-Tag", "one", "X-Tag", "two"];
    const event = await eventOf("GET", "/v1/projects", headers);
    expect(event.headers["X-Tag"]).toBe("two");
    expect(event.multiValueHeaders["X-Tag"]).toEqual(["one", "two"]);
    expect(event.multiValueHeaders.Authorization).toEqual(["Bearer t"]);
  });

  test("has the authorizer's context, with every value as text", async () => {
    const { requestContext } = await eventOf("GET", "/v1/projects");
    expect(requestContext.authorizer).toEqual({
      principalId: "u",
      userId: "u",
      authType: "jwt",
      attempts: "3",
      isTest: "true",
    });
    expect(requestContext).toMatchObject({ stage: "local", httpMethod: "GET", resourcePath: "/v1/projects" });
    expect(requestContext.identity.sourceIp).toBe("127.0.0.1");
  });
});

describe("the gateway's own response", () => {
  test.each<[string, string, string, object, number, string]>([
    ["an unknown path", "GET", "/v1/nothing", authorized, 404, "not_found"],
    ["an unknown path without a credential", "GET", "/", {}, 404, "not_found"],
    ["another method of a path", "PUT", "/v1/projects", authorized, 405, "method_not_allowed"],
    ["no credential", "GET", "/v1/projects", {}, 401, "unauthorized"],
    ["an empty credential", "GET", "/v1/projects", { Authorization: "" }, 401, "unauthorized"],
  ])("to %s invokes no function", async (_, method, path, headers, status, code) => {
    const reply = await call(method, path, headers as http.OutgoingHttpHeaders);
    expect({ status: reply.status, body: JSON.parse(reply.text) }).toEqual({ status, body: errorPattern(code) });
    expect(reply.headers).toMatchObject({
      "content-type": "application/json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": JSON.parse(reply.text).error.request_id,
    });
    expect(invoked).toEqual([]);
  });

  test("to HEAD is 405 with the methods of the path and no body", async () => {
    const { status, headers, text } = await call("HEAD", "/v1/api-keys");
    expect({ status, allow: headers.allow, text }).toEqual({ status: 405, allow: "POST, GET", text: "" });
    expect(await call("HEAD", "/v1/nothing")).toMatchObject({ status: 404, text: "" });
    // Not the method of /v1/api-keys/{id}.
    expect((await call("DELETE", "/v1/api-keys/current")).headers.allow).toBe("GET");
    expect(invoked).toEqual([]);
  });

  test("to a policy that allows nothing is 401", async () => {
    for (const Statement of [[], [{ Effect: "deny" }]]) {
      authorize = async () => ({ principalId: "u", policyDocument: { Statement }, context: {} });
      expect((await call("GET", "/v1/projects")).status).toBe(401);
    }
    expect(invoked).toEqual(["auth-authorizer", "auth-authorizer"]);
  });

  test.each<[string, LambdaHandler]>([
    ["throws", async () => Promise.reject(new Error("table api-keys is down"))],
    ["returns nothing", async () => undefined],
  ])("is 503, never 401, when the authorizer %s", async (_, authorizer) => {
    authorize = authorizer;
    const { status, headers, text } = await call("GET", "/v1/projects");
    expect({ status, code: JSON.parse(text).error.code }).toEqual({ status: 503, code: "service_unavailable" });
    expect(headers["retry-after"]).toBe("1");
    expect(text).not.toContain("api-keys");
    expect(invoked).toEqual(["auth-authorizer"]);
  });

  test.each<[string, number, string, LambdaHandler]>([
    ["throws", 500, "internal_error", async () => Promise.reject(new TypeError("secret table deliveries"))],
    ["returns no status", 500, "internal_error", async () => ({ body: "secret table deliveries" })],
    ["returns nothing", 500, "internal_error", async () => undefined],
    [
      "is too slow",
      503,
      "service_unavailable",
      async () => Promise.reject(new LambdaTimeout("secret table deliveries took too long")),
    ],
  ])("when a handler %s is %i %s, without the text of the fault", async (_, status, code, handler) => {
    handle = handler;
    const reply = await call("GET", "/v1/projects");
    expect({ status: reply.status, code: JSON.parse(reply.text).error.code }).toEqual({ status, code });
    expect(reply.text).not.toMatch(/secret|deliveries|Error/);
    expect(lines.join()).toContain("listProjects failed: ");
  });

  test("to a body over 10 MB is 413, after the client has sent all of it", async () => {
    const limit = 10 * 1024 * 1024;
    const { body } = await eventOf("POST", "/v1/api-keys", authorized, "x".repeat(limit));
    expect(body?.length).toBe(limit);
    invoked = [];
    const { status, text } = await call("POST", "/v1/api-keys", authorized, "x".repeat(limit + 1));
    expect({ status, code: JSON.parse(text).error.code }).toEqual({ status: 413, code: "payload_too_large" });
    expect(invoked).toEqual([]);
  });

  test.each([
    ["a request that is not HTTP", "hello\r\n\r\n", "400 Bad Request", "validation_error"],
    [
      "headers over 64 KB",
      `GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Large: ${"x".repeat(70_000)}\r\n\r\n`,
      "413 Payload Too Large",
      "payload_too_large",
    ],
  ])("to %s closes the connection", async (_, bytes, status, code) => {
    const text = await sendRaw(bytes);
    expect(text.startsWith(`HTTP/1.1 ${status}\r\n`)).toBe(true);
    const [head = "", body = ""] = text.split("\r\n\r\n");
    expect(JSON.parse(body)).toEqual(errorPattern(code));
    expect(head).toContain(`Content-Length: ${Buffer.byteLength(body)}`);
    expect(head).toContain("Connection: close");
  });
});

test("the authorizer has 10 s and an endpoint 29 s, the longest that API Gateway waits", async () => {
  const secondsLeft: number[] = [];
  authorize = async (_, context) => {
    secondsLeft.push(Math.ceil(context.getRemainingTimeInMillis() / 1000));
    return policy("Allow", { userId: "u" });
  };
  handle = async (_, context) => {
    secondsLeft.push(Math.ceil(context.getRemainingTimeInMillis() / 1000));
    return { statusCode: 204 };
  };
  expect((await call("GET", "/v1/projects")).status).toBe(204);
  expect(secondsLeft).toEqual([10, 29]);
});

test("responses carry CORS headers for an allowed origin only, errors included", async () => {
  process.env.CORS_ORIGINS = "https://dashboard.example.com";
  try {
    for (const headers of [authorized, {}]) {
      const from = (Origin: string) => call("GET", "/v1/projects", { ...headers, Origin });
      const allowed = (await from("https://dashboard.example.com")).headers;
      expect(allowed["access-control-allow-origin"]).toBe("https://dashboard.example.com");
      expect(allowed.vary).toBe("Origin");
      expect((await from("https://attacker.example")).headers).not.toHaveProperty("access-control-allow-origin");
    }
  } finally {
    delete process.env.CORS_ORIGINS;
  }
});

describe("a throttle in the row of an endpoint", () => {
  const webhook = `/v1/projects/${project}/webhooks/w`;

  test("answers the requests with a credential above it with 429, and does not call the authorizer for them", async () => {
    // A request without a credential takes no token.
    for (let count = 0; count < 10; count++) expect((await call("POST", `${webhook}/recover`, {})).status).toBe(401);
    const replies: Reply[] = [];
    // The bucket holds 10 tokens and gets 3 a second, so a request without one follows soon.
    while (replies.at(-1)?.status !== 429 && replies.length < 1_000)
      replies.push(await call("POST", `${webhook}/recover`, authorized, "{}"));
    const rejected = replies.at(-1);
    expect(replies.length).toBeGreaterThan(10);
    expect(JSON.parse(rejected?.text ?? "")).toEqual(errorPattern("rate_limited"));
    expect(rejected?.headers["retry-after"]).toBe("1");
    const accepted = replies.length - 1;
    expect(invoked.filter((file) => file === "auth-authorizer")).toHaveLength(accepted);
    expect(invoked.filter((file) => file === "recoverDeliveries")).toHaveLength(accepted);
  });

  test("is not in that of an endpoint without a credential: strangers could keep it used up", async () => {
    for (let count = 0; count < 50; count++) expect((await call("POST", "/v1/credentials/revoke")).status).toBe(200);
  });
});

describe("a connection", () => {
  test("stays open while it is idle, and the response does not say for how long a client may keep it", async () => {
    const accepted = once(server, "connection");
    const agent = new http.Agent({ keepAlive: true });
    const request = http.request({ host: "127.0.0.1", port, path: "/v1/projects", headers: authorized, agent }).end();
    const [[response], [connection]] = await Promise.all([once(request, "response"), accepted]);
    await once(response.resume(), "end");
    expect(response.headers).not.toHaveProperty("keep-alive");
    // Absent or 0: the server does not close it after a time.
    expect((connection as net.Socket).timeout ?? 0).toBe(0);
    agent.destroy();
  });

  const get = (...headers: string[]) =>
    ["GET /v1/projects HTTP/1.1", "Host: x", "Authorization: Bearer t", ...headers, "", ""].join("\r\n");

  test("with an upgrade request gets a normal response and is closed on request", async () => {
    const upgrade = get("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13");
    const text = await sendRaw(upgrade, get("Connection: close"));
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200"]);
    expect(await openConnections()).toBe(0);
  });

  test("serves the next request after a response that did not wait for the body", async () => {
    process.env.CORS_ORIGINS = "https://dashboard.example.com";
    try {
      const preflight = ["OPTIONS /v1/projects HTTP/1.1", "Host: x", "Content-Length: 70000", "", ""].join("\r\n");
      const text = await sendRaw(`${preflight}${"x".repeat(70_000)}`, get("Connection: close"));
      expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 204", "HTTP/1.1 200"]);
      expect(await openConnections()).toBe(0);
    } finally {
      delete process.env.CORS_ORIGINS;
    }
  });

  test("is dropped without an error when the client disconnects in the middle of a body", async () => {
    const socket = net.connect({ host: "127.0.0.1", port });
    socket.write("POST /v1/api-keys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nContent-Length: 100\r\n\r\nhalf");
    await once(socket, "connect");
    while ((await openConnections()) === 0) await new Promise(setImmediate);
    socket.resetAndDestroy();
    while ((await openConnections()) > 0) await new Promise(setImmediate);
    expect(invoked).toEqual([]);
    expect((await call("GET", "/v1/projects")).status).toBe(200);
  });
});
