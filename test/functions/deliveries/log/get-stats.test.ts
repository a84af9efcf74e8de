import type { Attempt, Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { inParallel } from "../../../../functions/foundation/platform/parallel.ts";
import { timeOfUuid } from "../../../../functions/foundation/platform/uuid.ts";
import { interceptDynamo, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { givenDelivery } from "../../../support/deliveries.ts";
import { useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

let path: string;
const service = useService();
const scenario = useScenario(service);
beforeEach(() => {
  path = `${scenario.path}/stats`;
});

const HOUR = 3600;
const ago = (seconds: number) => new Date(Date.now() - seconds * 1000);
const attempt = (secondsAgo: number, changes: Partial<Attempt> = {}): Attempt => ({
  number: 1,
  at: ago(secondsAgo).toISOString(),
  duration_ms: 20,
  status_code: 200,
  trigger: "schedule",
  ...changes,
});
/** Creates a delivery of an event some seconds ago, with these attempts. */
const given = (secondsAgo: number, attempts: Attempt[], changes: Partial<Delivery> = {}) =>
  givenDelivery(scenario.webhook, { at: ago(secondsAgo), status: "succeeded", attempts, ...changes });
const stats = async (query = "") => {
  const { status, body } = await scenario.api.get(`${path}${query}`);
  expect(status).toBe(200);
  return body.data;
};

test("the statistics count the attempts of the window by their own time", async () => {
  const failed = { status_code: 503, error_code: "http_status", duration_ms: 80 } as const;
  await given(30 * HOUR, [attempt(30 * HOUR, failed), attempt(2 * HOUR)]);
  await given(HOUR, [attempt(HOUR, failed)], { event: "deploy.failed" });
  await given(60, [attempt(60)], { test: true });
  await given(30, [attempt(30), attempt(20)], { event: "webhook.failing", deployment_id: null });
  expect(await stats()).toMatchObject({
    deliveries_read: 4,
    attempts: 4,
    succeeded: 3,
    success_rate: 0.75,
    response_ms: { p50: 20, p95: 80 },
    by_event: expect.arrayContaining([
      { event: "deploy.started", attempts: 1, succeeded: 1 },
      { event: "deploy.failed", attempts: 1, succeeded: 0 },
      { event: "webhook.failing", attempts: 2, succeeded: 2 },
    ]),
    by_error: [{ error_code: "http_status", attempts: 1 }],
  });
  const week = await stats("?window=7d");
  expect(week).toMatchObject({ window: "7d", attempts: 5, bucket_seconds: 6 * HOUR });
  expect(week.buckets).toHaveLength(28);
});

test("the statistics leave out deliveries that are too old to have an attempt by the schedule in the window", async () => {
  await given(61 * HOUR, [attempt(HOUR)]);
  expect(await stats()).toMatchObject({ deliveries_read: 0, attempts: 0 });
});

test("the statistics cover the newest 1,000 deliveries and say since when", async () => {
  // An attempt is later than its delivery, also when the clock ticks between the two calls of `ago`.
  const rows = await inParallel([...Array(1_010).keys()], 25, (index) =>
    given(2_000 - index, [attempt(1_999 - index)]),
  );
  const oldestRead = rows[10];
  const { deliveries_read, complete, covered_since, attempts } = await stats();
  expect({ deliveries_read, complete, attempts }).toEqual({ deliveries_read: 1_000, complete: false, attempts: 1_000 });
  expect(covered_since).toBe(timeOfUuid(oldestRead?.id ?? "").toISOString());
});

test("the statistics end after 250 read units, when rows are large, and say since when", async () => {
  const body = JSON.stringify({ log: "x".repeat(100_000) });
  const rows = await inParallel([...Array(30).keys()], 10, (index) =>
    given(HOUR - index, [attempt(HOUR - index)], { body }),
  );
  const calls = watchDynamo();
  const { deliveries_read, complete, covered_since } = await stats();
  restoreAws();
  const units = calls.filter(({ command }) => command === "QueryCommand").reduce((sum, call) => sum + call.units, 0);
  expect(units).toBeLessThanOrEqual(250);
  expect({ deliveries_read, complete }).toEqual({ deliveries_read: 20, complete: false });
  expect(covered_since).toBe(timeOfUuid(rows[10]?.id ?? "").toISOString());
});

test("the statistics do not read the bodies", async () => {
  let projection: unknown;
  interceptDynamo(async ({ command, input }, send) => {
    if (command.startsWith("Query")) projection = input.ProjectionExpression;
    return send();
  });
  await stats();
  expect(projection).not.toContain("body");
});
