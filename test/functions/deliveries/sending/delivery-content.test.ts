import { createHmac } from "node:crypto";
import type http from "node:http";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { certify } from "../../../../functions/deliveries/certification/certify.ts";
import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import type { WebhookPatch } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { carry, visitLine } from "../../../support/attempts.ts";
import { makeDue, newDelivery, rowOf, takeDeliveryMessages } from "../../../support/deliveries.ts";
import { type Received, useReceiver } from "../../../support/receiver.ts";
import { useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

/* What requests carry in the format of their webhook, to receivers that answer as the documents of Slack and Discord say. */

const service = useService();
const receiver = useReceiver("test");
const scenario = useScenario(service, () => ({ url: receiver.url }));

/** https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
function slack({ body, headers }: Received, response: http.ServerResponse): void {
  if (headers["content-type"] !== "application/json") return void response.writeHead(400).end("invalid_payload");
  const { text, blocks } = JSON.parse(body);
  return void (text || blocks ? response.writeHead(200).end("ok") : response.writeHead(400).end("no_text"));
}

/** https://discord.com/developers/docs/resources/webhook#execute-webhook */
function discord({ body }: Received, response: http.ServerResponse): void {
  const { content = "", embeds } = JSON.parse(body);
  if (content === "" && !embeds) {
    return void response.writeHead(400).end('{"message":"Cannot send an empty message","code":50006}');
  }
  if (content.length > 2_000) return void response.writeHead(400).end('{"message":"Invalid Form Body","code":50035}');
  response.writeHead(204).end();
}

const patch = (changes: WebhookPatch) =>
  webhooks.update(scenario.projectId, scenario.webhook.id, changes, new Date().toISOString());
const delivery = async (): Promise<Delivery> =>
  newDelivery(await webhooks.get(scenario.projectId, scenario.webhook.id));

beforeEach(() => {
  process.env.RETRY_SCHEDULE = "0";
});
afterEach(async () => {
  delete process.env.RETRY_SCHEDULE;
  await takeDeliveryMessages();
});

test.each([
  ["slack", slack],
  ["discord", discord],
] as const)(
  "%s refuses the standard body, and accepts that of its format, without a new event",
  async (format, chat) => {
    receiver.respondWith(chat);
    const waiting = await delivery();
    await carry(waiting);
    expect(await rowOf(waiting)).toMatchObject({ status: "pending", attempts: [{ status_code: 400 }] });
    await patch({ format });
    await makeDue(scenario.webhook);
    await visitLine(scenario.webhook);
    const row = await rowOf(waiting);
    expect(row).toMatchObject({ status: "succeeded", body: waiting.body });
    expect(receiver.received[0]?.body).toBe(waiting.body);
  },
);

test.each(["slack", "cloudevents"] as const)(
  "both signatures of %s are over the bytes that are sent",
  async (format) => {
    const { secret } = scenario.webhook;
    await patch({ format });
    await carry(await delivery());
    const [{ body, headers } = {} as Received] = receiver.received;
    const hmac = createHmac("sha256", secret).update(body).digest("hex");
    expect(headers["x-service-signature"]).toBe(`sha256=${hmac}`);
    expect(() => new StandardWebhook(secret).verify(body, headers as Record<string, string>)).not.toThrow();
    const isCloudEvent = format === "cloudevents";
    expect(headers["content-type"]).toBe(isCloudEvent ? "application/cloudevents+json" : "application/json");
    expect(JSON.parse(body)).toHaveProperty(isCloudEvent ? "specversion" : "blocks");
  },
);

test("the API shows the standard payload, and a format that is taken back gives the same bytes as before", async () => {
  await patch({ format: "slack" });
  const sent = await delivery();
  await carry(sent);
  const { body } = await scenario.api.get(`${scenario.path}/deliveries/${sent.id}`);
  expect(body.data.payload).toEqual(JSON.parse(sent.body));
  await patch({ format: "standard" });
  const next = await delivery();
  await carry(next);
  expect(receiver.received[1]?.body).toBe(next.body);
});

test.each([
  ["slack", 1],
  ["cloudevents", 6],
  [undefined, 6],
] as const)(
  "a certification of the format %s sends %i requests, and says what it cannot show",
  async (format, count) => {
    receiver.respondWith(format === "slack" ? slack : 204);
    if (format) await patch({ format });
    const { body } = await scenario.api.post(`${scenario.path}/certify`, {});
    const [call] = await takeDeliveryMessages();
    await certify(call as never, () => 60_000);
    expect(receiver.received).toHaveLength(count);
    const { data } = (await scenario.api.get(`${scenario.path}/certifications/${body.data.id}`)).body;
    expect(data.checks.map(({ check }: { check: string }) => check)).toHaveLength(count + 1);
    expect({ passed: data.passed, note: data.note }).toEqual({
      passed: format === "slack",
      note: format === "slack" ? expect.stringContaining("verifies no signature") : undefined,
    });
  },
);

test("a 429 whose body has retry_after pauses the webhook as Retry-After does", async () => {
  receiver.respondWith((_, response) => response.writeHead(429).end('{"retry_after":41.5}'));
  const refused = await delivery();
  await carry(refused);
  const { next_attempt_at = "" } = await rowOf(refused);
  expect(Date.parse(next_attempt_at) - Date.now()).toBeGreaterThan(38_000);
  expect(await webhooks.get(scenario.projectId, scenario.webhook.id)).toHaveProperty("probe_at");
});
