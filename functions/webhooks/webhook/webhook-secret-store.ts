import { type Actor, platform } from "../../foundation/access/actor.ts";
import { ConditionsFailedError, transact } from "../../foundation/platform/aws.ts";
import { transactIf } from "../../foundation/platform/dynamo.ts";
import { changing, onlyIf, when } from "../../foundation/platform/expression.ts";
import { projectAudit } from "../../foundation/records/audit-store.ts";
import type { OwnHeader } from "./own-headers.ts";
import type { Webhook } from "./webhook.ts";
import { secretKey, webhookKey, webhookNotFound } from "./webhook-store.ts";

/* The signing secrets of webhooks. They are created and deleted together with their webhook (webhook-store.ts). */

interface Rotation {
  /** Expiry of the replaced secret in ISO 8601; undefined = all previous secrets expire now. */
  expiresAt: string | undefined;
  /** Time of the rotation in ISO 8601. */
  at: string;
  /** Absent = the platform. */
  by?: Actor;
}

/**
 * Stores a new secret and keeps the last three previous ones until they expire, so that several rotations within one
 * overlap work. The update expression moves the secrets inside DynamoDB, so this function needs no permission to read
 * them.
 *
 * The update is a transaction, because the SDK sends it again when a response is lost, and moving the secrets twice
 * would drop one. A repeated transaction has the same `ClientRequestToken`, for which DynamoDB writes once within ten
 * minutes. A condition could not tell a repeat from a deleted webhook without reading the secrets.
 * https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
 * @throws ApiError `not_found` when the webhook has been deleted
 */
export async function rotateSecret(webhook: Webhook, secret: string, rotation: Rotation): Promise<Webhook> {
  const { expiresAt, at, by = platform } = rotation;
  const { id: webhook_id, project_id } = webhook;
  const moved = [3, 2].flatMap((slot) => [
    `previous_${slot} = if_not_exists(previous_${slot - 1}, :none)`,
    `previous_${slot}_expires_at = if_not_exists(previous_${slot - 1}_expires_at, :none)`,
  ]);
  const replaced = ["previous_1 = #current", "previous_1_expires_at = :expiresAt"];
  const names = [1, 2, 3].flatMap((slot) => [`previous_${slot}`, `previous_${slot}_expires_at`]);
  const overlap = expiresAt !== undefined;
  try {
    await transact({
      secrets: {
        Update: {
          ...secretKey(webhook_id),
          UpdateExpression: overlap
            ? `SET ${[...moved, ...replaced, "#current = :secret"].join(", ")}`
            : `SET #current = :secret REMOVE ${names.join(", ")}`,
          ConditionExpression: "attribute_exists(webhook_id)",
          ExpressionAttributeNames: { "#current": "current" },
          ExpressionAttributeValues: { ":secret": secret, ...(overlap && { ":expiresAt": expiresAt, ":none": null }) },
        },
      },
      webhook: {
        Update: {
          ...webhookKey(project_id, webhook_id),
          ...changing({ set: { secret_rotated_at: at }, when: when`attribute_exists(id)` }),
        },
      },
      audit: projectAudit("webhook.secret_rotated", by, webhook, { previous_expires_at: expiresAt ?? at }),
    });
    return { ...webhook, secret_rotated_at: at };
  } catch (error) {
    if (error instanceof ConditionsFailedError) throw webhookNotFound(error);
    throw error;
  }
}

/**
 * Returns whether a webhook has a secret, or had it before a rotation with an overlap. DynamoDB compares, so this function needs
 * no permission to read the secrets.
 */
export function hasSecret(webhook_id: string, secret: string): Promise<boolean> {
  const isPrevious = when`previous_1 = ${secret} OR previous_2 = ${secret} OR previous_3 = ${secret}`;
  const isKnown = onlyIf(when`#current = ${secret} OR ${isPrevious}`);
  return transactIf({ secrets: { ConditionCheck: { ...secretKey(webhook_id), ...isKnown } } });
}

/** What is read to send a delivery: the secrets that sign it. Previous secrets, newest first, are valid until they expire. */
export interface SigningSecrets {
  current: string;
  previous: { secret: string; expiresAt: string }[];
  /** The webhook's own headers; absent = none. */
  headers?: OwnHeader[];
}

/** Reads the secrets from an item of their table. */
export function signingSecrets(item: Record<string, unknown>): SigningSecrets {
  const { headers } = item as { headers?: OwnHeader[] };
  const { current, ...rest } = item as Record<string, string>;
  const previous = [1, 2, 3].flatMap((slot) => {
    const secret = rest[`previous_${slot}`];
    return secret ? [{ secret, expiresAt: rest[`previous_${slot}_expires_at`] ?? "" }] : [];
  });
  return { current: current ?? "", previous, ...(headers && { headers }) };
}
