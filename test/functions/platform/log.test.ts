import { setImmediate as immediate } from "node:timers/promises";
import { DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { jest } from "@jest/globals";
import { ApiError } from "../../../functions/platform/errors.ts";
import { log, logSink } from "../../../functions/platform/log.ts";
import { embeddedMetricSchema } from "../../support/metrics.ts";

type Line = { level: string; message: string; error?: unknown };
const toStdout = logSink.write;
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

describe("on AWS", () => {
  afterEach(() => {
    delete process.env.STAGE;
  });

  /** The text that a line is on standard output. */
  function written(write: () => void): string {
    const stdout = jest.spyOn(process.stdout, "write").mockReturnValue(true);
    logSink.write = toStdout;
    write();
    expect(stdout).toHaveBeenCalledTimes(1);
    return String(stdout.mock.calls[0]?.[0]);
  }

  test.each(["info", "warn", "error"] as const)("a line of level %s is one line of JSON, as it is", (level) => {
    const text = written(() => {
      if (level === "error") log.error("two\nlines", undefined, { n: 1 });
      else log[level]("two\nlines", { n: 1 });
    });
    expect(text).toMatch(/^[^\n]+\n$/);
    const { timestamp, ...line } = JSON.parse(text);
    expect(new Date(timestamp).toISOString()).toBe(timestamp);
    expect(line).toEqual({
      level: level.toUpperCase(),
      message: "two\nlines",
      n: 1,
      ...(level === "error" && { error: { name: "undefined" } }),
    });
  });

  test("a line with metrics is a document that CloudWatch reads, of the stage that the environment names", () => {
    process.env.STAGE = "prod";
    const text = written(() => log.info("refused", { reason: "token_expired" }, { rejectedCredentials: 1 }));
    const document = embeddedMetricSchema.parse(JSON.parse(text));
    expect(document).toMatchObject({ stage: "prod", reason: "token_expired", RejectedCredentials: 1 });
  });
});

test("without a stage in the environment the metrics are those of a local run", () => {
  log.info("refused", { reason: "token_expired" }, { rejectedCredentials: 1 });
  expect(lines).toMatchObject([{ stage: "local" }]);
});

describe("a scope", () => {
  test("puts its fields into every line below it, however late, and into no other", async () => {
    const work = (id: string) =>
      log.scope({ request_id: id }, async () => {
        await immediate();
        log.tag({ user_id: `user of ${id}` });
        await immediate();
        log.warn("late", { n: 1 });
        log.error("failed", undefined);
      });
    await Promise.all([work("a"), work("b")]);
    log.info("outside");
    const fieldsOf = (id: string) => ({ request_id: id, user_id: `user of ${id}` });
    expect(lines).toEqual([
      { level: "warn", message: "late", n: 1, ...fieldsOf("a") },
      { level: "error", message: "failed", error: { name: "undefined" }, ...fieldsOf("a") },
      { level: "warn", message: "late", n: 1, ...fieldsOf("b") },
      { level: "error", message: "failed", error: { name: "undefined" }, ...fieldsOf("b") },
      { level: "info", message: "outside" },
    ]);
  });

  test("gives way to what a line says itself, and tags outside of it are no harm", () => {
    log.tag({ a: 1 });
    log.scope({ a: 1 }, () => log.info("m", { a: 2 }));
    expect(lines).toEqual([{ level: "info", message: "m", a: 2 }]);
  });
});
