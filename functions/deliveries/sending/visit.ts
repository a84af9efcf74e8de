import { laterOf } from "../../foundation/platform/time.ts";
import type { WakeUp, WebhookKey } from "../../webhooks/webhook/wake-up-store.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import type { LineVisit } from "../../webhooks/webhook/worker-call.ts";
import { NewerStates } from "./newer-states.ts";
import { hasTimeToAttempt } from "./time-left.ts";

/** One visit of a worker to the line of a webhook: what it has seen, and when it ends. */
export class Visit implements LineVisit {
  readonly key: WebhookKey;
  readonly remainingMs: () => number;
  readonly leaseId: string;
  /** As it was leased, or is stored by now. */
  wakeUp: WakeUp;
  /** As it was read last; null = it is deleted, undefined = it was not read. */
  webhook: Webhook | null | undefined;
  /** All that waits is due at once: a `catch_up_at` up to this one is served. Undefined = each delivery at its own time. */
  catchUpAt: string | undefined;
  readonly newerStates: NewerStates;
  /** Deliveries of which an attempt was made, or is not due. */
  readonly done = new Set<string>();
  /** Places that are or were served. */
  readonly seen = new Set<string>();
  /** Resolves when the receiver may get several requests at once. */
  readonly severalAtOnce = Promise.withResolvers<void>();
  /** Attempts in a row that failed, besides those that users wait for. */
  failures = 0;
  /** The outcome of a request waits in a queue to be recorded. No other worker may send that delivery until then. */
  isUnrecorded = false;
  isStopped = false;
  /** What the visit has seen is not looked at before, nor, if it has stopped, what no user waits for. */
  notBefore = new Date(0);

  constructor(key: WebhookKey, remainingMs: () => number, leaseId: string, wakeUp: WakeUp) {
    this.key = key;
    this.newerStates = new NewerStates(key.project_id);
    this.remainingMs = remainingMs;
    this.leaseId = leaseId;
    this.wakeUp = wakeUp;
    this.beginCatchUp();
  }

  catchUp(at: Date): void {
    this.wakeUp = { ...this.wakeUp, catch_up_at: at.toISOString() };
    this.beginCatchUp();
  }

  /** Makes all that waits due, if that is planned by now, and was not done. */
  beginCatchUp(): void {
    const { catch_up_at = "", caught_up_at = "" } = this.wakeUp;
    if (catch_up_at !== caught_up_at && catch_up_at <= new Date().toISOString()) this.catchUpAt = catch_up_at;
  }

  get isOver(): boolean {
    return this.isStopped || this.isUnrecorded || !hasTimeToAttempt(this.remainingMs);
  }

  stop(notBefore: Date): void {
    this.isStopped = true;
    this.postpone(notBefore);
  }

  postpone(notBefore: Date): void {
    this.notBefore = laterOf(this.notBefore, notBefore);
  }
}
