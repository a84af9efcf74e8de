import { randomBytes, randomInt, randomUUID } from "node:crypto";
import * as z from "zod/mini";
import type { Actor } from "../../foundation/access/actor.ts";
import { MAX_PROJECTS_PER_CREDENTIAL } from "../../foundation/access/identity.ts";
import { permissionSet } from "../../foundation/access/platform-permissions.ts";
import { permissions } from "../../foundation/manifest/permissions.ts";
import { sha256Hex } from "../../foundation/platform/sha256.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { displayName, fields, invalidField, isoTime, setOf, uuid } from "../../foundation/schema/input.ts";
import type { ApiKeyInput } from "../api-keys/api-key-input.ts";

/*
 * The device authorization flow of RFC 8628 in the form of this API: a machine without a browser shows a code, a user
 * confirms it in the console, and the machine gets an API key of that user.
 */

/** Lifetime of a code. */
export const LIFETIME_SECONDS = 600;
/** Minimum time between two polls of a machine. */
export const INTERVAL_SECONDS = 5;
const MAX_KEY_DAYS = 90;

/** A pending or decided sign-in. */
export interface SignIn {
  /** `device:` and the hash of the device code. */
  key_hash: string;
  id: string;
  /** Name that the machine gave itself. Untrusted. */
  client: string;
  /** IP address of its request. */
  address?: string | undefined;
  created_at: string;
  valid_until: string;
  /** Time of the last accepted poll. */
  asked_at?: string;
  decision?: "approve" | "deny";
  /** Set by the decision: the user, and the limits of the key. */
  by?: Actor;
  user_id?: string;
  key?: Omit<ApiKeyInput, "expires_at"> & { expires_at: string };
  delete_after: number;
}

export const deviceKey = (deviceCode: string): string => `device:${sha256Hex(deviceCode)}`;

/** RFC 8628, section 6.1: no vowels, so that codes do not spell words. 20 letters and 8 positions: 34.5 bits. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const LETTERS_OF_A_CODE = 8;

/** Returns the key of the item that maps a user code to its sign-in. Ignores case and all characters but letters. */
export const userCodeKey = (typed: string): string =>
  `user-code:${sha256Hex(typed.toUpperCase().replaceAll(/[^A-Z]/g, ""))}`;

export function newCodes(): { deviceCode: string; userCode: string } {
  const letters = Array.from({ length: LETTERS_OF_A_CODE }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return { deviceCode: randomBytes(32).toString("base64url"), userCode: `${letters.slice(0, 4)}-${letters.slice(4)}` };
}

export function newSignIn(deviceCode: string, client: string, address: string | undefined, now: Date): SignIn {
  const valid_until = addSeconds(now, LIFETIME_SECONDS);
  const delete_after = Math.ceil(Date.parse(valid_until) / 1000);
  return {
    key_hash: deviceKey(deviceCode),
    id: randomUUID(),
    client,
    address,
    created_at: now.toISOString(),
    valid_until,
    delete_after,
  };
}

export const signInInput = fields({
  client: z.optional(displayName),
  device_code: z.optional(z.string("must be a string").check(z.maxLength(100, "is no code of a sign-in"))),
});

export const decisionInput = () =>
  fields({
    user_code: displayName,
    decision: z.optional(z.enum(["approve", "deny"], "must be approve or deny")),
    name: z.optional(displayName),
    permissions: z.optional(permissionSet(permissions)),
    project_ids: z.optional(setOf(uuid, MAX_PROJECTS_PER_CREDENTIAL)),
    expires_at: z.optional(isoTime),
  });
type Decision = z.output<ReturnType<typeof decisionInput>>;

/**
 * Returns the limits of an approved key.
 * @throws ApiError `validation_error` without a name, or with an expiry in more than 90 days
 */
export function keyOf(
  { name, permissions: own, project_ids, expires_at }: Decision,
  now: Date,
): NonNullable<SignIn["key"]> {
  if (name === undefined) throw invalidField("name", "is required");
  const latest = new Date(addSeconds(now, MAX_KEY_DAYS * 24 * 3600));
  if (expires_at === undefined || expires_at > latest || expires_at <= now) {
    throw invalidField("expires_at", `must be a time in the next ${MAX_KEY_DAYS} days`);
  }
  return {
    name,
    ...(own && { permissions: own }),
    ...(project_ids && { project_ids }),
    expires_at: expires_at.toISOString(),
  };
}

const statuses = { approve: "approved", deny: "denied" } as const;

/** Returns what the user sees of a sign-in. */
export const toShown = ({ client, address, created_at, valid_until, decision }: SignIn) => ({
  client,
  address: address ?? null,
  created_at,
  valid_until,
  status: decision === undefined ? ("pending" as const) : statuses[decision],
});
