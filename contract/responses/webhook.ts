import * as z from "zod/mini";
import type { FailureCode } from "../../functions/foundation/events/failure-code.ts";
import type { SignatureScheme } from "../../functions/webhooks/receiver/signing.ts";
import { OPEN_AFTER_SECONDS } from "../../functions/webhooks/webhook/circuit-breaker.ts";
import type { Health, HealthState } from "../../functions/webhooks/webhook/health.ts";
import type {
  DisabledReason,
  LastCertification,
  toCreated,
  toDetail,
  toListItem,
  toRotated,
  Webhook,
} from "../../functions/webhooks/webhook/webhook.ts";
import { type FieldsOf, flag, HTTP_URL_PATTERN, id, instant, oneOf, text } from "./fields.ts";
import { disabledReasonMeanings, subscriptionSchema } from "./payload.ts";

export const signatureMeanings: Record<SignatureScheme, string> = {
  hmac: "with the secret of the webhook: `webhook-signature` (`v1`) and `X-Service-Signature`",
  ed25519: "with the key pair of the project: `v1a` in `webhook-signature`",
  http: "with the same pair, as an HTTP Message Signature (RFC 9421), which also covers the URL",
};

export const formatMeanings = {
  slack: "a message for an incoming webhook of Slack",
  discord: "a message for a webhook of Discord",
  teams: "an adaptive card for a workflow of Microsoft Teams",
  "google-chat": "a message for a webhook of Google Chat",
  "github-dispatch": "a `repository_dispatch` event of GitHub, which needs an `Authorization` header",
  cloudevents: "a CloudEvent 1.0 in structured mode",
};

const base = {
  id: id("Id of the webhook, as used in paths."),
  project_id: id("Id of the project whose events are sent."),
  url: text(
    "URL that events are sent to, as a POST request. Ends after the host with `/***` without `webhooks:write`.",
    { pattern: HTTP_URL_PATTERN },
  ),
  name: z.optional(text("Name of the webhook; absent = it has none.")),
  events: z.array(subscriptionSchema).check(z.describe("The events that are sent.")),
  filter: z
    .optional(z.record(z.string(), z.array(z.string())))
    .check(
      z.describe(
        "Only deployment events whose `data` has, in each of these fields, one of the values; `*` at the end of a value stands for any rest. Absent, and null in a request = all of `events`.",
      ),
    ),
  created_at: instant("Time of creation."),
  mode: z.optional(
    oneOf<NonNullable<Webhook["mode"]>>("Absent = live.", {
      shadow: "deliveries are signed and logged with the status `shadowed`, and not sent",
    }),
  ),
  format: z.optional(oneOf<NonNullable<Webhook["format"]>>("Form of the requests. Absent = standard.", formatMeanings)),
  header_names: z.optional(
    z.array(z.string()).check(z.describe("Names of the headers that requests have in addition. Absent = none.")),
  ),
  signatures: z.optional(
    z
      .array(oneOf<SignatureScheme>("How requests are signed.", signatureMeanings))
      .check(
        z.describe(
          "How requests are signed. Absent = `hmac`. The public keys: `/.well-known/http-message-signatures-directory?project_id=…`.",
        ),
      ),
  ),
  delivery: z.optional(
    oneOf<NonNullable<Webhook["delivery"]>>("Absent = every event.", {
      latest: "an event of a deployment is not sent when a newer one of it exists: its delivery is `superseded`",
    }),
  ),
  settle_seconds: z.optional(
    z
      .int()
      .check(
        z.minimum(1),
        z.maximum(60),
        z.describe("With `latest`: seconds that a new event waits for a newer one. Absent = 0."),
      ),
  ),
};

const secret = text("Secret that signs every delivery. Returned only once.", { pattern: "^whsec_[0-9a-f]{64}$" });

/** The meanings of the failure codes, also of the attempts of deliveries. */
export const deliveryErrorMeanings: Record<FailureCode, string> = {
  http_status: "the receiver returned a status other than 2xx",
  timeout: "no complete response within 15 seconds",
  dns_error: "the host name does not resolve, or has no address",
  connection_refused: "nothing accepts connections at the host and port",
  connection_reset: "the connection was closed before the response was complete",
  tls_error: "the TLS connection failed; the hint names the cause",
  address_blocked: "the host resolves to an address that is not public, or the port is that of another service",
  invalid_response: "the response is not valid HTTP/1.1, or its headers are too large; the hint names the fault",
};

