import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import { fromSources } from "../../../../bin/emulator/lambda.ts";
import type { EndpointRow } from "../../../../functions/foundation/manifest/endpoints.ts";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { handler as createKey } from "../../../../functions/identity/api-keys/create.ts";
import { handler as deleteKey } from "../../../../functions/identity/api-keys/delete.ts";
import { handler as listKeys } from "../../../../functions/identity/api-keys/list.ts";
import { interceptDynamo } from "../../../support/aws-calls.ts";
import { type Response, send, type TestService, useService } from "../../../support/service.ts";
import { EXAMPLE_CODE, givenSignIn } from "../../../support/sign-ins.ts";
import { rowsWithBody } from "../../../support/valid-bodies.ts";

const service = useService();
let admin: ReturnType<TestService["user"]>;
/** The ids for the paths: a project with its webhook and service account, and a key. */
let ids: Record<string, string>;
/** A key of the service account. */
let accountKeyId: string;
const logged: string[] = [];

beforeAll(async () => {
  logSink.write = (level, line) => void logged.push(JSON.stringify({ level, ...line }));
  admin = service.user();
  const project_id = await service.project(admin.userId);
  const webhook = { url: "https://example.com/hook", events: ["deploy.failed"] };
  const { body } = await admin.api.post(`/v1/projects/${project_id}/webhooks`, webhook);
  const account = { name: "deploy", role: "viewer" };
  const accounts = `/v1/projects/${project_id}/service-accounts`;
  const service_account_id = (await admin.api.post(accounts, account)).body.data.id;
  const key = await admin.api.post("/v1/api-keys", { name: "ci" });
  accountKeyId = (await admin.api.post(`${accounts}/${service_account_id}/api-keys`, { name: "ci" })).body.data.id;
  ids = { project_id, webhook_id: body.data.id, service_account_id, id: key.body.data.id };
});
beforeEach(async () => {
  await givenSignIn(EXAMPLE_CODE, admin.userId);
  logged.splice(0);
});

test("a stranger gets the 404 of a project also for a body that is not valid", async () => {
  const { status, body } = await service.user().api.post(`/v1/projects/${ids.project_id}/webhooks`, { url: 1 });
  expect({ status, code: body.error.code }).toEqual({ status: 404, code: "not_found" });
});

const KB = 1024;
const idsOf = ({ path }: Pick<EndpointRow, "path">): Record<string, string> =>
  path.includes("{service_account_id}") ? { ...ids, id: accountKeyId } : ids;

function post({ method, path }: EndpointRow, body: string | Buffer, contentType?: string): Promise<Response> {
  const headers: Record<string, string> = contentType === undefined ? {} : { "content-type": contentType };
  return send(service.baseUrl + path.replaceAll(/\{(\w+)\}/g, (_, name: string) => idsOf({ path })[name] ?? ""), {
    method,
    // For a body of bytes, `fetch` adds no content type.
    body: new Uint8Array(Buffer.from(body)),
    headers: { authorization: `Bearer ${admin.token}`, ...headers },
  });
}

const codeOf = ({ status, body }: Response) => ({ status, code: body.error?.code });

/** Printed when a body fails these tests. */
const hint =
  "A body schema is created with `fields` and the texts of functions/foundation/schema/input.ts, which set the messages.";

