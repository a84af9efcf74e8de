import { randomBytes } from "node:crypto";
import {
  type Certification,
  createCertification,
} from "../../../../functions/deliveries/certification/certification.ts";
import * as certifications from "../../../../functions/deliveries/certification/certification-store.ts";
import type { CertifyCall } from "../../../../functions/deliveries/line/delivery-queue.ts";
import { handler as send } from "../../../../functions/deliveries/sending/send.ts";
import { handler as sendSlow } from "../../../../functions/deliveries/sending/send-slow.ts";
import { bodySignature } from "../../../../functions/webhooks/receiver/signature.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { receivedAgain, watchMessages } from "../../../support/attempts.ts";
import { failDynamo, isCall, restoreAws } from "../../../support/aws-calls.ts";
import {
  changeSecrets,
  changeWebhook,
  givenWebhook,
  prepareDeliveries,
  sqsEvent,
  takeMessages,
} from "../../../support/deliveries.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { useReceiver } from "../../../support/receiver.ts";

/* The certification by the slow sender: crashes, states that change meanwhile, and time. */

const allDone = { batchItemFailures: [] };
const failed = { batchItemFailures: [{ itemIdentifier: "m0" }] };
const left = (ms: number) => ({ getRemainingTimeInMillis: () => ms });

const receiver = useReceiver("test");
let webhook: Webhook;
let secret: string;
let certification: Certification;
let call: CertifyCall;
beforeAll(prepareDeliveries);
beforeEach(async () => {
  ({ webhook, secret } = await givenWebhook({ url: receiver.url }));
  certification = createCertification(webhook.id, new Date(), randomBytes(16));
  await certifications.insert(certification);
  const ids = { project_id: webhook.project_id, webhook_id: webhook.id, certification_id: certification.id };
  call = { kind: "certify", ...ids };
});
afterEach(() => takeMessages("slowDeliveries"));

const stored = () => certifications.get(webhook.id, certification.id);

test("a certification stores a result for each probe", async () => {
  expect(await sendSlow(sqsEvent(call), left(60_000))).toEqual(allDone);
  const { finished_at, results = {} } = await stored();
  expect(finished_at).toBeDefined();
  expect(Object.keys(results).sort()).toEqual([
    "cut_body",
    "forged_signature",
    "repeated",
    "stale_timestamp",
    "unusual_body",
    "valid",
  ]);
});

test.each(["webhooks", "deliveries"])(
  "a certification that cannot be stored in %s goes back to the queue, and sends all probes again",
  async (table) => {
    failDynamo((aws) => isCall(aws, "UpdateItem", table));
    expect(await sendSlow(sqsEvent(call), left(60_000))).toEqual(failed);
    expect(await stored()).toEqual(certification);
    restoreAws();
    expect(await sendSlow(receivedAgain(call), left(60_000))).toEqual(allDone);
    expect(receiver.received).toHaveLength(12);
    expect((await stored()).finished_at).toBeDefined();
    expect((await webhooks.get(webhook.project_id, webhook.id)).last_certification?.id).toBe(certification.id);
  },
);

test("a message of a finished certification sends nothing, and the first results stay", async () => {
  const at = new Date().toISOString();
  await certifications.finish(certification, {
    results: { valid: { duration_ms: 1, status_code: 200 } },
    finished_at: at,
  });
  const first = await stored();
  expect(await sendSlow(receivedAgain(call), left(60_000))).toEqual(allDone);
  await certifications.finish(certification, { results: {}, finished_at: new Date().toISOString() });
  expect(await stored()).toEqual(first);
  expect(receiver.received).toEqual([]);
});

test("a webhook that got another URL during its certification is not certified", async () => {
  receiver.respondWith((_, response) => {
    void webhooks
      .update(webhook.project_id, webhook.id, { url: `${receiver.url}other` }, new Date().toISOString())
      .finally(() => response.writeHead(200).end());
  });
  expect(await sendSlow(sqsEvent(call), left(60_000))).toEqual(allDone);
  expect((await stored()).finished_at).toBeDefined();
  expect(await webhooks.get(webhook.project_id, webhook.id)).not.toHaveProperty("last_certification");
});

test("a message that is older than ten minutes sends nothing", async () => {
  fakeDate().advance(601);
  expect(await sendSlow(sqsEvent(call), left(60_000))).toEqual(allDone);
  expect(receiver.received).toEqual([]);
  expect(await stored()).toEqual(certification);
});

test("a deleted webhook gets nothing", async () => {
  await webhooks.remove(webhook.project_id, webhook.id);
  expect(await sendSlow(sqsEvent(call), left(60_000))).toEqual(allDone);
  expect(receiver.received).toEqual([]);
});

test("a webhook whose project was suspended meanwhile gets nothing, and the report says so", async () => {
  await changeWebhook(webhook, { suspended_at: new Date().toISOString() });
  expect(await sendSlow(sqsEvent(call), left(60_000))).toEqual(allDone);
  expect(receiver.received).toEqual([]);
  expect(await stored()).toMatchObject({ results: {}, finished_at: expect.any(String) });
});

test("with too little time for two requests in sequence, the certification is enqueued again", async () => {
  const sent = watchMessages();
  expect(await sendSlow(sqsEvent(call), left(47_999))).toEqual(allDone);
  expect(sent).toMatchObject([{ queue: "slowDeliveries", delaySeconds: 0, message: call }]);
  expect(receiver.received).toEqual([]);
  expect(await sendSlow(sqsEvent(call), left(48_000))).toEqual(allDone);
  expect((await stored()).finished_at).toBeDefined();
});

test("during a rotation, only valid signatures are those of the unexpired secrets", async () => {
  const [previous, expired] = [`whsec_${"1".repeat(64)}`, `whsec_${"2".repeat(64)}`];
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  // It was valid at the time of the stale timestamp.
  const tenMinutesAgo = new Date(Date.now() - 600_000).toISOString();
  await changeSecrets(webhook, {
    previous_1: previous,
    previous_1_expires_at: inAnHour,
    previous_2: expired,
    previous_2_expires_at: tenMinutesAgo,
  });
  expect(await sendSlow(sqsEvent(call), left(60_000))).toEqual(allDone);
  expect(receiver.received).toHaveLength(6);
  const older = receiver.received.map(({ headers, body }) => {
    const isRight = headers["x-service-signature"] === bodySignature(body, secret);
    const isPrevious = headers["x-service-signature-previous"] === bodySignature(body, previous);
    return `${isRight} ${isPrevious}`;
  });
  expect(older.sort()).toEqual(["false false", "false false", "true true", "true true", "true true", "true true"]);
});

test("the sender of carried deliveries does not certify", async () => {
  expect(await send(sqsEvent(call), left(60_000))).toEqual(failed);
  expect(receiver.received).toEqual([]);
});
