import { randomBytes, randomUUID } from "node:crypto";
import type { APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import { mintToken } from "../../../../bin/command/mint-token.ts";
import { handler as fanOut } from "../../../../functions/deliveries/intake/fan-out.ts";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { handler as send } from "../../../../functions/deliveries/sending/send.ts";
import { handler as sendSlow } from "../../../../functions/deliveries/sending/send-slow.ts";
import { handler as sweep } from "../../../../functions/deliveries/sending/sweep.ts";
import type { FailureCode } from "../../../../functions/foundation/events/failure-code.ts";
import { type MetricKey, type MetricRow, metrics } from "../../../../functions/foundation/manifest/metrics.ts";
import type { ErrorCode } from "../../../../functions/foundation/platform/errors.ts";
import { handler as authorizer } from "../../../../functions/identity/authentication/authorizer.ts";
import { firstAttempt } from "../../../support/attempts.ts";
import { interceptDynamo, interceptSqs } from "../../../support/aws-calls.ts";
import {
  changeWebhook,
  eventOf,
  givenWaiting,
  givenWebhook,
  makeDue,
  newDelivery,
  prepareDeliveries,
  rowsOf,
  sqsEvent,
  takeDeliveryMessages,
  takeMessages,
  workCall,
} from "../../../support/deliveries.ts";
import { type LoggedLine, metricsIn, watchLog } from "../../../support/metrics.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* The log lines and metrics of the functions in each situation, tested with the real functions and engines. */

const receiver = useReceiver("test");
let lines: LoggedLine[];
beforeAll(prepareDeliveries);
beforeEach(() => {
  lines = watchLog();
});
afterEach(async () => {
  delete process.env.RETRY_SCHEDULE;
  process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8,::1/128";
  await Promise.all([takeDeliveryMessages(), takeMessages("events", "dead letters")]);
});

const enoughTime = { getRemainingTimeInMillis: () => 50_000 };
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

/** Fans out an event that reached the queue `waitedMs` ago, and makes its first attempt. */
async function deliver(waitedMs: number, url = receiver.url) {
  const { webhook } = await givenWebhook({ url });
  const [record] = sqsEvent(eventOf(webhook.project_id)).Records;
  const SentTimestamp = String(Date.now() - waitedMs);
  await fanOut({ Records: [{ ...record, attributes: { SentTimestamp } } as never] });
  expect(lines).toEqual([]);
  await send(sqsEvent(...(await takeDeliveryMessages())));
  const [delivery] = await rowsOf(webhook);
  return { webhook, delivery: delivery as Delivery };
}

describe("an attempt", () => {
  test("that succeeds writes one line with its ids and the time since the event reached the queue", async () => {
    const { webhook, delivery } = await deliver(2_000);
    expect(lines).toEqual([
      expect.objectContaining({
        level: "info",
        message: "attempt",
        project_id: webhook.project_id,
        webhook_id: webhook.id,
        delivery_id: delivery.id,
        event: "deploy.started",
        deployment_id: delivery.deployment_id,
        attempt: 1,
        trigger: "schedule",
        outcome: "succeeded",
        status_code: 200,
        duration_ms: expect.any(Number),
        stage: "local",
      }),
    ]);
    const { eventToFirstAttempt, deliveryLatency, ...counts } = metricsIn(lines);
    expect(counts).toEqual({ attempts: [1], firstAttemptSuccess: [1] });
    const [waited = 0] = eventToFirstAttempt ?? [];
    expect(waited).toBeGreaterThanOrEqual(2_000);
    expect(waited).toBeLessThan(10_000);
    expect(deliveryLatency).toEqual([waited + Number(lines[0]?.duration_ms)]);
  });

  test("does not count a webhook that a concurrent attempt has disabled", async () => {
    receiver.respondWith(410);
    const { webhook } = await givenWebhook({ url: receiver.url });
    await send(sqsEvent(...[1, 2].map(() => firstAttempt(newDelivery(webhook)))));
    expect(metricsIn(lines)).toMatchObject({ attempts: [1, 1], exhausted: [1, 1], webhooksDisabled: [1] });
  });

  test("is neither made nor logged for a webhook that is disabled, down or deleted", async () => {
    const held = await givenWebhook({ url: receiver.url });
    await changeWebhook(held.webhook, { disabled_at: minutesAgo(1).toISOString(), disabled_reason: "manual" });
    const down = await givenWebhook({ url: receiver.url });
    const failing_since = minutesAgo(10).toISOString();
    await changeWebhook(down.webhook, { failing_since, probe_at: new Date(Date.now() + 60_000).toISOString() });
    const deleted = { ...held.webhook, id: randomUUID() };
    const carried = [down.webhook, held.webhook, deleted].map((webhook) => firstAttempt(newDelivery(webhook)));
    await send(sqsEvent(...carried));
    expect(receiver.received).toEqual([]);
    expect(lines.map(({ message }) => message)).toEqual(["delivery cancelled, its webhook is deleted"]);
    expect(metricsIn(lines)).toEqual({});
    lines.length = 0;
    // Later it does not count as a first attempt, because the receiver caused the delay.
    await changeWebhook(down.webhook, { failing_since: new Date().toISOString(), probe_at: failing_since });
    await makeDue(down.webhook);
    await sendSlow(sqsEvent(workCall(down.webhook)));
    expect(metricsIn(lines)).toEqual({ attempts: [1], deliveryLatency: [expect.any(Number)] });
  });

  test("that waited in the backlog does not count as a first attempt", async () => {
    const { webhook } = await givenWebhook({ url: receiver.url });
    await givenWaiting(webhook);
    await sendSlow(sqsEvent(workCall(webhook)));
    expect(metricsIn(lines)).toEqual({ attempts: [1], deliveryLatency: [expect.any(Number)] });
  });
});

test("an invalid event is counted as rejected after it was moved to the dead-letter queue", async () => {
  await fanOut(sqsEvent({ event: "deploy.exploded", data: { commit: "c0ffee" } }));
  expect(lines).toMatchObject(
    [{ level: "warn", message: "event rejected", message_id: "m0", reason: /event/ }].map(({ reason, ...line }) => ({
      ...line,
      reason: expect.stringMatching(reason),
    })),
  );
  expect(metricsIn(lines)).toEqual({ rejectedEvents: [1] });
  lines.length = 0;
  interceptSqs(() => Promise.reject(new Error("SQS is down")));
  await fanOut(sqsEvent("junk"));
  expect(metricsIn(lines)).toEqual({ messagesFailed: [1], failedMessageAge: [expect.any(Number)] });
});

describe("a sweep", () => {
  beforeEach(async () => {
    await prepareDeliveries();
    lines = watchLog();
  });

  test("with no due rows writes the lag 0 in one line", async () => {
    await sweep({}, enoughTime);
    expect(lines).toHaveLength(1);
    expect(metricsIn(lines)).toEqual({ sweepLag: [0], redriven: [0] });
  });

  test("writes the lag of the longest overdue wake-up and the number of workers it has called", async () => {
    for (const minutes of [2, 10, 5]) {
      const { webhook } = await givenWebhook();
      await givenWaiting(webhook, { due: minutesAgo(minutes) });
    }
    await sweep({}, enoughTime);
    const { sweepLag: [lag = 0] = [], redriven } = metricsIn(lines);
    expect(redriven).toEqual([3]);
    expect(lag).toBeGreaterThanOrEqual(600);
    expect(lag).toBeLessThan(630);
  });

  test.each<[string, () => void, typeof enoughTime]>([
    ["could not read any shard", () => interceptDynamo(() => Promise.reject(new Error("down"))), enoughTime],
    ["had no time left", () => {}, { getRemainingTimeInMillis: () => 1_000 }],
  ])("that %s writes no lag", async (_, prepare, context) => {
    prepare();
    await sweep({}, context).catch(() => {});
    expect(metricsIn(lines)).toEqual({ redriven: [0] });
  });
});

describe("a rejected credential", () => {
  const secret = randomBytes(32).toString("hex");
  const rejected: [reason: string, token: string][] = [
    ["invalid_api_key", `svc_${randomBytes(32).toString("hex")}`],
    ["invalid_token", mintToken(randomBytes(32).toString("hex"), "user-1")],
    ["token_expired", mintToken(secret, "user-1", -10)],
  ];
  const authorize = (authorization: string) =>
    authorizer({
      methodArn: "arn:aws:execute-api:us-east-1:123456789012:api/prod/GET/v1/projects",
      multiValueHeaders: { Authorization: [authorization] },
      requestContext: { requestId: "request-1" },
    } as unknown as APIGatewayRequestAuthorizerEvent);
  beforeAll(() => {
    process.env.JWT_SECRET = secret;
  });

  test.each([...rejected.map(([reason, token]) => [reason, `Bearer ${token}`]), ["unauthorized", "Basic abc"]])(
    "writes one line with the reason %s and the request id, and no part of the credential",
    async (reason = "", authorization = "") => {
      await authorize(authorization);
      expect(lines).toHaveLength(1);
      expect(lines[0]).toEqual({
        _aws: expect.anything(),
        level: "info",
        message: "credential rejected",
        request_id: "request-1",
        reason,
        ...(reason === "invalid_token" && { detail: "The JWT is not signed by the identity provider." }),
        ...(/token/.test(reason) && { alg: "HS256" }),
        stage: "local",
        version: "local",
        RejectedCredentials: 1,
      });
      expect(metricsIn(lines)).toEqual({ rejectedCredentials: [1] });
    },
  );

  test("is logged; an accepted credential is not", async () => {
    const result = await authorize(`Bearer ${mintToken(secret, "user-1")}`);
    expect(result?.policyDocument.Statement[0]?.Effect).toBe("Allow");
    expect(lines).toEqual([]);
  });
});

describe("the cost of logs and metrics", () => {
  test("a log line has a few hundred bytes", async () => {
    await deliver(2_000);
    await sweep({}, enoughTime);
    await authorizer({ methodArn: "a/b", requestContext: { requestId: randomUUID() } } as never);
    // The line as it is written to standard output, which includes the time.
    const timestamp = new Date().toISOString();
    const bytes = lines.map((line) => [line.message, Buffer.byteLength(JSON.stringify({ timestamp, ...line }))]);
    if (process.env.LOG_REPORT) console.table(bytes);
    const sizeOf = Object.fromEntries(bytes);
    expect(sizeOf.attempt).toBeLessThan(1_000);
    expect(sizeOf.sweep).toBeLessThan(400);
    expect(sizeOf["credential rejected"]).toBeLessThan(450);
  });

  /** The values of each dimension. CloudWatch bills a metric per stage and per value. */
  const outcomes = {
    succeeded: true,
    timeout: true,
    dns_error: true,
    connection_refused: true,
    connection_reset: true,
    tls_error: true,
    address_blocked: true,
    invalid_response: true,
    http_status: true,
  } satisfies Record<"succeeded" | FailureCode, true>;
  const reasons = [
    ...(["unauthorized", "invalid_token", "token_expired", "invalid_api_key"] as const),
    ...(["api_key_expired", "workflow_not_trusted"] as const),
  ] satisfies ErrorCode[];
  const values: Record<string, number> = { outcome: Object.keys(outcomes).length, reason: reasons.length, version: 1 };
  test("a stage has at most 31 billed metrics, and one more during a gradual deployment", () => {
    const rows: MetricRow[] = (Object.keys(metrics) as MetricKey[]).map((key) => metrics[key]);
    const counts = rows.flatMap(({ dimensions = [] }) => [1, ...dimensions.map((name) => values[name] ?? Number.NaN)]);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(31);
  });
});