describe.each(rowsWithBody)("the body of $method $path", (row) => {
  const { body: example, required, status: successStatus } = row.example;
  const valid = JSON.stringify(example);
  const [firstField = ""] = Object.keys(example);
  /** One parser reads all bodies: the first row gets every case, and the others the first one. */
  const casesOf = <Case>(all: Case[]): Case[] => (row === rowsWithBody[0] ? all : all.slice(0, 1));

  test.each(
    casesOf([
      ["an array", `[${valid}]`],
      ["null", "null"],
      ["true", "true"],
      ["a number", "1"],
      ["a string", JSON.stringify(valid)],
      ["arrays nested 30,000 deep", "[".repeat(30_000) + "]".repeat(30_000)],
    ]),
  )("returns 400 validation_error for %s instead of an object", async (_title, body) => {
    const response = await post(row, body, "application/json");
    expect(codeOf(response)).toEqual({ status: 400, code: "validation_error" });
    const { details } = response.body.error;
    expect({ details, hint }).toEqual({ details: [{ path: "", message: "must be a JSON object" }], hint });
  });

  test.each([
    ["no body", undefined, ""],
    ["no body with the content type JSON", "application/json", ""],
    ["an empty object", "application/json", "{}"],
  ])("counts %s as an object without fields", async (_title, contentType, body) => {
    const response = await post(row, body, contentType);
    const missing = required.map((path) => ({ path, message: "is required" }));
    if (missing.length > 0) {
      const { code, details } = response.body.error;
      expect({ code, details, hint }).toMatchObject({ code: "validation_error", details: missing, hint });
    } else if (row.method === "PATCH") expect(response.body.error.details).toMatchObject([{ path: "" }]);
    else expect(response.status).toBe(successStatus);
  });

  test.each(casesOf(["extra", "__proto__", "constructor", "toString", "", "user_id", "id"]))(
    "returns 400 for the unknown field %j",
    async (name) => {
      const body = valid.replace("{", `{${JSON.stringify(name)}:{"isAdmin":true},`);
      const response = await post(row, body, "application/json");
      expect(codeOf(response)).toEqual({ status: 400, code: "validation_error" });
      expect(response.body.error.details).toEqual([{ path: name, message: "is not a known field" }]);
    },
  );

  test.each(
    casesOf(["text/plain", undefined, "", "text/json", "application/jsonx", "application/x-www-form-urlencoded"]),
  )("returns 415 for the content type %j", async (contentType) => {
    expect(codeOf(await post(row, valid, contentType))).toEqual({ status: 415, code: "unsupported_media_type" });
  });

  test.each(
    casesOf([
      "application/json; charset=utf-8",
      "application/json",
      "APPLICATION/JSON",
      "application/json;charset=UTF-8",
    ]),
  )("accepts the content type %j", async (contentType) => {
    expect((await post(row, valid, contentType)).status).toBe(successStatus);
  });

  // One parser measures all bodies.
  if (row !== rowsWithBody[0]) return;

  test("returns a short error for thousands of unknown fields", async () => {
    const names = Array.from({ length: 4000 }, (_, index) => [`${"x".repeat(5)}${index}`, 0]);
    const response = await post(row, JSON.stringify({ ...example, ...Object.fromEntries(names) }), "application/json");
    expect(response.status).toBe(400);
    expect(JSON.stringify(response.body).length).toBeLessThan(500);
  });

  test("may have 64 KB, but not one byte more", async () => {
    const body = valid.padEnd(64 * KB);
    expect((await post(row, body, "application/json")).status).toBe(successStatus);
    expect(codeOf(await post(row, `${body} `, "application/json"))).toEqual({ status: 413, code: "payload_too_large" });
  });

  test("is measured in bytes, not in characters", async () => {
    const body = JSON.stringify({ ...example, [firstField]: "ä".repeat(40 * KB) });
    expect(codeOf(await post(row, body, "application/json"))).toEqual({ status: 413, code: "payload_too_large" });
  });

  test("may be base64-encoded by the gateway, and is measured after decoding", async () => {
    const handler = (await fromSources(row.id)) as typeof createKey;
    const encoded = (text: string) => ({ body: Buffer.from(text).toString("base64"), isBase64Encoded: true });
    const pathParameters = idsOf(row);
    const accepted = await invoke(handler, { ...encoded(valid.padEnd(64 * KB)), pathParameters });
    expect(accepted.statusCode).toBe(successStatus);
    expect((await invoke(handler, { ...encoded(valid.padEnd(64 * KB + 1)), pathParameters })).statusCode).toBe(413);
    expect((await invoke(handler, { ...encoded("garbage"), pathParameters })).statusCode).toBe(400);
  });
});

test("a base64-encoded body is UTF-8", async () => {
  const body = Buffer.from(JSON.stringify({ name: "Schl\u00fcssel \u2713" })).toString("base64");
  const created = await invoke(createKey, { body, isBase64Encoded: true });
  expect(JSON.parse(created.body).data).toMatchObject({ name: "Schl\u00fcssel \u2713" });
});

test("a name in another encoding than UTF-8 is refused with a message that says so", async () => {
  const body = Buffer.from('{"name":"M\u00fcller"}', "latin1");
  for (const event of [{ body: body.toString("base64"), isBase64Encoded: true }, { body: body.toString("utf8") }]) {
    const { statusCode, body: refused } = await invoke(createKey, event);
    expect([statusCode, JSON.parse(refused).error.message]).toEqual([
      400,
      expect.stringContaining("send the body as UTF-8"),
    ]);
  }
});

/** Invokes a handler as API Gateway does after the authorizer. */
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

/** Lets all DynamoDB calls fail until the end of the test. */
const failDynamo = (error: unknown): void => interceptDynamo(() => Promise.reject(error));

const named = (name: string, more: object = {}) =>
  Object.assign(new Error("internal detail: 10.1.2.3 arn:aws:dynamodb"), { name, ...more });

const throttled = (name: string, field: string, reason: string) =>
  named(name, { $fault: "client", [field]: [{ reason }] });
const canceled = (...codes: string[]) =>
  new TransactionCanceledException({
    message: "internal detail",
    $metadata: {},
    CancellationReasons: codes.map((Code) => ({ Code })),
  });

