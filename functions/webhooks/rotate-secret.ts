import { randomBytes } from "node:crypto";
import { endpoint, ok } from "../endpoint.ts";
import { later } from "../platform/time.ts";
import { rotateSecret } from "./secret-store.ts";
import { mintSecret, rotation, WEBHOOK_RANDOM_BYTES, withState } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Replaces the signing secret. This response is the only one that ever carries the new one. */
export const handler = endpoint("POST /v1/projects/{project_id}/webhooks/{webhook_id}/rotate-secret", {
  input: rotation,
  async run({ params, input: { overlap_seconds }, now }) {
    const webhook = await webhooks.get(params.project_id, params.webhook_id);
    const secret = mintSecret(randomBytes(WEBHOOK_RANDOM_BYTES));
    await rotateSecret(webhook.id, secret, overlap_seconds === 0 ? undefined : later(now, overlap_seconds));
    return ok({ ...withState(webhook), secret });
  },
});
