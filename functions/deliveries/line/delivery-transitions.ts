import { randomId } from "../../foundation/platform/random-id.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import type { Place } from "./backlog-store.ts";
import {
  type Attempt,
  type Delivery,
  type DeliveryStatus,
  expiresAt,
  type ShadowedRequest,
  withAttempt,
} from "./delivery.ts";

/*
 * What can happen to the row of a delivery. Pure functions: `change` (change-delivery.ts) applies them to the row as it is
 * stored, again if another process has changed it meanwhile.
 */

/** Returns the next row, or undefined when there is nothing to write. `row` is undefined when no row exists. */
export type Transition = (row: Delivery | undefined) => Delivery | undefined;

export type PlaceKey = Pick<Place, "entry" | "due">;

const waitingAt = ({ rejections, superseded_by, ...row }: Delivery, { entry, due }: PlaceKey): Delivery => ({
  ...row,
  status: "pending",
  place: entry,
  next_attempt_at: due,
});

/** A new delivery waits in the backlog. */
export const inserted =
  (delivery: Delivery, place: PlaceKey): Transition =>
  (row) =>
    row ? undefined : waitingAt(delivery, place);

/** A new delivery is held, without a place. */
export const insertedHeld =
  (delivery: Delivery): Transition =>
  (row) =>
    row ? undefined : { ...delivery, status: "held" };

/**
 * A row that waits at this place is held. It keeps the place until its webhook was read again, so that the next visit
 * finishes what a crash interrupts. A row with another place is decided there.
 */
export const held =
  (place: string): Transition =>
  (row) => {
    if (row?.status !== "pending" || row.place !== place) return undefined;
    const { next_attempt_at, ...rest } = row;
    return { ...rest, status: "held" };
  };

/** A held row waits again. @param from the place it was held with; undefined = it had none */
export const reopened =
  (from: string | undefined, to: PlaceKey): Transition =>
  (row) =>
    row?.status === "held" && row.place === from ? waitingAt(row, to) : undefined;

/** The webhook is deleted. */
export const cancelled: Transition = (row) =>
  row?.status === "pending" || row?.status === "held" ? { ...withoutPlan(row), status: "cancelled" } : undefined;

/** The row without a planned attempt, and without the reason for it. */
const withoutPlan = ({ place, trigger, next_attempt_at, rejections, ...row }: Delivery): Delivery => row;

/** A redelivery that waits for longer enters its line again when it is requested again, in case its place is lost. */
export const LOST_AFTER_SECONDS = 120;

/** A request of a user for attempts. */
interface UserRequest {
  at: Date;
  /** The time and an id: two requests can come in the same millisecond. */
  key: string;
}

export const newRequest = (at: Date): UserRequest => ({ at, key: `${at.toISOString()} ${randomId()}` });

/**
 * A user requests an attempt. The retry schedule restarts. A delivery whose redelivery waits already stays unchanged, so
 * concurrent requests lead to one attempt.
 * @param statuses absent = any
 */
export const requested =
  (trigger: "redeliver" | "recover", { at, key }: UserRequest, statuses?: readonly DeliveryStatus[]) =>
  (place: PlaceKey): Transition =>
  (row) => {
    if (!row || (statuses && !statuses.includes(row.status))) return undefined;
    // The SDK repeats a write whose response was lost. By then the attempt may have been made.
    if (row.requested_at === key) return undefined;
    const isRecent = (row.requested_at ?? "") >= addSeconds(at, -LOST_AFTER_SECONDS);
    if (row.status === "pending" && row.trigger === "redeliver" && isRecent) return undefined;
    return {
      ...waitingAt(row, place),
      trigger,
      requested_at: key,
      attempts_before_schedule: row.attempt_count,
      expires_at: expiresAt(at),
    };
  };

/**
 * Whether an attempt decides what follows:
 * - `decisive`: it does.
 * - `requested`: a user requested another attempt during its request. That attempt follows whatever the outcome of this one.
 * - `overtaken`: the row has another attempt by now, or no longer waits. Only a success decides.
 * - `expired`: the row existed and does not any more.
 * @param basis the delivery as it was read before the attempt
 */
export function effectOf(
  row: Delivery | undefined,
  basis: Delivery,
): "decisive" | "requested" | "overtaken" | "expired" {
  if (!row) return basis.version === undefined ? "decisive" : "expired";
  const isOpen = row.status === "pending" || row.status === "held";
  if (isOpen && row.requested_at !== basis.requested_at) return "requested";
  return row.status === "pending" && row.attempt_count === basis.attempt_count ? "decisive" : "overtaken";
}

/**
 * The webhook is in shadow mode: what would have been sent is in the row, which waits no longer.
 * @param basis the delivery as it was read
 */
export const shadowed =
  (basis: Delivery, shadow: ShadowedRequest): Transition =>
  (row) =>
    effectOf(row, basis) === "decisive" ? { ...withoutPlan(row ?? basis), status: "shadowed", shadow } : undefined;

/**
 * A newer state of the deployment is on its way: the delivery is not sent.
 * @param basis the delivery as it was read
 * @param by id of the delivery with the newer state
 */
export const superseded =
  (basis: Delivery, by: string): Transition =>
  (row) =>
    effectOf(row, basis) === "decisive"
      ? { ...withoutPlan(row ?? basis), status: "superseded", superseded_by: by }
      : undefined;

/** The attempt was early, and its plan stays. `isRejected`: the receiver accepts others. */
export interface AsPlanned {
  isRejected: boolean;
}

/**
 * Adds an attempt to the row.
 * @param basis the delivery as it was read before the request
 * @param followUp after a failure: the place of the retry, or that the attempt was early and its plan stays; absent = none follows
 */
export const attempted =
  (basis: Delivery, attempt: Attempt, followUp?: PlaceKey | AsPlanned): Transition =>
  (row) => {
    const effect = effectOf(row, basis);
    if (effect === "expired") return undefined;
    const before = row ?? basis;
    if (hasAttempt(before, attempt)) return undefined;
    const number = before.attempt_count + 1;
    const attempts = withAttempt(before, { ...attempt, number });
    const added = { ...before, attempts, attempt_count: number };
    if (effect === "requested") return { ...added, attempts_before_schedule: number };
    if (attempt.error_code === undefined) return { ...withoutPlan(added), status: "succeeded" };
    if (effect === "overtaken" || (followUp && "isRejected" in followUp)) {
      const rejections =
        (before.rejections ?? 0) + (followUp && "isRejected" in followUp && followUp.isRejected ? 1 : 0);
      const uncounted = (before.attempts_before_schedule ?? 0) + 1;
      return { ...added, attempts_before_schedule: uncounted, ...(rejections > 0 && { rejections }) };
    }
    const ended = withoutPlan(added);
    return followUp ? waitingAt(ended, followUp) : { ...ended, status: "failed" };
  };

/**
 * Returns whether this attempt is recorded. Its number may differ: another one may have been recorded first. Two that began
 * in the same millisecond count as one only if their outcome is the same too, so that no success is lost.
 */
const hasAttempt = ({ attempts = [] }: Delivery, { at, duration_ms, error_code }: Attempt): boolean =>
  attempts.some((one) => one.at === at && one.duration_ms === duration_ms && one.error_code === error_code);
