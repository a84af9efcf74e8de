import { KeyedSemaphore } from "./keyed-semaphore.ts";
import { usualMs } from "./response-times.ts";

/*
 * Limits on the requests in flight in this process, so that a hanging receiver or a project with many of them does not
 * delay the deliveries of others.
 */

/** Max requests in flight to one webhook: as many as a batch has messages. */
const MAX_PER_WEBHOOK = 10;
/** Max requests in flight to all webhooks of a project. */
const MAX_PER_PROJECT = 40;

/** Max wait without any slot being released: this long, or twice the usual response time of the webhook. */
const MIN_PATIENCE_MS = 200;
const MAX_PATIENCE_MS = 1_000;
/** Max wait overall. */
const MAX_SLOT_WAIT_MS = 2_000;

const webhookSlots = new KeyedSemaphore(MAX_PER_WEBHOOK);
const projectSlots = new KeyedSemaphore(MAX_PER_PROJECT);

/**
 * Acquires a slot for a request to a webhook.
 * @returns a function that releases the slot, to be called once; undefined when no slot was free in time
 */
export async function acquireSlot(projectId: string, webhookId: string): Promise<(() => void) | undefined> {
  const patienceMs = Math.min(MAX_PATIENCE_MS, Math.max(MIN_PATIENCE_MS, 2 * (usualMs(webhookId) ?? 0)));
  const releaseWebhook = await webhookSlots.acquire(webhookId, patienceMs, MAX_SLOT_WAIT_MS);
  if (!releaseWebhook) return undefined;
  const releaseProject = await projectSlots.acquire(projectId, MIN_PATIENCE_MS, MAX_SLOT_WAIT_MS);
  if (!releaseProject) {
    releaseWebhook();
    return undefined;
  }
  return () => {
    releaseProject();
    releaseWebhook();
  };
}