/** Whether the deliveries of a webhook succeed. */
export const healthSchema = z
  .strictObject({
    state: oneOf<HealthState>("The state of the deliveries to this webhook. The last that applies.", {
      new: "no delivery of the last 30 days has succeeded yet, and none has failed; a failed test delivery does not count, nor a failure before the webhook was enabled again or got another URL",
      healthy: "no attempt has failed since the last success; a failed test delivery does not count",
      slow: "the receiver took 2 seconds or longer to respond: deliveries are sent by senders of their own, until 20 responses in a row took at most 1 second",
      failing: "no attempt has succeeded since `since`",
      probing: `it has been failing for ${OPEN_AFTER_SECONDS} seconds or longer, and deliveries wait: the oldest is sent as a probe at \`next_probe_at\`, and after a success all others`,
      shadow: "the webhook is in shadow mode: nothing is sent, and deliveries are `shadowed`",
      disabled: "the webhook is disabled, or the project is suspended: nothing is sent, and deliveries are `held`",
    }),
    since: z.nullable(
      instant(
        "Start of the state; for `probing`, the first failure after the last success. Null for `new`, `healthy` and `shadow`.",
      ),
    ),
    last_success_at: z.nullable(
      instant(
        "Time of the latest success among the 3 newest deliveries; of a webhook that fails or is disabled, among the 3 newest before that. Null = no success among them.",
      ),
    ),
    last_error: z
      .nullable(
        z.strictObject({
          error_code: oneOf<FailureCode>("Why the attempt failed.", deliveryErrorMeanings),
          hint: text("One sentence on how to fix the receiver."),
        }),
      )
      .check(
        z.describe(
          "The latest failed attempt that is known. Null for a webhook that has not failed since its last success.",
        ),
      ),
    next_probe_at: z.nullable(
      instant(
        "When the next probe is sent, never in the past; null while nothing waits, or in the first seconds of failures.",
      ),
    ),
  } satisfies FieldsOf<Health>)
  .check(z.describe("Whether deliveries succeed, derived when it is read."));

const listed = {
  ...base,
  enabled: flag("Whether the webhook is enabled. While it is false, deliveries are stored with the status `held`."),
  disabled_reason: z.nullable(oneOf<DisabledReason>("Reason for disabling; null = enabled.", disabledReasonMeanings)),
  suspended_at: z.optional(
    instant(
      "Time at which the operator suspended the project; absent = it is not suspended. While it is, deliveries are `held`, also if the webhook is enabled.",
    ),
  ),
  subscription: z.optional(
    z
      .strictObject({
        user_id: text("Id of the user whose it is. It ends with the membership of the user."),
        expires_at: instant("When it ends, unless its client refreshes it."),
      })
      .check(z.describe("The webhook is the subscription of an assistant; absent = a webhook of the project.")),
  ),
  last_certification: z.optional(
    z
      .strictObject({
        id: id("Id of the certification. Its report is kept for 30 days."),
        finished_at: instant("When it finished."),
        passed: flag("Whether the receiver passed all checks."),
      } satisfies FieldsOf<LastCertification>)
      .check(z.describe("The certification that finished last; absent = none since the webhook has this URL.")),
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
export const webhookListItemSchema = z.strictObject({ ...listed, health: healthSchema } satisfies FieldsOf<
  ReturnType<typeof toListItem>
>);

/** One webhook in detail. */
export const webhookSchema = z.strictObject({ ...detail, health: healthSchema } satisfies FieldsOf<
  ReturnType<typeof toDetail>
>);

/** A new webhook. */
export const createdWebhookSchema = z.strictObject({ ...base, secret } satisfies FieldsOf<
  ReturnType<typeof toCreated>
>);

/** A webhook with its new secret after a rotation. */
export const rotatedWebhookSchema = z.strictObject({ ...detail, secret } satisfies FieldsOf<
  ReturnType<typeof toRotated>
>);
