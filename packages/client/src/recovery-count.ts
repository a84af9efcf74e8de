import type { Client, Delivery, WebhookRef } from "./client.ts";

/** The page size limit of the API. */
const PAGE_SIZE = 100;
/** Upper bound on the deliveries that one count reads: 100 requests. */
export const MAX_READ = 10_000;

/** What a recovery sends: deliveries that failed or are held, and those that wait for a later attempt. */
export const recoverableStatuses = ["failed", "held", "pending", "shadowed", "superseded"] as const;
export type RecoverableStatus = (typeof recoverableStatuses)[number];

interface CountOptions {
  since: Date;
  /** Absent counts all but shadowed and superseded ones. */
  status?: RecoverableStatus | undefined;
  /** Upper bound on the deliveries to read. Default: MAX_READ. */
  maxRead?: number;
}

export interface RecoveryCount extends Record<RecoverableStatus, number> {
  /** The deliveries that a recovery would send again, as far as they were read. */
  count: number;
  /** Whether all deliveries since the time were read. If not, `count` is a lower bound. */
  complete: boolean;
}

/**
 * Counts the deliveries that a recovery would send again, without changing anything. Reads the delivery list, newest first,
 * back to the time or to the upper bound. Like a recovery, goes by the time of the event, which is the first part of a
 * delivery's id, and leaves out test deliveries.
 */
export async function countRecoverable(
  api: Pick<Client, "eachDelivery">,
  webhook: WebhookRef,
  { since, status, maxRead = MAX_READ }: CountOptions,
): Promise<RecoveryCount> {
  const counted = { failed: 0, held: 0, pending: 0, shadowed: 0, superseded: 0 };
  let count = 0;
  const result = (complete: boolean) => ({ count, ...counted, complete });
  let read = 0;
  for await (const delivery of api.eachDelivery(webhook, { limit: PAGE_SIZE })) {
    if (eventTime(delivery.id) < since.getTime()) return result(true);
    if (read === maxRead) return result(false);
    read += 1;
    const found = recoverableStatuses.find((each) => each === delivery.status);
    const isOnRequest = found === "shadowed" || found === "superseded";
    const isWanted = status === undefined ? !isOnRequest : found === status;
    if (found === undefined || !isWanted || delivery.test || !isRecoverable(delivery)) continue;
    counted[found] += 1;
    count += 1;
  }
  return result(true);
}

/** Returns false for a delivery that is being sent, or about to be. */
const isRecoverable = ({ status, waiting_for }: Delivery): boolean =>
  status !== "pending" || waiting_for === "schedule" || waiting_for === "recovery";

/** `15 would be sent again: 10 failed, 2 held, 3 waiting.` */
export function recoveryCountText(
  { count, failed, held, pending, shadowed, superseded, complete }: RecoveryCount,
  maxRead = MAX_READ,
): string {
  const usual = `${failed} failed, ${held} held, ${pending} waiting`;
  const parts = shadowed > 0 ? `${shadowed} shadowed` : superseded > 0 ? `${superseded} superseded` : usual;
  if (complete) return `${count} would be sent again: ${parts}.`;
  return `At least ${count} would be sent again: ${parts}. Only the newest ${maxRead} deliveries were counted.`;
}

/** The time in a UUIDv7, in milliseconds (RFC 9562, section 5.7). */
const eventTime = (id: string): number => Number.parseInt(id.replace("-", "").slice(0, 12), 16);
