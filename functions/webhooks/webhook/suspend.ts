import * as z from "zod/mini";
import { log } from "../../foundation/platform/log.ts";
import { fields, orRequired, parse, uuid } from "../../foundation/schema/input.ts";
import * as suspensions from "./suspension-store.ts";
import * as webhooks from "./webhook-store.ts";

/**
 * `suspended`: true suspends the project, false ends the suspension. With `webhook_id`: true disables this webhook, false enables
 * it.
 */
export const suspensionInput = fields({
  project_id: uuid,
  webhook_id: z.optional(uuid),
  suspended: z.boolean(orRequired("must be true or false")),
});

export interface SuspensionResult {
  project_id: string;
  suspended: boolean;
  /**
   * Time at which the suspension began, also of one that this call has ended; null = there was none. With `webhook_id`: time at
   * which the webhook was disabled; null = it is enabled.
   */
  suspended_at: string | null;
  /** Ids of the webhooks of the project, or the one of the request. Each is recovered by itself. */
  webhooks: string[];
}

/**
 * Suspends a project or ends its suspension. While a project is suspended, it has no new or changed webhooks, secrets and credentials,
 * test deliveries, redeliveries, recoveries and replays, and its events and pending deliveries are held. After this returns, no request
 * is sent to a receiver, except by a sender that has already read the webhook. When the suspension ends, held deliveries
 * stay held: a recovery of each webhook sends them. With `webhook_id`, disables or enables that webhook, as an admin of the
 * project could. Idempotent. The platform and operators invoke this function with IAM credentials.
 * @param input `{project_id, suspended}`, and `webhook_id` for one webhook
 * @throws ApiError `not_found` when the project has no webhook `webhook_id`
 */
export async function handler(input: unknown): Promise<SuspensionResult> {
  const { project_id, webhook_id, suspended } = parse(suspensionInput, input);
  if (webhook_id !== undefined) return setEnabled(project_id, webhook_id, !suspended);
  const at = suspended ? new Date().toISOString() : undefined;
  let before: Awaited<ReturnType<typeof suspensions.markSuspended>>;
  // Users of the project create at most 20 webhooks, so this ends.
  do before = await suspensions.markSuspended(project_id, at);
  while (before === undefined);
  const suspended_at = before.suspended_at ?? at;
  log.info(suspended ? "project suspended" : "suspension ended", { project_id, suspended_at });
  return { project_id, suspended, suspended_at: suspended_at ?? null, webhooks: before.webhooks.map(({ id }) => id) };
}

async function setEnabled(project_id: string, webhook_id: string, enabled: boolean): Promise<SuspensionResult> {
  const { disabled_at } = await webhooks.update(project_id, webhook_id, { enabled }, new Date().toISOString());
  log.info(enabled ? "webhook enabled" : "webhook disabled", { project_id, webhook_id });
  return { project_id, suspended: !enabled, suspended_at: disabled_at ?? null, webhooks: [webhook_id] };
}
