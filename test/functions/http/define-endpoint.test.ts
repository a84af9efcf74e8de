import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import { fromSources } from "../../../bin/local/lambda.ts";
import { handler as createKey } from "../../../functions/api-keys/create.ts";
import { handler as deleteKey } from "../../../functions/api-keys/delete.ts";
import { handler as listKeys } from "../../../functions/api-keys/list.ts";
import { defineEndpoint } from "../../../functions/http/define-endpoint.ts";
import type { EndpointRow } from "../../../functions/manifest/endpoints.ts";
import { logSink } from "../../../functions/platform/log.ts";
import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { type Response, send, startTestService, type TestService } from "../../support/service.ts";
import { rowsWithBody } from "../../support/valid-bodies.ts";

let service: TestService;
let admin: ReturnType<TestService["user"]>;
/** The ids in the paths: a project with a webhook. */
let ids: { project_id: string; webhook_id: string };
const logged: string[] = [];

beforeAll(async () => {
  service = await startTestService();
  logSink.write = (level, line) => void logged.push(JSON.stringify({ level, ...line }));
  admin = service.user();
  const project_id = await service.project(admin.userId);
  const webhook = { url: "https://example.com/hook", events: ["deploy.failed"] };
  const { body } = await admin.api.post(`/v1/projects/${project_id}/webhooks`, webhook);
  ids = { project_id, webhook_id: body.data.id };
});
beforeEach(() => void logged.splice(0));
afterEach(restoreAws);
afterAll(() => service.stop());

const KB = 1024;
function post({ method, path }: EndpointRow, body: string | Buffer, contentType?: string): Promise<Response> {
  const headers: Record<string, string> = contentType === undefined ? {} : { "content-type": contentType };
  return send(service.baseUrl + path.replace("{project_id}", ids.project_id).replace("{webhook_id}", ids.webhook_id), {
    method,
    // Given bytes, `fetch` adds no content type of its own.
    body: new Uint8Array(Buffer.from(body)),
    headers: { authorization: `Bearer ${admin.token}`, ...headers },
  });
}

const codeOf = ({ status, body }: Response) => ({ status, code: body.error?.code });

