import * as z from "zod/mini";
import { eventNameSchema } from "../deployments/event-payload.ts";
import { type FieldsOf, flag, id, instant, oneOf, text, WEB_ADDRESS } from "../schema/response-schema.ts";
import type { DisabledReason, toCreated, toDetail, toListItem } from "./webhook.ts";

const base = {
  id: id("Names the webhook in paths."),
  project_id: id("The project whose deployments it tells about."),
  url: text("Where events are posted to.", { pattern: WEB_ADDRESS }),
  events: z.array(eventNameSchema).check(z.describe("Which events are sent.")),
  created_at: instant("When it was made."),
};

const secret = text("Signs every delivery. Shown this once.", { pattern: "^whsec_[0-9a-f]{64}$" });

const listed = {
  ...base,
  enabled: flag("Whether events are sent. While it is false they are kept as `held`."),
  disabled_reason: z.nullable(
    oneOf<DisabledReason>("Why it is disabled; null while it is enabled.", {
      gone: "the receiver answered 410",
      failing: "no success for days",
      manual: "somebody turned it off",
    }),
  ),
};

const alone = { ...listed, disabled_at: z.nullable(instant("Since when it is disabled; null while it is enabled.")) };

/** A webhook in a list. */
export const webhookListItemSchema = z.strictObject(listed satisfies FieldsOf<ReturnType<typeof toListItem>>);

/** A webhook on its own. */
export const webhookSchema = z.strictObject(alone satisfies FieldsOf<ReturnType<typeof toDetail>>);

/** A webhook as its creator gets it. */
export const createdWebhookSchema = z.strictObject({ ...base, secret } satisfies FieldsOf<
  ReturnType<typeof toCreated>
>);

/** A webhook with the secret that replaces the one before. */
export const rotatedWebhookSchema = z.strictObject({ ...alone, secret } satisfies FieldsOf<
  ReturnType<typeof toDetail> & { secret: string }
>);
