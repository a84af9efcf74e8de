import * as z from "zod/mini";
import type { toShown } from "../../functions/identity/sign-ins/sign-in.ts";
import { createdApiKeySchema } from "./api-key.ts";
import { type FieldsOf, instant, oneOf, text } from "./fields.ts";

const seconds = (description: string) => z.int().check(z.minimum(1), z.describe(description));

/** The answer to a machine that signs in. */
export const signInSchema = z.strictObject({
  status: oneOf<"pending" | "slow_down" | "denied" | "expired" | "approved">("State of the sign-in.", {
    pending: "a person has not decided yet",
    slow_down: "the machine asks too fast",
    denied: "a person has denied it, or may not give the key any more",
    expired: "there is no such sign-in, or no longer",
    approved: "`api_key` has the key",
  }),
  device_code: z.optional(text("Secret of the machine. Only in the first answer, as are the following.")),
  user_code: z.optional(text("What the machine shows.", { pattern: "^[A-Z]{4}-[A-Z]{4}$" })),
  verification_uri: z.optional(z.nullable(text("Where a person types it; null = the stage has no console."))),
  expires_in: z.optional(seconds("How long the codes are valid, in seconds.")),
  interval: z.optional(seconds("Time between two questions, in seconds.")),
  api_key: z.optional(createdApiKeySchema),
});

/** What a person sees before the decision. */
export const shownSignInSchema = z.strictObject({
  client: text("What the machine says about itself: text of anybody."),
  address: z.nullable(text("IP address of its request.")),
  created_at: instant("When it began."),
  valid_until: instant("When the code expires."),
  status: oneOf<"pending" | "approved" | "denied">("State of the sign-in.", {
    pending: "it waits for a decision",
    approved: "the machine gets its key",
    denied: "the machine gets none",
  }),
} satisfies FieldsOf<ReturnType<typeof toShown>>);
