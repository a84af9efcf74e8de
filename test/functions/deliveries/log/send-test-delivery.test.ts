import { Webhook as Verifier } from "standardwebhooks";
import { sampleFields } from "../../../../functions/foundation/events/sample-event.ts";
import type { WebhookEventName } from "../../../../functions/foundation/events/webhook-event.ts";
import { webhookEventNames } from "../../../../functions/foundation/manifest/events.ts";
import { changeWebhook, eventOf, publish } from "../../../support/deliveries.ts";
import { eventually } from "../../../support/eventually.ts";
import { useReceiver } from "../../../support/receiver.ts";
import { invalidFieldsOf, useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

const receiver = useReceiver("test");
beforeAll(() => {
  process.env.RETRY_SCHEDULE = "0,0";
});
const service = useService({ deliver: true });
const scenario = useScenario(service, () => ({ url: receiver.url, events: ["deploy.failed"] }));

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const post = (body?: unknown) => scenario.api.post(`${scenario.path}/test`, body);
const shown = async (id: string) => (await scenario.api.get(`${scenario.path}/deliveries/${id}`)).body.data;

/** Waits until the delivery is finished and returns it. */
const ended = (id: string) =>
  eventually(async () => {
    const delivery = await shown(id);
    expect(delivery.status).not.toBe("pending");
    return delivery;
  });

async function sendTest(body?: unknown) {
  const response = await post(body);
  expect(response.status).toBe(202);
  return ended(response.body.data.id);
}

test("a test delivery is sent whatever the filter of the webhook is", async () => {
  await changeWebhook(scenario.webhook, { filter: { environment: ["production"] } });
  expect((await sendTest()).status).toBe("succeeded");
  expect(receiver.received).toHaveLength(1);
});

test("data of a request replaces fields of the sample, but not the mark of a test", async () => {
  await sendTest({ event: "deploy.failed", data: { environment: "staging", step: 3 } });
  const [request] = await receiver.waitFor(1);
  expect(JSON.parse(request?.body ?? "").data).toMatchObject({
    environment: "staging",
    step: 3,
    branch: "main",
    test: true,
  });
  for (const data of ["text", [], { test: false }, { Test: false }, null]) {
    expect(invalidFieldsOf(await post({ event: "deploy.failed", data }))).toEqual(["data"]);
  }
});

test("a webhook whose events no longer exist has no sample", async () => {
  await changeWebhook(scenario.webhook, { events: ["deploy.canceled"] });
  const { body } = await post();
  expect(body.error.details[0].message).toContain("the service has none of those");
});

const subscribe = (...events: WebhookEventName[]) => scenario.api.patch(scenario.path, { events });

test.each(webhookEventNames)("the test endpoint sends a signed sample of %s, marked as a test", async (event) => {
  await subscribe(event);
  const { id, deployment_id, attempts } = await sendTest({ event });
  const [request] = await receiver.waitFor(1);
  const { body = "", headers } = request ?? {};
  const sample = sampleFields(event, { projectId: scenario.projectId, id: deployment_id, now: new Date() });
  expect(new Verifier(scenario.webhook.secret).verify(body, headers as Record<string, string>)).toEqual({
    ...sample,
    timestamp: expect.stringMatching(TIME),
    data: {
      ...sample.data,
      ...("webhook_id" in sample.data && { webhook_id: expect.any(String), failing_since: expect.any(String) }),
      test: true,
    },
  });
  expect(headers).toMatchObject({ "x-service-event": event, "x-service-delivery": id, "x-service-test": "true" });
  expect(attempts).toMatchObject([{ number: 1, trigger: "test", status_code: 200, error_code: null, hint: null }]);
});

test("a redelivery of a test delivery has its marks, and the delivery of an event does not", async () => {
  const { id } = await sendTest();
  await scenario.api.post(`${scenario.path}/deliveries/${id}/redeliver`);
  await receiver.waitFor(2);
  await publish(eventOf(scenario.projectId, { event: "deploy.failed", data: {} }));
  const marks = (await receiver.waitFor(3)).map(({ headers, body }) => [
    headers["x-service-test"],
    JSON.parse(body).data.test,
  ]);
  expect(marks).toEqual([
    ["true", true],
    ["true", true],
    [undefined, undefined],
  ]);
});

test.each([undefined, {}])(
  "without an event, the test endpoint sends the first one of the webhook: body %j",
  async (body) => {
    await subscribe("deploy.started", "deploy.failed");
    expect((await sendTest(body)).event).toBe("deploy.started");
  },
);

test("the test endpoint creates a new delivery of a new deployment at each call", async () => {
  const [first, second] = [await sendTest(), await sendTest()];
  expect(first.id).not.toBe(second.id);
  expect(first.deployment_id).not.toBe(second.deployment_id);
  expect(receiver.received).toHaveLength(2);
});

describe("the test endpoint rejects", () => {
  test("an event to which the webhook does not subscribe, and lists those to which it does", async () => {
    await subscribe("deploy.started", "webhook.failing");
    const { body } = await post({ event: "deploy.failed" });
    const message = "must be an event to which the webhook subscribes: deploy.started, webhook.failing";
    expect(body.error).toMatchObject({ code: "validation_error", details: [{ path: "event", message }] });
  });
});
