import { sendInBatches } from "../../foundation/platform/message-queue.ts";
import { planCatchUp, type WebhookKey, wake } from "./wake-up-store.ts";

/** The line of a webhook is to be looked at: see deliveries/sending/work.ts. Whether that is done depends on the lease of the line. */
export interface WorkCall {
  kind: "work";
  project_id: string;
  webhook_id: string;
}

/** SQS delays a message by at most 15 minutes. The sweep calls the worker when a later time has come. */
const MAX_DELAY_SECONDS = 900;

/** Calls the worker of a webhook for the time `at`. Does not throw: a call that is not accepted is left to the sweep. */
export async function callWorker({ project_id, id }: WebhookKey, at: Date): Promise<void> {
  const delaySeconds = Math.max(0, (at.getTime() - Date.now()) / 1000);
  if (delaySeconds > MAX_DELAY_SECONDS) return;
  const call: WorkCall = { kind: "work", project_id, webhook_id: id };
  const ids = { projectOf: () => project_id, idOf: () => `work:${id}` };
  await sendInBatches("slowDeliveries", [call], ids, delaySeconds);
}

/** A visit to a line, which learns that all that waits there is due. */
export interface LineVisit {
  catchUp(at: Date): void;
}

/**
 * Makes all that waits for a webhook due at once: the receiver has accepted a request, or a user has changed the webhook.
 * An attempt that is made early leaves the plan as it was, if it fails.
 * @param visit the worker that has the line; absent = it is called
 */
export async function catchUp(webhook: WebhookKey, now: Date, visit?: LineVisit): Promise<void> {
  const at = await planCatchUp(webhook, now);
  if (!at) return;
  if (visit) return visit.catchUp(at);
  await wake(webhook, at);
  await callWorker(webhook, at);
}
