import { randomBytes } from "node:crypto";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { requireOwn } from "../subscription/require-own.ts";
import { generateSecret, rotationInput, toRotated, WEBHOOK_RANDOM_BYTES } from "./webhook.ts";
import { rotateSecret } from "./webhook-secret-store.ts";
import * as webhooks from "./webhook-store.ts";

/** Replaces the signing secret. This is the only response that contains the new secret. */
export const handler = defineEndpoint(endpoints.rotateWebhookSecret, {
  input: rotationInput,
  async run({ params, input: { overlap_seconds }, actor, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    requireOwn(webhook);
    const secret = generateSecret(randomBytes(WEBHOOK_RANDOM_BYTES));
    const expiresAt = overlap_seconds === 0 ? undefined : addSeconds(now, overlap_seconds);
    const rotated = await rotateSecret(webhook, secret, { expiresAt, at: now.toISOString(), by: actor });
    return ok(toRotated(rotated, secret));
  },
});
