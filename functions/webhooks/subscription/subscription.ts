import * as z from "zod/mini";
import type { Identity } from "../../foundation/access/identity.ts";
import { deploymentEventRows } from "../../foundation/events/catalogue.ts";
import { sha256Hex } from "../../foundation/platform/sha256.ts";
import { uuidOfHex } from "../../foundation/platform/uuid.ts";
import { fields, orRequired } from "../../foundation/schema/input.ts";
import type { Cidr } from "../receiver/receiver-address.ts";
import type { EventFilter } from "../webhook/event-filter.ts";
import { filterInput } from "../webhook/filter-input.ts";
import { receiverUrl } from "../webhook/webhook.ts";

/*
 * Subscriptions of assistants (MCP Events, SEP-3415): webhooks that a client makes, refreshes and ends by itself. Each
 * has one event, a secret that the client chose and a time at which it ends, and belongs to a user, not to the project.
 * Pure.
 */

/** Upper bound on the challenges per minute and user, for all URLs: each is a request to an unconfirmed address. */
export const CHALLENGES_PER_MINUTE_PER_USER = 10;

const HOUR_SECONDS = 3600;
const DEFAULT_TTL_SECONDS = 7 * 24 * HOUR_SECONDS;
const MAX_TTL_SECONDS = 30 * 24 * HOUR_SECONDS;
/** A replaced secret signs beside the new one for this long. */
export const SECRET_OVERLAP_SECONDS = HOUR_SECONDS;

const ttlRule = "must be a whole number of seconds, 0 or more";
const secretRule = "must be whsec_ and 24 to 64 bytes in base64";
const BASE64 = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?)$/;

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#webhook-secrets */
function isSecret(text: string): boolean {
  const { length } = Buffer.from(BASE64.exec(text)?.[1] ?? "", "base64");
  return length >= 24 && length <= 64;
}

/** `ttl_seconds`: 0 ends the subscription; absent = the default. `secret`: required unless it ends. */
export const subscriptionInput = (allowed: Cidr[]) =>
  fields({
    url: receiverUrl(allowed),
    event: z
      .string(orRequired("must be the name of an event"))
      .check(z.refine((name) => deploymentEventRows().has(name), "must be the name of a deployment event")),
    filter: z.optional(filterInput),
    secret: z.optional(z.string(secretRule).check(z.refine(isSecret, secretRule))),
    ttl_seconds: z.optional(z.int(ttlRule).check(z.nonnegative(ttlRule))),
  });
export type SubscriptionInput = z.infer<ReturnType<typeof subscriptionInput>>;

/** The caller as a subscription knows it: it ends with the key that made it. */
const principalOf = ({ userId, keyId }: Identity): string => (keyId === undefined ? `user:${userId}` : `key:${keyId}`);

/**
 * Returns the id of a subscription, the same for the same caller, URL, event and filter: no other caller can refresh or
 * end it. It sorts after the ids of webhooks that people create.
 */
export function subscriptionId(caller: Identity, project_id: string, { url, event, filter = {} }: SubscriptionInput) {
  const sorted: [string, unknown][] = Object.entries(filter satisfies EventFilter).toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  );
  const key = JSON.stringify([principalOf(caller), project_id, url, event, sorted]);
  const hex = sha256Hex(key);
  return uuidOfHex(`f${hex.slice(1, 12)}8${hex.slice(13, 16)}8${hex.slice(17, 32)}`);
}

/** Returns when a subscription ends: never after the credential that made it. */
export function endOf({ expiresAt }: Identity, ttlSeconds: number | undefined, now: Date): string {
  const seconds = Math.min(Math.max(ttlSeconds ?? DEFAULT_TTL_SECONDS, HOUR_SECONDS), MAX_TTL_SECONDS);
  const wanted = new Date(now.getTime() + seconds * 1000).toISOString();
  return expiresAt !== undefined && Date.parse(expiresAt) < Date.parse(wanted) ? expiresAt : wanted;
}
