import { randomBytes, randomUUID } from "node:crypto";
import type { SQSRecord } from "aws-lambda";
import { createTables } from "../../bin/local/resources.ts";
import { handler } from "../../functions/attempts/send.ts";
import { createDelivery } from "../../functions/deliveries/delivery.ts";
import { createDeploymentEvent, parseJsonExactly } from "../../functions/deployments/deployment-event.ts";
import { dynamo } from "../../functions/platform/aws.ts";
import { createWebhook, MAX_WEBHOOKS_PER_PROJECT, type Webhook } from "../../functions/webhooks/webhook.ts";
import * as webhooks from "../../functions/webhooks/webhook-store.ts";
import { BODY, type Target, type Way } from "./way.ts";

/* The whole attempt of the Lambda: a read of three items, the request, a write and a log line. */

Object.assign(process.env, await createTables(dynamo()));

const webhookOf = new Map<string, Webhook>();
let projectId = randomUUID();

async function webhookFor({ url, secret }: Target): Promise<Webhook> {
  const existing = webhookOf.get(url);
  if (existing) return existing;
  if (webhookOf.size % MAX_WEBHOOKS_PER_PROJECT === 0) projectId = randomUUID();
  const { webhook } = createWebhook({ url, events: ["deploy.succeeded"] }, projectId, new Date(), randomBytes(48));
  await webhooks.insert(webhook, secret);
  webhookOf.set(url, webhook);
  return webhook;
}

const event = createDeploymentEvent(parseJsonExactly(BODY) as Parameters<typeof createDeploymentEvent>[0]);
const GRACE_SECONDS = 3600;

export const way: Way = {
  async prepare(deliveries) {
    for (const { target } of deliveries) await webhookFor(target);
  },
  async send({ target, id }) {
    const webhook = await webhookFor(target);
    const created = createDelivery(event, webhook, new Date(), GRACE_SECONDS);
    const delivery = { ...created, project_id: webhook.project_id, id };
    const body = JSON.stringify({ kind: "first", delivery });
    const attributes = { SentTimestamp: String(Date.now()), ApproximateReceiveCount: "1" };
    const { batchItemFailures } = await handler({ Records: [{ messageId: id, body, attributes } as SQSRecord] });
    return batchItemFailures.length === 0;
  },
};
