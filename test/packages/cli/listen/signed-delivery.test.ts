import { randomUUID } from "node:crypto";
import { webhookPayloadSchemas } from "../../../../contract/responses/payload.ts";
import { webhookEventNames } from "../../../../functions/foundation/manifest/events.ts";
import { signatureHeaders } from "../../../../functions/webhooks/receiver/signature.ts";
import { generateSecret } from "../../../../packages/cli/src/listen/forward-secret.ts";
import { sampleDelivery } from "../../../../packages/cli/src/listen/sample-delivery.ts";
import { deliveryHeaders, localDeliveryId } from "../../../../packages/cli/src/listen/signed-delivery.ts";
import { samplePayloads } from "../../../../packages/client/src/values.ts";

const secrets = [generateSecret(), generateSecret(), generateSecret()];
const at = new Date("2026-11-21T04:04:29.999Z");

test.each([1, 2, 3])("deliveryHeaders with %i secrets returns the headers that the service sends", async (count) => {
  const body = '{"event":"deploy.failed","data":{"n":9007199254740993,"text":"é 🚀"}}';
  const id = "01a1fc46-ece3-7718-84b7-ff6464808948";
  const [current = "", ...previous] = secrets.slice(0, count);
  const sent = await deliveryHeaders(
    { id, event: "deploy.failed", body: Buffer.from(body) },
    secrets.slice(0, count),
    at,
  );
  expect(sent).toEqual({
    "Content-Type": "application/json",
    "User-Agent": "Deployment-Webhooks/1.0",
    "X-Service-Event": "deploy.failed",
    "X-Service-Delivery": id,
    "X-Service-Sequence": "17952338690271",
    ...signatureHeaders({ deliveryId: id, at, body }, current, previous),
  });
});

test("localDeliveryId is a UUID of the event's time, always the same for an event, and another than its id", () => {
  const [event, other] = ["01a1fc46-ece3-7718-84b7-ff6464808948", "01a1fc46-ece3-7718-84b7-ff6464808949"];
  expect(localDeliveryId(event)).toBe("01a1fc46-ece3-7833-857c-623dc2948c3d");
  expect(localDeliveryId(other)).toMatch(/^01a1fc46-ece3-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(localDeliveryId(other)).not.toBe(localDeliveryId(event));
});

test("sampleDelivery has a new id that begins with its time, and the fields of an event", () => {
  const [first, second] = [sampleDelivery("deploy.succeeded", "p", at), sampleDelivery("deploy.succeeded", "p", at)];
  expect(first.id).toMatch(/^01a1fc46-f0af-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(second.id).not.toBe(first.id);
  expect(JSON.parse(first.body.toString())).toEqual({
    event: "deploy.succeeded",
    project_id: "p",
    deployment_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    timestamp: "2026-11-21T04:04:29.999Z",
    data: { ...samplePayloads["deploy.succeeded"].data, test: true },
  });
});

test("deliveryHeaders of a sample mark it as a test", async () => {
  const headers = await deliveryHeaders(sampleDelivery("deploy.failed", "p", at), secrets, at);
  expect(headers).toHaveProperty("X-Service-Test", "true");
});

test("generateSecret creates secrets like those of the service", () => {
  expect(secrets[0]).toMatch(/^whsec_[0-9a-f]{64}$/);
  expect(new Set(secrets).size).toBe(3);
});

test.each(webhookEventNames)("sampleDelivery of %s matches the payload schema of the API", (name) => {
  const { event, body } = sampleDelivery(name, randomUUID(), at);
  const payload: unknown = JSON.parse(body.toString());
  expect(event).toBe(name);
  expect(webhookPayloadSchemas[name]?.parse(payload)).toEqual(payload);
});
