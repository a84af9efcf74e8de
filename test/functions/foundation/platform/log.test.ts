import { setImmediate as immediate } from "node:timers/promises";
import { DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { jest } from "@jest/globals";
import { ApiError } from "../../../../functions/foundation/platform/errors.ts";
import { log, logSink } from "../../../../functions/foundation/platform/log.ts";
import { embeddedMetricSchema } from "../../../support/metrics.ts";

type Line = { level: string; message: string; error?: unknown };
const toStdout = logSink.write;
let lines: Line[];
beforeEach(() => {
  lines = [];
  logSink.write = (level, line) => lines.push({ level, ...line });
});
afterEach(() => jest.restoreAllMocks());

test("a line contains level, message and fields", () => {
  log.info("attempt", { delivery_id: "d", attempt: 2, is_last: false });
  log.warn("careful");
  expect(lines).toEqual([
    { level: "info", message: "attempt", delivery_id: "d", attempt: 2, is_last: false },
    { level: "warn", message: "careful" },
  ]);
});

test("an error is logged with name, message, stack and causes", () => {
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

test("no other property of an error is logged: no request, response or header", () => {
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
  ["with a response of AWS", { endpoint: process.env.AWS_ENDPOINT_URL_DYNAMODB ?? "" }, "ResourceNotFoundException"],
  ["without a response", { endpoint: "http://127.0.0.1:1" }, "Error"],
])("an SDK error %s is logged without the request", async (_, { endpoint }, name) => {
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
  ["string", "whsec_secret", "string"],
  ["object", { token: "svc_secret" }, "object"],
  ["undefined", undefined, "undefined"],
])("a thrown value that is not an Error is logged as its type only: %s", (_, thrown, name) => {
  log.error("failed", thrown);
  expect(lines).toEqual([{ level: "error", message: "failed", error: { name } }]);
});

test("a circular cause is logged up to the depth limit", () => {
  const error = new Error("round");
  error.cause = new Error("and round", { cause: error });
  log.error("failed", error);
  expect(JSON.stringify(lines).match(/"and round"/g)).toHaveLength(2);
});

describe("on AWS", () => {
  afterEach(() => {
    delete process.env.STAGE;
  });

  /** Returns the text that is written to standard output. */
  function written(write: () => void): string {
    const stdout = jest.spyOn(process.stdout, "write").mockReturnValue(true);
    logSink.write = toStdout;
    write();
    expect(stdout).toHaveBeenCalledTimes(1);
    return String(stdout.mock.calls[0]?.[0]);
  }

  test.each(["info", "warn", "error"] as const)("a line of level %s is one line of JSON", (level) => {
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

  test("a line with metrics is a valid embedded metric document with the stage of the environment", () => {
    process.env.STAGE = "prod";
    const text = written(() =>
      log.info("rejected", { reason: "token_expired", version: "1" }, { rejectedCredentials: 1 }),
    );
    const document = embeddedMetricSchema.parse(JSON.parse(text));
    expect(document).toMatchObject({ stage: "prod", reason: "token_expired", RejectedCredentials: 1 });
  });
});

test("metrics have the stage `local` when the environment names none", () => {
  log.info("rejected", { reason: "token_expired", version: "1" }, { rejectedCredentials: 1 });
  expect(lines).toMatchObject([{ stage: "local" }]);
});

describe("a scope", () => {
  test("adds its fields to all lines of its asynchronous work, and to no others", async () => {
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

  test("does not change the object that it was given", () => {
    const fields = { request_id: "a" };
    for (const user_id of ["first", undefined]) {
      log.scope(fields, () => {
        if (user_id) log.tag({ user_id });
        log.info("m");
      });
    }
    expect(fields).toEqual({ request_id: "a" });
    expect(lines).toEqual([
      { level: "info", message: "m", request_id: "a", user_id: "first" },
      { level: "info", message: "m", request_id: "a" },
    ]);
  });

  test("is overridden by the fields of a line, and a tag outside of a scope has no effect", () => {
    log.tag({ a: 1 });
    log.scope({ a: 1 }, () => log.info("m", { a: 2 }));
    expect(lines).toEqual([{ level: "info", message: "m", a: 2 }]);
  });
});

describe("batchMetrics", () => {
  const measure = () => {
    log.info("attempt", { outcome: "succeeded", delivery_id: "a" }, { attempts: 1, retries: 1 });
    log.warn("attempt", { outcome: "http_status", delivery_id: "b" }, { attempts: 1 });
    log.info("attempt", { outcome: "succeeded", delivery_id: "c" }, { attempts: 1 });
  };
  const withoutMetrics = [
    { level: "info", message: "attempt", outcome: "succeeded", delivery_id: "a" },
    { level: "warn", message: "attempt", outcome: "http_status", delivery_id: "b" },
    { level: "info", message: "attempt", outcome: "succeeded", delivery_id: "c" },
  ];
  const batched = [
    { level: "info", message: "metrics", outcome: "succeeded", stage: "local", Attempts: [1, 1], Retries: 1 },
    { level: "info", message: "metrics", outcome: "http_status", stage: "local", Attempts: 1 },
  ].map((line) => ({ ...line, _aws: expect.anything() }));

  test("writes the metrics of all lines at the end, one line per combination of dimensions", async () => {
    const result = await log.batchMetrics(async () => {
      measure();
      await immediate();
      expect(lines).toEqual(withoutMetrics);
      return "result";
    });
    expect(result).toBe("result");
    expect(lines).toEqual([...withoutMetrics, ...batched]);
  });

  test("writes the metrics and rethrows when the function fails", async () => {
    const run = log.batchMetrics(async () => {
      measure();
      throw new Error("failed");
    });
    await expect(run).rejects.toThrow("failed");
    expect(lines).toEqual([...withoutMetrics, ...batched]);
  });

  test("keeps the metrics of concurrent batches apart, and later lines carry their own", async () => {
    const batch = (retries: number) =>
      log.batchMetrics(async () => {
        await immediate();
        log.info("m", {}, { retries });
      });
    await Promise.all([batch(1), batch(2)]);
    log.info("m", {}, { retries: 3 });
    const values = lines.map((line) => ({ message: line.message, Retries: (line as { Retries?: unknown }).Retries }));
    expect(values.filter(({ Retries }) => Retries !== undefined)).toEqual([
      { message: "metrics", Retries: 1 },
      { message: "metrics", Retries: 2 },
      { message: "m", Retries: 3 },
    ]);
  });
});
