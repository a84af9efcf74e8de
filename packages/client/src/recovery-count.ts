import type { Client, WebhookRef } from "./client.ts";

/** The page size limit of the API. */
const PAGE_SIZE = 100;
/** Upper bound on the deliveries that one count reads: 100 requests. */
export const MAX_READ = 10_000;

interface CountOptions {
  since: Date;
  /** Absent counts failed and held ones. */
  status?: "failed" | "held" | "shadowed" | undefined;
  /** Upper bound on the deliveries to read. Default: MAX_READ. */
  maxRead?: number;
}

export interface RecoveryCount {
  /** The deliveries that a recovery would send again, as far as they were read. */
  count: number;
  failed: number;
  held: number;
  /** 0 unless their status was asked for. */
  shadowed: number;
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
  const counted = { failed: 0, held: 0, shadowed: 0 };
  const total = () => counted.failed + counted.held + counted.shadowed;
  const result = (complete: boolean) => ({ count: total(), ...counted, complete });
  const wanted = status === undefined ? ["failed", "held"] : [status];
  let read = 0;
  for await (const delivery of api.eachDelivery(webhook, { limit: PAGE_SIZE })) {
    if (eventTime(delivery.id) < since.getTime()) return result(true);
    if (read === maxRead) return result(false);
    read += 1;
    if (!delivery.test && wanted.includes(delivery.status)) counted[delivery.status as keyof typeof counted] += 1;
  }
  return result(true);
}

/** `12 would be sent again: 10 failed, 2 held.` */
export function recoveryCountText(
  { count, failed, held, shadowed, complete }: RecoveryCount,
  maxRead = MAX_READ,
): string {
  const parts = shadowed > 0 ? `${shadowed} shadowed` : `${failed} failed, ${held} held`;
  if (complete) return `${count} would be sent again: ${parts}.`;
  return `At least ${count} would be sent again: ${parts}. Only the newest ${maxRead} deliveries were counted.`;
}

/** The time in a UUIDv7, in milliseconds (RFC 9562, section 5.7). */
const eventTime = (id: string): number => Number.parseInt(id.replace("-", "").slice(0, 12), 16);