describe.each(rowsWithBody)("the body of $method $path", (row) => {
  const { body: example, required, status: successStatus } = row.example;
  const valid = JSON.stringify(example);
  const [firstField = ""] = Object.keys(example);

  test.each([
    ["white space", "  "],
    ["a text that is no JSON", "name=ci"],
    ["JSON that breaks off", valid.slice(0, -1)],
    ["JSON with more behind it", `${valid}{}`],
    ["JSON with a comma too many", valid.replace("}", ",}")],
    ["JSON in single quotes", valid.replaceAll('"', "'")],
    ["JSON with a comment", `${valid}// comment`],
    ["a byte order mark", `\ufeff${valid}`],
    ["NaN", "NaN"],
  ])("cannot be %s", async (_title, body) => {
    expect(codeOf(await post(row, body, "application/json"))).toEqual({ status: 400, code: "invalid_json" });
  });

  test.each([
    ["an array", `[${valid}]`],
    ["null", "null"],
    ["true", "true"],
    ["a number", "1"],
    ["a string", JSON.stringify(valid)],
    ["an array of arrays, thirty thousand deep", "[".repeat(30_000) + "]".repeat(30_000)],
  ])("cannot be %s instead of an object", async (_title, body) => {
    const response = await post(row, body, "application/json");
    expect(codeOf(response)).toEqual({ status: 400, code: "validation_error" });
    expect(response.body.error.details).toEqual([{ path: "", message: "must be a JSON object" }]);
  });

  test.each([
    ["nothing", undefined, ""],
    ["nothing, called JSON", "application/json", ""],
    ["an empty object", "application/json", "{}"],
  ])("may be %s where no field is required", async (_title, contentType, body) => {
    const response = await post(row, body, contentType);
    const missing = required.map((path) => ({ path, message: "is required" }));
    if (missing.length > 0) expect(response.body.error).toMatchObject({ code: "validation_error", details: missing });
    else if (row.method === "PATCH") expect(response.body.error.details).toMatchObject([{ path: "" }]);
    else expect(response.status).toBe(successStatus);
  });

  test.each(["extra", "__proto__", "constructor", "toString", "", "user_id", "id"])(
    "cannot hold the unknown field %j",
    async (name) => {
      const body = valid.replace("{", `{${JSON.stringify(name)}:{"isAdmin":true},`);
      const response = await post(row, body, "application/json");
      expect(codeOf(response)).toEqual({ status: 400, code: "validation_error" });
      expect(response.body.error.details).toEqual([{ path: name, message: "is not a known field" }]);
    },
  );

  test("gets a short answer to thousands of unknown fields", async () => {
    const names = Array.from({ length: 4000 }, (_, index) => [`${"x".repeat(5)}${index}`, 0]);
    const response = await post(row, JSON.stringify({ ...example, ...Object.fromEntries(names) }), "application/json");
    expect(response.status).toBe(400);
    expect(JSON.stringify(response.body).length).toBeLessThan(500);
  });

  test.each([
    ["null", null],
    ["an object", {}],
    ["a list in a list", [[]]],
  ])("cannot hold %s in its first field", async (_title, value) => {
    const response = await post(row, JSON.stringify({ ...example, [firstField]: value }), "application/json");
    expect(codeOf(response)).toEqual({ status: 400, code: "validation_error" });
    expect(response.body.error.details).toEqual([{ path: firstField, message: expect.any(String) }]);
  });

  test.each([undefined, "", "text/plain", "text/json", "application/jsonx", "application/x-www-form-urlencoded"])(
    "cannot come as content type %j",
    async (contentType) => {
      expect(codeOf(await post(row, valid, contentType))).toEqual({ status: 415, code: "unsupported_media_type" });
    },
  );

  test.each([
    "application/json",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
  ])("may come as content type %j", async (contentType) => {
    expect((await post(row, valid, contentType)).status).toBe(successStatus);
  });

  test("may be 64 KB, and not one byte more", async () => {
    const body = valid.padEnd(64 * KB);
    expect((await post(row, body, "application/json")).status).toBe(successStatus);
    expect(codeOf(await post(row, `${body} `, "application/json"))).toEqual({ status: 413, code: "payload_too_large" });
  });

  test("is measured in bytes, not in characters", async () => {
    const body = JSON.stringify({ ...example, [firstField]: "ä".repeat(40 * KB) });
    expect(codeOf(await post(row, body, "application/json"))).toEqual({ status: 413, code: "payload_too_large" });
  });

  test("is refused by the gateway when it is larger than 10 MB", async () => {
    const body = valid.padEnd(10 * KB * KB + 1);
    expect(codeOf(await post(row, body, "application/json"))).toEqual({ status: 413, code: "payload_too_large" });
  });

  test("may come base64-encoded from the gateway, and is measured decoded", async () => {
    const handler = (await fromSources(row.file)) as typeof createKey;
    const encoded = (text: string) => ({ body: Buffer.from(text).toString("base64"), isBase64Encoded: true });
    const pathParameters = ids;
    const accepted = await invoke(handler, { ...encoded(valid.padEnd(64 * KB)), pathParameters });
    expect(accepted.statusCode).toBe(successStatus);
    expect((await invoke(handler, { ...encoded(valid.padEnd(64 * KB + 1)), pathParameters })).statusCode).toBe(413);
    expect((await invoke(handler, { ...encoded("garbage"), pathParameters })).statusCode).toBe(400);
  });
});

/** Calls a handler as API Gateway would, past the authorizer. */
async function invoke(
  handler: typeof createKey,
  event: Partial<APIGatewayProxyEvent>,
  authorizer: object | null = { principalId: admin.userId, userId: admin.userId, authType: "jwt" },
): Promise<APIGatewayProxyResult> {
  const requestContext = { requestId: "request-1", domainName: "api.example.com", path: "/v1", authorizer };
  const headers = { "CONTENT-type": "application/json" };
  const request = { headers, pathParameters: null, body: null, isBase64Encoded: false, requestContext, ...event };
  return handler(request as APIGatewayProxyEvent, {} as Context);
}

/** Lets no DynamoDB call through until the test is over. */
const breakStore = (error: unknown): void => interceptDynamo(() => Promise.reject(error));

