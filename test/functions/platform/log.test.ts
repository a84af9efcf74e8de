import { DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { jest } from "@jest/globals";
import { ApiError } from "../../../functions/platform/errors.ts";
import { log, logSink } from "../../../functions/platform/log.ts";

type Line = { level: string; message: string; error?: unknown };
const toConsole = logSink.write;
let lines: Line[];
beforeEach(() => {
  lines = [];
  logSink.write = (level, line) => lines.push({ level, ...line });
});
afterEach(() => jest.restoreAllMocks());

test("a line has its level, its message and its fields", () => {
  log.info("attempt", { delivery_id: "d", attempt: 2, is_last: false });
  log.warn("careful");
  expect(lines).toEqual([
    { level: "info", message: "attempt", delivery_id: "d", attempt: 2, is_last: false },
    { level: "warn", message: "careful" },
  ]);
});

test("an error is told by name, message and stack, with its causes", () => {
  const cause = new RangeError("too far", { cause: new TypeError("wrong kind") });
  log.error("message failed", new ApiError("conflict", "It is taken.", { cause }), { message_id: "m" });
  expect(lines).toEqual([
    {
      level: "error",
      message: "message failed",
      message_id: "m",
      error: {
        name: "ApiError",
        message: "It is taken.",
        stack: expect.stringContaining("log.test.ts"),
        cause: {
          name: "RangeError",
          message: "too far",
          stack: expect.any(String),
          cause: { name: "TypeError", message: "wrong kind", stack: expect.any(String) },
        },
      },
    },
  ]);
});

test("nothing else of an error is printed: no request, no response, no header", () => {
  const $response = { headers: { authorization: "Bearer svc_secret" }, body: "whsec_secret" };
  const request = { headers: { authorization: "AWS4-HMAC-SHA256 Credential=secret" } };
  const cause = Object.assign(new Error("socket hang up"), { $response, request });
  log.error(
    "failed",
    Object.assign(new Error("failed", { cause }), { $response, $metadata: { cfId: "secret" }, request }),
  );
  expect(JSON.stringify(lines)).toContain("socket hang up");
  expect(JSON.stringify(lines)).not.toMatch(/secret/i);
});

test.each([
  ["that AWS answers", { endpoint: process.env.AWS_ENDPOINT_URL_DYNAMODB ?? "" }, "ResourceNotFoundException"],
  ["without an answer", { endpoint: "http://127.0.0.1:1" }, "Error"],
])("an error of the SDK %s does not bring the request into the log", async (_, { endpoint }, name) => {
  const client = new DynamoDBClient({ endpoint, maxAttempts: 1 });
  const Item = { key_hash: { S: "svc_secret" } };
  const error = await client
    .send(new PutItemCommand({ TableName: "no-such-table", Item }))
    .catch((caught: unknown) => caught);
  log.error("failed", error);
  expect(lines).toMatchObject([{ error: { name } }]);
  expect(Object.keys(lines[0]?.error as object).sort()).toEqual(["message", "name", "stack"]);
  expect(JSON.stringify(lines)).not.toMatch(/svc_secret|authorization|AWS4-HMAC/i);
});

test.each([
  ["a text", "whsec_secret", "string"],
  ["an object", { token: "svc_secret" }, "object"],
  ["nothing", undefined, "undefined"],
])("%s that was thrown shows as its type alone", (_, thrown, name) => {
  log.error("failed", thrown);
  expect(lines).toEqual([{ level: "error", message: "failed", error: { name } }]);
});

test("a circle of causes ends", () => {
  const error = new Error("round");
  error.cause = new Error("and round", { cause: error });
  log.error("failed", error);
  expect(JSON.stringify(lines).match(/"and round"/g)).toHaveLength(2);
});

test.each(["info", "warn", "error"] as const)(
  "lines of level %s go to the console, whole, for Lambda to format",
  (level) => {
    const spy = jest.spyOn(console, level).mockImplementation(() => {});
    logSink.write = toConsole;
    if (level === "error") log.error("hello", undefined, { n: 1 });
    else log[level]("hello", { n: 1 });
    expect(spy).toHaveBeenCalledTimes(1);
    expect(spy.mock.calls[0]).toEqual([
      { message: "hello", n: 1, ...(level === "error" && { error: { name: "undefined" } }) },
    ]);
  },
);
