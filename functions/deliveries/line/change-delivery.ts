import { log } from "../../foundation/platform/log.ts";
import { randomId } from "../../foundation/platform/random-id.ts";
import { removePlace } from "./backlog-store.ts";
import type { Delivery } from "./delivery.ts";
import { put } from "./delivery-store.ts";
import type { Transition } from "./delivery-transitions.ts";

/** What became of a row. */
export interface Change {
  /** The row as it is now; undefined = none exists. */
  row: Delivery | undefined;
  /** Whether this call wrote the row. */
  isWritten: boolean;
  /** The row to which the transition was applied last. */
  before: Delivery | undefined;
}

/**
 * Changes the row of a delivery: the only write of rows. It takes effect only on the row that the transition has seen,
 * which the version shows. If another process was faster, the transition is applied to that row. The place that the row
 * leaves is removed.
 * @param delivery the row as the caller knows it; without a version, the caller believes that none exists
 * @param atNewPlace writes a new place and returns the transition to it. Called before a row would name the same place for the
 *   second time: the first write may have taken effect although its response was lost, and a worker may have served and removed
 *   the place since. Absent = no other process removes it
 */
export async function change(
  delivery: Delivery,
  first: Transition,
  atNewPlace?: () => Promise<Transition>,
): Promise<Change> {
  let transition = first;
  let before = delivery.version === undefined ? undefined : delivery;
  for (;;) {
    const next = transition(before);
    if (!next) return { row: before, isWritten: false, before };
    const written = { ...next, version: randomId() };
    const result = await put(written, before?.version);
    if (result.isWritten) {
      if (before?.place !== undefined && before.place !== written.place) await leave(delivery.webhook_id, before.place);
      return { row: written, isWritten: true, before };
    }
    before = result.stored;
    const isSamePlace = next.place !== undefined && transition(before)?.place === next.place;
    if (atNewPlace && isSamePlace) transition = await atNewPlace();
  }
}

/** Removes a place that its row has left. Does not throw: the worker removes leftovers. */
async function leave(webhookId: string, place: string): Promise<void> {
  try {
    await removePlace(webhookId, place);
  } catch (error) {
    log.warn("place not removed", { webhook_id: webhookId, reason: String(error) });
  }
}
