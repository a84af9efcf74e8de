import type { Actor } from "../../foundation/access/actor.ts";
import { chargeChallenge } from "../../foundation/budgets/request-budget-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { protocols } from "../../foundation/manifest/protocols.ts";
import { settings } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { present } from "../../foundation/platform/present.ts";
import { sha256Hex } from "../../foundation/platform/sha256.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { invalidField } from "../../foundation/schema/input.ts";
import { parseCidrs } from "../receiver/receiver-address.ts";
import type { Subscription } from "../webhook/webhook.ts";
import { rotateSecret } from "../webhook/webhook-secret-store.ts";
import { remove, webhookNotFound } from "../webhook/webhook-store.ts";
import { challenge, SUBSCRIPTION_HEADER } from "./challenge.ts";
import {
  CHALLENGES_PER_MINUTE_PER_USER,
  endOf,
  SECRET_OVERLAP_SECONDS,
  type SubscriptionInput,
  subscriptionId,
  subscriptionInput,
} from "./subscription.ts";
import * as subscriptions from "./subscription-store.ts";

/**
 * Makes, refreshes or ends the caller's subscription to one event at one URL. A new one, and one that no longer sends,
 * begins only when the callback has returned a challenge. It needs what reading the events needs: it sends nothing that
 * the caller could not read.
 */
export const handler = defineEndpoint(protocols.subscribe, {
  input: () => subscriptionInput(parseCidrs(settings.webhookAllowCidrs())),
  async run({ params: { project_id }, input, identity, actor, now }) {
    if (identity.authType === "workflow")
      throw new ApiError("forbidden", "A workflow cannot subscribe: its token is valid for the length of a job.");
    const id = subscriptionId(identity, project_id, input);
    const known = await subscriptions.findSubscription(project_id, id);
    if (input.ttl_seconds === 0) {
      if (!known) throw webhookNotFound();
      await remove(project_id, id, actor);
      return ok({ id, expires_at: now.toISOString() });
    }
    // By its receiver or by failures, a refresh with a challenge takes it back; what an admin has decided, it does not.
    if (known?.disabled_reason === "manual")
      throw new ApiError("forbidden", "An admin of the project, or the operator, has disabled this subscription.");
    const { secret } = input;
    if (secret === undefined) throw invalidField("secret", "is required");
    const key_hash = await subscriptions.secretSentBy(identity);
    const subscription: Subscription = {
      user_id: identity.userId,
      ...(key_hash !== undefined && { key_hash }),
      expires_at: endOf(identity, input.ttl_seconds, now),
      secret_hash: sha256Hex(secret),
    };
    const isSending = known !== undefined && !subscriptions.hasEnded(known, now) && known.disabled_at === undefined;
    if (!isSending) await requireWanted(input.url, secret, id, identity.userId, now);
    const before = known ?? (await inserted(input, secret, { id, project_id, subscription }, actor, now));
    if (before) await refreshed(before, secret, subscription, actor, now);
    return ok({ id, expires_at: subscription.expires_at });
  },
});

/** @throws ApiError `conflict`, with the category in `details`, unless the callback returns the challenge */
async function requireWanted(url: string, secret: string, id: string, userId: string, now: Date): Promise<void> {
  await chargeChallenge(userId, CHALLENGES_PER_MINUTE_PER_USER, now);
  const reason = await challenge(url, secret, id, now);
  if (reason === undefined) return;
  const details = [{ path: "url", message: reason }];
  throw new ApiError("conflict", `The callback has not confirmed that it wants the events: ${reason}.`, { details });
}

type Ids = { id: string; project_id: string; subscription: Subscription };

/** @returns the subscription that another request has stored meanwhile; undefined = it is stored */
async function inserted(input: SubscriptionInput, secret: string, ids: Ids, actor: Actor, now: Date) {
  const { url, event } = input;
  const webhook = {
    ...ids,
    url,
    name: `assistant: ${event}`,
    events: [event],
    ...present(input, ["filter"]),
    delivery: "latest" as const,
    created_at: now.toISOString(),
  };
  const headers: [string, string][] = [[SUBSCRIPTION_HEADER, ids.id]];
  if (await subscriptions.insert({ webhook, secret, headers }, actor, now)) return undefined;
  return subscriptions.findSubscription(ids.project_id, ids.id);
}

async function refreshed(
  before: subscriptions.Subscribed,
  secret: string,
  subscription: Subscription,
  by: Actor,
  now: Date,
): Promise<void> {
  // Before the hash: after a crash in between, the next refresh replaces the secret by itself.
  if (before.subscription.secret_hash !== subscription.secret_hash) {
    const expiresAt = addSeconds(now, SECRET_OVERLAP_SECONDS);
    await rotateSecret(before, secret, { expiresAt, at: now.toISOString(), by });
  }
  if (!(await subscriptions.refresh(before, subscription))) throw webhookNotFound();
}
