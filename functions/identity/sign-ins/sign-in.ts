import { createHash, randomBytes, randomInt, randomUUID } from "node:crypto";
import * as z from "zod/mini";
import type { Actor } from "../../foundation/access/actor.ts";
import { MAX_PROJECTS_PER_CREDENTIAL } from "../../foundation/access/identity.ts";
import { permissionSet } from "../../foundation/access/platform-permissions.ts";
import { permissions } from "../../foundation/manifest/permissions.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { displayName, fields, invalidField, isoTime, orRequired, setOf, uuid } from "../../foundation/schema/input.ts";
import type { ApiKeyInput } from "../api-keys/api-key-input.ts";

/*
 * Sign-in of a machine without a browser: it shows a code, a person confirms it in the console, and the machine gets a key of that person.
 * The flow, its times and the form of the codes are those of RFC 8628.
 */

/** How long a code can be confirmed. */
export const LIFETIME_SECONDS = 600;
/** How long the machine waits between its questions. */
export const INTERVAL_SECONDS = 5;
const MAX_KEY_DAYS = 90;

/** A sign-in that waits or was decided. */
export interface SignIn {
  /** `device:` and the hash of the device code. */
  key_hash: string;
  id: string;
  /** What the machine says about itself: text of anybody. */
  client: string;
  /** Where its request came from. */
  address?: string | undefined;
  created_at: string;
  valid_until: string;
  /** The last question that was answered. */
  asked_at?: string;
  decision?: "approve" | "deny";
  /** Who has approved it, and the limits of the key. */
  by?: Actor;
  user_id?: string;
  key?: Omit<ApiKeyInput, "expires_at"> & { expires_at: string };
  delete_after: number;
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");
export const deviceKey = (deviceCode: string): string => `device:${hashOf(deviceCode)}`;

/** RFC 8628, section 6.1: without vowels, so that no word appears by chance, and without letters that look like another. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const LETTERS_OF_A_CODE = 8;

/** Returns the key of the item that leads from a code, as a person types it, to its sign-in. */
export const userCodeKey = (typed: string): string =>
  `user-code:${hashOf(typed.toUpperCase().replaceAll(/[^A-Z]/g, ""))}`;

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
}).check(
  z.refine(
    ({ client, device_code }) => (client === undefined) !== (device_code === undefined),
    "must have client, to begin a sign-in, or device_code, to ask for its key",
  ),
);

export const decisionInput = () =>
  fields({
    user_code: z.string(orRequired("must be the code that the machine shows")).check(z.maxLength(40, "is no code")),
    decision: z.optional(z.enum(["approve", "deny"], "must be approve or deny")),
    name: z.optional(displayName),
    permissions: z.optional(permissionSet(permissions)),
    project_ids: z.optional(setOf(uuid, MAX_PROJECTS_PER_CREDENTIAL)),
    expires_at: z.optional(isoTime),
  });
type Decision = z.output<ReturnType<typeof decisionInput>>;

/**
 * Returns the limits of the key that a person approves.
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

/** Returns what the person sees before the decision. */
export const toShown = ({ client, address, created_at, valid_until, decision }: SignIn) => ({
  client,
  address: address ?? null,
  created_at,
  valid_until,
  status:
    decision === undefined
      ? ("pending" as const)
      : decision === "approve"
        ? ("approved" as const)
        : ("denied" as const),
});
