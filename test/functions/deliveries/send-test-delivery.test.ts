import { Webhook as Verifier } from "standardwebhooks";
import type { EventName } from "../../../functions/deployments/deployment-event.ts";
import { find } from "../../../functions/webhooks/webhook-store.ts";
import { changeWebhook, rowsOf } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { expectForbidden, expectNotFound, newScenario, type Scenario, wrongFieldsOf } from "../../support/scenario.ts";
import { startTestService, type TestService } from "../../support/service.ts";

let service: TestService;
let receiver: Receiver;
let scenario: Scenario;
beforeAll(async () => {
  process.env.RETRY_SCHEDULE = "0,0";
  service = await startTestService({ deliver: true });
});
afterAll(() => service.stop());
beforeEach(async () => {
  receiver = await startReceiver();
  scenario = await newScenario(service, { url: receiver.url, events: ["deploy.failed"] });
});
afterEach(() => receiver.close());

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const post = (body?: unknown) => scenario.api.post(`${scenario.path}/test`, body);
const webhookNow = () => find(scenario.projectId, scenario.webhook.id);
const shown = async (id: string) => (await scenario.api.get(`${scenario.path}/deliveries/${id}`)).body.data;

/** The delivery once it is over. */
const ended = (id: string) =>
  eventually(async () => {
    const delivery = await shown(id);
    expect(delivery.status).not.toBe("pending");
    return delivery;
  });

async function sendTest(body?: unknown) {
  const answer = await post(body);
  expect(answer.status).toBe(202);
  return ended(answer.body.data.id);
}

test("answers the delivery, marked as a test and on its way", async () => {
  const { status, body } = await post();
  expect(status).toBe(202);
  const { id, deployment_id, created_at, next_attempt_at, ...rest } = body.data;
  for (const each of [id, deployment_id]) expect(each).toMatch(UUID);
  for (const each of [created_at, next_attempt_at]) expect(each).toMatch(TIME);
  expect(rest).toEqual({
    webhook_id: scenario.webhook.id,
    event: "deploy.succeeded",
    status: "pending",
    test: true,
    attempt_count: 0,
  });
});

test.each<[EventName, object]>([
  ["deploy.started", {}],
  ["deploy.succeeded", { url: expect.stringMatching(/^https:/), status: "running" }],
  ["deploy.failed", { reason: expect.any(String) }],
])("sends a signed %s as the pipeline would, whatever the webhook subscribed to", async (event, data) => {
  const { id, deployment_id, attempts } = await sendTest({ event });
  const [request] = await receiver.waitFor(1);
  const { body = "", headers } = request ?? {};
  expect(new Verifier(scenario.webhook.secret).verify(body, headers as Record<string, string>)).toEqual({
    event,
    project_id: scenario.projectId,
    deployment_id,
    timestamp: expect.stringMatching(TIME),
    data,
  });
  expect(headers).toMatchObject({ "x-service-event": event, "x-service-delivery": id });
  expect(attempts).toMatchObject([{ number: 1, trigger: "test", status_code: 200, error_code: null, hint: null }]);
});

test("stands in the log as a test, beside what is none", async () => {
  const { id } = await sendTest();
  const { body } = await scenario.api.get(`${scenario.path}/deliveries`);
  expect(body.data).toMatchObject([{ id, test: true, status: "succeeded" }]);
});

test("two in a row are two deliveries of two deployments", async () => {
  const [first, second] = [await sendTest(), await sendTest()];
  expect(first.id).not.toBe(second.id);
  expect(first.deployment_id).not.toBe(second.deployment_id);
  expect(receiver.received).toHaveLength(2);
});

test("is attempted once, whatever the schedule says", async () => {
  receiver.answerWith(500);
  const delivery = await sendTest();
  expect(delivery).toMatchObject({ status: "failed", test: true, attempt_count: 1, next_attempt_at: null });
  expect(delivery.attempts).toMatchObject([{ trigger: "test", error_code: "http_status" }]);
  // A retry would be here before this one.
  await sendTest();
  expect(receiver.received).toHaveLength(2);
});

test("that fails tells nothing about the webhook's health", async () => {
  const before = await webhookNow();
  receiver.answerWith(500);
  expect((await sendTest()).status).toBe("failed");
  expect(await webhookNow()).toEqual(before);
});

test("that is answered with 410 disables the webhook, as any delivery does", async () => {
  receiver.answerWith(410);
  expect((await sendTest()).status).toBe("failed");
  expect(await webhookNow()).toMatchObject({ disabled_reason: "gone" });
});

test("reaches a disabled webhook, which stays disabled", async () => {
  await scenario.api.patch(scenario.path, { enabled: false });
  const before = await webhookNow();
  expect((await sendTest()).status).toBe("succeeded");
  expect(receiver.received).toHaveLength(1);
  expect(await webhookNow()).toEqual(before);
});

test("is not held up because the webhook keeps failing", async () => {
  const failing_since = new Date(Date.now() - 600_000).toISOString();
  const probe_at = new Date(Date.now() + 600_000).toISOString();
  await changeWebhook(scenario.webhook, { failing_since, probe_at });
  receiver.answerWith(500);
  expect((await sendTest()).attempts).toHaveLength(1);
  expect(await webhookNow()).toMatchObject({ failing_since, probe_at });
});

describe("refuses", () => {
  test.each<[string, unknown, string]>([
    ["an unknown event", { event: "deploy.paused" }, "event"],
    ["an event that is no text", { event: 7 }, "event"],
    ["an event of null", { event: null }, "event"],
    ["another field", { data: {} }, "data"],
    ["an array", ["deploy.failed"], ""],
  ])("%s, and sends nothing", async (_, body, field) => {
    expect(wrongFieldsOf(await post(body))).toEqual([field]);
    expect(await rowsOf(scenario.webhook)).toEqual([]);
  });

  test("a viewer, and sends nothing", async () => {
    await expectForbidden(scenario.viewer.post(`${scenario.path}/test`, {}));
    expect(await rowsOf(scenario.webhook)).toEqual([]);
  });

  test("what is not there for the caller", async () => {
    await expectNotFound(scenario, (path) => scenario.api.post(`${path}/test`, {}));
  });
});

test("may be asked with an API key of an admin", async () => {
  expect((await scenario.key.post(`${scenario.path}/test`)).status).toBe(202);
  await receiver.waitFor(1);
});