const named = (name: string, more: object = {}) =>
  Object.assign(new Error("internal detail: 10.1.2.3 arn:aws:dynamodb"), { name, ...more });

const outages: [title: string, error: unknown][] = [
  ["a connection refused", named("Error", { code: "ECONNREFUSED" })],
  ["a connection reset", named("Error", { code: "ECONNRESET" })],
  ["a name that does not resolve", named("Error", { code: "ENOTFOUND" })],
  ["a timeout", named("TimeoutError")],
  ["throttling", named("ThrottlingException", { $fault: "client" })],
  ["too little throughput", named("ProvisionedThroughputExceededException", { $fault: "client" })],
  ["a fault of DynamoDB", named("InternalServerError", { $fault: "server" })],
  [
    "a transaction cancelled by throttling",
    new TransactionCanceledException({
      message: "internal detail",
      $metadata: {},
      CancellationReasons: [{ Code: "ThrottlingError" }],
    }),
  ],
];

const faults: [title: string, error: unknown][] = [
  ["a missing grant", named("AccessDeniedException", { $fault: "client" })],
  ["a malformed request", named("ValidationException", { $fault: "client" })],
  ["a missing table", named("ResourceNotFoundException", { $fault: "client" })],
  ["a bug", new TypeError("internal detail: cannot read properties of undefined")],
  ["something thrown that is no error", "internal detail"],
];

describe.each([
  ["an outage", 503, "service_unavailable", outages],
  ["a fault of our own", 500, "internal_error", faults],
])("%s", (_kind, status, code, errors) => {
  test.each(errors)(`is told as ${status} without details: %s`, async (_title, error) => {
    breakStore(error);
    for (const handler of [listKeys, createKey]) {
      const result = await invoke(handler as typeof createKey, { body: '{"name":"my key name"}' });
      expect(result.statusCode).toBe(status);
      expect(JSON.parse(result.body)).toEqual({
        error: { code, message: expect.not.stringContaining("internal detail"), request_id: "request-1" },
      });
      expect(result.headers?.["Retry-After"]).toBe(status === 503 ? "1" : undefined);
      expect(JSON.stringify(result)).not.toContain("internal detail");
    }
  });

  test(`leaves one line in the log, with the request id and without the body, at ${status}`, async () => {
    breakStore(errors[0]?.[1]);
    await invoke(createKey, { body: '{"name":"my key name"}' });
    expect(logged).toHaveLength(1);
    const line = JSON.parse(logged[0] ?? "");
    expect(line).toMatchObject({ level: "error", request_id: "request-1" });
    expect(line.error.message).toContain("internal detail");
    expect(logged[0]).not.toContain("my key name");
  });
});

test.each([
  ["no context of the authorizer", null],
  ["a context without a user", { authType: "jwt" }],
  ["a context of an unknown kind of credential", { userId: "user-1", authType: "other" }],
])("runs nothing as nobody: %s", async (_title, authorizer) => {
  const { statusCode, body } = await invoke(listKeys as typeof createKey, {}, authorizer);
  expect({ statusCode, code: JSON.parse(body).error?.code }).toEqual({ statusCode: 500, code: "internal_error" });
});

test("headers keep every answer out of caches and name its request", async () => {
  const headers = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Strict-Transport-Security": "max-age=63072000",
    "x-request-id": "request-1",
  };
  const created = await invoke(createKey, { body: '{"name":"ci"}' });
  expect(created.headers).toEqual({ ...headers, "Content-Type": "application/json" });
  const refused = await invoke(createKey, { body: "{}" });
  expect(refused.headers).toEqual({ ...headers, "Content-Type": "application/json" });
  const pathParameters = { id: JSON.parse(created.body).data.id };
  const deleted = await invoke(deleteKey as typeof createKey, { pathParameters });
  expect(deleted).toEqual({ statusCode: 204, body: "", headers });
});

test("a handler without a row is refused when it is loaded", () => {
  expect(() => defineEndpoint("GET /v1/nothing" as "GET /v1/projects", { run: () => Promise.reject() })).toThrow(
    "no row for GET /v1/nothing",
  );
});
