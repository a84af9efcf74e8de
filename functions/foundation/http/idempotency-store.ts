import { createHash } from "node:crypto";
import type { TransactItem } from "../platform/aws.ts";
import { readItem } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { onlyIf, when } from "../platform/expression.ts";

/*
 * Safe repeats of requests that create something: the header `Idempotency-Key`
 * (https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/). The outcome is stored in the
 * transaction that creates the resource, so that a repeat, also a concurrent one, finds it or creates nothing.
 */

const RETENTION_SECONDS = 24 * 3600;
const MAX_KEY_CHARACTERS = 255;
const KEY = new RegExp(`^[!-~]{1,${MAX_KEY_CHARACTERS}}$`);

/** A request that a client may repeat. */
export interface RepeatableRequest {
  /** What shares its keys: `idempotencyScopeOf` (foundation/access/identity.ts). */
  user_id: string;
  /** The header `Idempotency-Key`: chosen by the client. */
  key: string;
  /** Hash of the endpoint, the ids in its path and the input: a repeat has the same. */
  fingerprint: string;
}

/** What the first request created. */
interface Outcome {
  fingerprint: string;
  created_id: string;
  /** The data of the response; absent when it contained a secret, which is shown only once. */
  data?: { id: string };
  /** Expiry time in epoch seconds. */
  expires_at: number;
}

/**
 * Reads the header of a request.
 * @param header undefined = the client does not repeat the request
 * @throws ApiError `validation_error` when it is not 1 to 255 printable ASCII characters without spaces
 */
export function repeatableRequest(
  header: string | undefined,
  { userId, route, input }: { userId: string; route: string; input: unknown },
): RepeatableRequest | undefined {
  if (header === undefined) return undefined;
  if (!KEY.test(header)) {
    const message = `must be 1 to ${MAX_KEY_CHARACTERS} ASCII characters without spaces`;
    const details = [{ path: "Idempotency-Key", message }];
    throw new ApiError("validation_error", `The header Idempotency-Key ${message}.`, { details });
  }
  const fingerprint = createHash("sha256")
    .update(`${route}\n${JSON.stringify(input)}`)
    .digest("hex");
  return { user_id: userId, key: header, fingerprint };
}

/**
 * Returns the data of the response to an earlier request with the same key; undefined = there was none in 24 hours.
 * Strongly consistent.
 * @throws ApiError `idempotency_key_reused` when the earlier request was another one; `already_created` when its response
 * contained a secret, which is not stored
 */
export async function findEarlier(
  { user_id, key, fingerprint }: RepeatableRequest,
  now: Date,
): Promise<{ id: string } | undefined> {
  const earlier = await readItem<Outcome>({ TableName: tableName("idempotencyKeys"), Key: { user_id, key } });
  // DynamoDB deletes expired items up to days later.
  if (!earlier || earlier.expires_at <= epochSeconds(now)) return undefined;
  if (earlier.fingerprint !== fingerprint) {
    const message = "The Idempotency-Key was used for another request in the last 24 hours. Use a new one.";
    throw new ApiError("idempotency_key_reused", message);
  }
  if (earlier.data) return earlier.data;
  const message = `This request has already created ${earlier.created_id}. Its secret was shown once and is not stored.`;
  throw new ApiError("already_created", message, { details: [{ path: "id", message: earlier.created_id }] });
}

/**
 * Returns the write of an outcome, for the transaction that creates the resource. Its condition fails when another
 * request with the same key was faster.
 */
export function outcomePut(
  { user_id, key, fingerprint }: RepeatableRequest,
  created: Pick<Outcome, "created_id" | "data">,
  now: Date,
): TransactItem {
  const expires_at = epochSeconds(now) + RETENTION_SECONDS;
  return {
    Put: {
      TableName: tableName("idempotencyKeys"),
      Item: { user_id, key, fingerprint, ...created, expires_at },
      ...onlyIf(when`attribute_not_exists(user_id) OR expires_at <= ${epochSeconds(now)}`),
    },
  };
}

const epochSeconds = (at: Date): number => Math.floor(at.getTime() / 1000);
