import { projectSuspended } from "../../foundation/platform/errors.ts";

/*
 * The suspension of a project. The item that counts its webhooks and each of its webhooks have the time of it, so that
 * neither fan-out nor the senders need a further read.
 */

interface Suspendable {
  /** Time of the suspension; absent = not suspended. */
  suspended_at?: string;
}

/** Returns whether the deliveries of a webhook are held: it is disabled, or its project is suspended. */
export const holdsDeliveries = ({ disabled_at, suspended_at }: Suspendable & { disabled_at?: string }): boolean =>
  disabled_at !== undefined || suspended_at !== undefined;

/**
 * Rejects what sends, creates or changes, and reads of deliveries, statistics and events: a project is suspended because it uses too
 * much. Its webhooks, audit log and credentials can be read and deleted, so that the owner sees why and can revoke a leaked credential.
 * @throws ApiError `project_suspended` for a webhook, or the state of a project, that is suspended
 */
export function requireNotSuspended({ suspended_at }: Suspendable): void {
  if (suspended_at !== undefined) throw projectSuspended();
}
