import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { noSuchWebhook } from "./webhook-store.ts";

/* The secrets that webhooks sign with. They come and go with their webhook (webhook-store.ts). */

const secretOf = (webhook_id: string) => ({ TableName: tableName("webhookSecrets"), Key: { webhook_id } });

/**
 * Puts a new secret in place, and keeps those before it up to their expiry: three of them, for rotations within one overlap.
 * The secrets move along inside DynamoDB, so that rotating does not take the right to read them.
 * @param expiresAt when the secret that is replaced ends; undefined = now, and all before it
 * @throws ApiError `not_found` when the webhook was deleted meanwhile
 */
export async function rotateSecret(webhook_id: string, secret: string, expiresAt: string | undefined): Promise<void> {
  const slots = [3, 2].flatMap((slot) => [
    `previous_${slot} = if_not_exists(previous_${slot - 1}, :none)`,
    `previous_${slot}_expires_at = if_not_exists(previous_${slot - 1}_expires_at, :none)`,
  ]);
  const replaced = ["previous_1 = #current", "previous_1_expires_at = :expiresAt"];
  const names = [1, 2, 3].flatMap((slot) => [`previous_${slot}`, `previous_${slot}_expires_at`]);
  const overlap = expiresAt !== undefined;
  try {
    await dynamo().send(
      new UpdateCommand({
        ...secretOf(webhook_id),
        UpdateExpression: overlap
          ? `SET ${[...slots, ...replaced, "#current = :secret"].join(", ")}`
          : `SET #current = :secret REMOVE ${names.join(", ")}`,
        ConditionExpression: "attribute_exists(webhook_id)",
        ExpressionAttributeNames: { "#current": "current" },
        ExpressionAttributeValues: { ":secret": secret, ...(overlap && { ":expiresAt": expiresAt, ":none": null }) },
      }),
    );
  } catch (error) {
    if (isConditionFailed(error)) throw noSuchWebhook(error);
    throw error;
  }
}

/** What a webhook signs with. A previous secret, newest first, is valid up to its expiry. */
export interface SigningSecrets {
  current: string;
  previous: { secret: string; expiresAt: string }[];
}

/** The secrets in a row of their table. */
export function signingSecrets(row: Record<string, unknown>): SigningSecrets {
  const { current, ...rest } = row as Record<string, string>;
  const previous = [1, 2, 3].flatMap((slot) => {
    const secret = rest[`previous_${slot}`];
    return secret ? [{ secret, expiresAt: rest[`previous_${slot}_expires_at`] ?? "" }] : [];
  });
  return { current: current ?? "", previous };
}
