import type { Actor } from "../../foundation/access/actor.ts";
import type { TransactItem } from "../../foundation/platform/aws.ts";
import { readItem, transactIf, updateIf } from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { allOf, changing, isAsRead, onlyIf, when } from "../../foundation/platform/expression.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { auditPut } from "../../foundation/records/audit-store.ts";
import { deviceKey, INTERVAL_SECONDS, type SignIn, userCodeKey } from "./sign-in.ts";

/* Sign-ins are stored in the table of keys, under prefixed hashes that no key can have. TTL deletes them. */

const itemKey = (key_hash: string) => ({ TableName: tableName("apiKeys"), Key: { key_hash } });
const put = (Item: object): TransactItem => ({
  Put: { TableName: tableName("apiKeys"), Item: { ...Item }, ...onlyIf(when`attribute_not_exists(key_hash)`) },
});

/** Stores a sign-in. @returns false when its code is in use */
export const insert = (signIn: SignIn, userCode: string): Promise<boolean> =>
  transactIf({
    device: put(signIn),
    code: put({ key_hash: userCodeKey(userCode), device: signIn.key_hash, delete_after: signIn.delete_after }),
  });

const valid = (signIn: SignIn | undefined, now: Date): SignIn | undefined =>
  signIn && signIn.valid_until > now.toISOString() ? signIn : undefined;

/** Returns the sign-in of a device code; undefined = unknown or expired. */
export const findByDevice = async (deviceCode: string, now: Date): Promise<SignIn | undefined> =>
  valid(await readItem<SignIn>(itemKey(deviceKey(deviceCode))), now);

/** @throws ApiError `not_found` for an unknown or expired code */
export async function getByCode(typed: string, now: Date): Promise<SignIn> {
  const code = await readItem<{ device: string }>(itemKey(userCodeKey(typed)));
  const signIn = code && valid(await readItem<SignIn>(itemKey(code.device)), now);
  if (!signIn) throw new ApiError("not_found", "No machine waits with this code. Codes are valid for ten minutes.");
  return signIn;
}

/** Records a decision. @throws ApiError `conflict` when it is decided already */
export async function decide(
  { key_hash, id, client }: SignIn,
  decided: Pick<SignIn, "decision" | "user_id" | "key"> & { by: Actor },
): Promise<void> {
  const { decision, user_id, by, key } = decided;
  const isOpen = when`attribute_exists(key_hash) AND attribute_not_exists(decision)`;
  const isDecided = await transactIf({
    signIn: { Update: { ...itemKey(key_hash), ...changing({ set: decided, when: isOpen }) } },
    audit: auditPut({
      scope: `user:${user_id}`,
      action: decision === "approve" ? "sign_in.approved" : "sign_in.denied",
      actor: by,
      resource_id: id,
      details: { name: client, ...key },
    }),
  });
  if (!isDecided) throw new ApiError("conflict", "This sign-in is decided already.");
}

/** Records a poll. @returns false when it is earlier than the interval allows */
export function ask({ key_hash, asked_at }: SignIn, now: Date): Promise<boolean> {
  if (asked_at !== undefined && addSeconds(new Date(asked_at), INTERVAL_SECONDS - 1) > now.toISOString()) {
    return Promise.resolve(false);
  }
  const isSame = allOf(when`attribute_exists(key_hash)`, isAsRead("asked_at", asked_at));
  return updateIf(itemKey(key_hash), changing({ set: { asked_at: now.toISOString() }, when: isSame }));
}

/**
 * Returns the write that deletes an approved sign-in, for the transaction that creates its key: one key per approval.
 */
export const taking = ({ key_hash }: SignIn): Record<string, TransactItem> => ({
  signIn: { Delete: { ...itemKey(key_hash), ...onlyIf(when`attribute_exists(decision)`) } },
});