const outages: [title: string, error: unknown][] = [
  ["a refused connection", named("Error", { code: "ECONNREFUSED" })],
  ["a reset connection", named("Error", { code: "ECONNRESET" })],
  ["a name that does not resolve", named("Error", { code: "ENOTFOUND" })],
  ["an exhausted pipe", named("Error", { code: "EPIPE" })],
  ["a resolver that is busy", named("Error", { code: "EAI_AGAIN" })],
  ["a connection that times out", named("Error", { code: "ETIMEDOUT" })],
  ["an unreachable host", named("Error", { code: "EHOSTUNREACH" })],
  ["an unreachable network", named("Error", { code: "ENETUNREACH" })],
  ["a timeout", named("TimeoutError")],
  ["throttling", named("ThrottlingException", { $fault: "client" })],
  ["exceeded throughput", named("ProvisionedThroughputExceededException", { $fault: "client" })],
  ["a limit of requests", named("RequestLimitExceeded", { $fault: "client" })],
  ["a service that is unavailable", named("ServiceUnavailable")],
  ["an internal error of DynamoDB, by its name", named("InternalServerError")],
  ["a fault of the server, whatever its name", named("UnknownError", { $fault: "server" })],
  ["an error that the SDK would retry", named("UnknownError", { $retryable: {} })],
  ["throttling of a table", throttled("ThrottlingException", "throttlingReasons", "TableWriteAccountLimitExceeded")],
  [
    "a table's maximum",
    throttled("ThrottlingException", "throttlingReasons", "TableReadMaxOnDemandThroughputExceeded"),
  ],
  ["a transaction canceled without a reason", canceled()],
  ["a transaction canceled by the throughput of a table", canceled("None", "ProvisionedThroughputExceeded")],
];

const contentions: [title: string, error: unknown][] = [
  ["a conflict of transactions", named("TransactionConflictException", { $fault: "client" })],
  ["a transaction that others keep canceling", canceled("None", "TransactionConflict")],
  ["a transaction canceled by throttling", canceled("None", "ThrottlingError")],
  ...["TableWriteKeyRangeThroughputExceeded", "IndexReadKeyRangeThroughputExceeded"].flatMap(
    (reason): typeof outages => [
      [`${reason} of a ThrottlingException`, throttled("ThrottlingException", "throttlingReasons", reason)],
      [
        `${reason} of another exception`,
        throttled("ProvisionedThroughputExceededException", "ThrottlingReasons", reason),
      ],
    ],
  ),
];

const faults: [title: string, error: unknown][] = [
  ["a missing grant", named("AccessDeniedException", { $fault: "client" })],
  ["a malformed request", named("ValidationException", { $fault: "client" })],
  ["a missing table", named("ResourceNotFoundException", { $fault: "client" })],
  ["an unknown error of the client", named("UnknownError", { $fault: "client" })],
  ["a bug", new TypeError("internal detail: cannot read properties of undefined")],
  ["a thrown string", "internal detail"],
];

describe.each([
  ["an outage of AWS", 503, "service_unavailable", outages],
  ["an internal error", 500, "internal_error", faults],
  ["too many requests for the same items", 429, "rate_limited", contentions],
])("%s", (_kind, status, code, errors) => {
  test.each(errors)(`returns ${status} without details: %s`, async (_title, error) => {
    failDynamo(error);
    for (const handler of [listKeys, createKey]) {
      const result = await invoke(handler as typeof createKey, { body: '{"name":"my key name"}' });
      expect(result.statusCode).toBe(status);
      expect(JSON.parse(result.body)).toEqual({
        error: { code, message: expect.not.stringContaining("internal detail"), request_id: "request-1" },
      });
      expect(result.headers?.["Retry-After"]).toBe(status === 500 ? undefined : "1");
      expect(JSON.stringify(result)).not.toContain("internal detail");
    }
  });

  test(`with status ${status} is logged in one line with the request id and without the body`, async () => {
    failDynamo(errors[0]?.[1]);
    await invoke(createKey, { body: '{"name":"my key name"}' });
    expect(logged).toHaveLength(1);
    const line = JSON.parse(logged[0] ?? "");
    expect(line).toMatchObject({ level: status === 429 ? "warn" : "error", request_id: "request-1" });
    expect(line.error?.message ?? line.reason).toContain("internal detail");
    expect(logged[0]).not.toContain("my key name");
  });
});

test.each([
  ["no authorizer context", null, 500, "internal_error"],
  ["an authorizer context without a user", { authType: "jwt" }, 500, "internal_error"],
  ["a kind of credential of a newer authorizer", { userId: "1", authType: "other" }, 403, "insufficient_permission"],
])("does not run the endpoint for %s", async (_title, authorizer, status, code) => {
  const { statusCode, body } = await invoke(listKeys as typeof createKey, {}, authorizer);
  expect({ statusCode, code: JSON.parse(body).error?.code }).toEqual({ statusCode: status, code });
});

test("every response has the security headers and the request id", async () => {
  const headers = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Strict-Transport-Security": "max-age=63072000",
    "x-request-id": "request-1",
  };
  const created = await invoke(createKey, { body: '{"name":"ci"}' });
  expect(created.headers).toEqual({ ...headers, "Content-Type": "application/json" });
  const rejected = await invoke(createKey, { body: "{}" });
  expect(rejected.headers).toEqual({ ...headers, "Content-Type": "application/json" });
  const pathParameters = { id: JSON.parse(created.body).data.id };
  const deleted = await invoke(deleteKey as typeof createKey, { pathParameters });
  expect(deleted).toEqual({ statusCode: 204, body: "", headers });
});
