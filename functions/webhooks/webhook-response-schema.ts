import * as z from "zod/mini";
import { webhookEventNameSchema } from "../deployments/event-payload.ts";
import { type FieldsOf, flag, HTTP_URL_PATTERN, id, instant, oneOf, text } from "../schema/response-schema.ts";
import type { DisabledReason, toCreated, toDetail, toListItem } from "./webhook.ts";

const base = {
  id: id("Id of the webhook, as used in paths."),
  project_id: id("Id of the project whose events are sent."),
  url: text("URL that events are sent to, as a POST request.", { pattern: HTTP_URL_PATTERN }),
  events: z.array(webhookEventNameSchema).check(z.describe("The events that are sent.")),
  created_at: instant("Time of creation."),
};

const secret = text("Secret that signs every delivery. Returned only once.", { pattern: "^whsec_[0-9a-f]{64}$" });

const listed = {
  ...base,
  enabled: flag("Whether the webhook is enabled. While it is false, deliveries are stored with the status `held`."),
  disabled_reason: z.nullable(
    oneOf<DisabledReason>("Reason for disabling; null = enabled.", {
      gone: "the receiver responded with 410",
      failing: "no delivery succeeded for days",
      manual: "disabled by a user",
    }),
  ),
  suspended_at: z.optional(
    instant(
      "Time at which the operator suspended the project; absent = it is not suspended. While it is, deliveries are `held`, also if the webhook is enabled.",
    ),
  ),
};

const detail = {
  ...listed,
  disabled_at: z.nullable(instant("Time of disabling; null = enabled.")),
  created_by: z.nullable(text("Id of the user who created it; null = not known.")),
  updated_by: z.nullable(text("Id of the user who changed it last; null = not changed.")),
  secret_rotated_at: z.nullable(instant("Time of the last rotation of the secret; null = never rotated.")),
};

/** A webhook in a list. */
export const webhookListItemSchema = z.strictObject(listed satisfies FieldsOf<ReturnType<typeof toListItem>>);

/** One webhook in detail. */
export const webhookSchema = z.strictObject(detail satisfies FieldsOf<ReturnType<typeof toDetail>>);

/** A new webhook. */
export const createdWebhookSchema = z.strictObject({ ...base, secret } satisfies FieldsOf<
  ReturnType<typeof toCreated>
>);

/** A webhook with its new secret after a rotation. */
export const rotatedWebhookSchema = z.strictObject({ ...detail, secret } satisfies FieldsOf<
  ReturnType<typeof toDetail> & { secret: string }
>);
