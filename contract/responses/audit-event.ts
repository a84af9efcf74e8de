import * as z from "zod/mini";
import type { Actor } from "../../functions/foundation/access/actor.ts";
import type { AuditAction, toListItem } from "../../functions/foundation/records/audit-event.ts";
import { type FieldsOf, id, instant, oneOf, text } from "./fields.ts";

const actions: Record<AuditAction, string> = {
  "api_key.created": "An API key was created.",
  "api_key.deleted": "An API key was deleted; `details.reason` says why, unless its user did it.",
  "api_key.renamed": "An API key was renamed.",
  "sign_in.approved": "A machine that signs in may get an API key.",
  "sign_in.denied": "A machine that signs in gets no API key.",
  "api_key.rolled": "The secret of an API key was replaced.",
  "api_key.earlier_ended":
    "A previous secret of an API key was revoked before the end of its overlap; `details.reason` says why, `details.key_prefix` which.",
  "webhook.created":
    "A webhook was created; of its URL, `details` has the host and the SHA-256 hash, because the path may contain a token.",
  "webhook.updated":
    "A webhook was changed, enabled or disabled; `details` has the new values, of a URL the host and the SHA-256 hash.",
  "webhook.secret_rotated": "The signing secret of a webhook was replaced.",
  "webhook.disabled": "The service or the platform disabled a webhook; `details.reason` says why.",
  "webhook.deleted": "A webhook was deleted.",
  "webhook.test_requested": "A test delivery was requested; `details` has its id and event.",
  "webhook.certification_requested": "A certification of the receiver was requested; `details` has its id.",
  "webhook.redelivery_requested": "A delivery was sent again; `details` has its id.",
  "webhook.recovery_requested":
    "Failed, held or waiting deliveries were sent, one entry per call; `details` has its parameters.",
  "member.updated": "The platform added a user to the project, or changed the role.",
  "member.removed": "The platform removed a user from the project.",
  "service_account.created": "A service account was created.",
  "service_account.removal_begun":
    "The removal of a service account began: from then on its keys are not accepted in the project.",
  "service_account.deleted": "A service account was deleted, with its API keys.",
  "project.suspended": "The platform suspended the project.",
  "project.resumed": "The platform ended the suspension of the project.",
  "trusted_workflow.created": "A workflow of a CI system was trusted; `details` names its repository.",
  "trusted_workflow.deleted": "A trusted workflow was deleted.",
};

const actor = z.strictObject({
  type: oneOf("Kind of the actor.", {
    jwt: "a signed-in user",
    api_key: "an API key",
    workflow: "a workflow of a CI system",
    anonymous: "a caller without a credential, who reported a leaked API key",
    platform: "the platform that this service belongs to",
    system: "this service",
  }),
  user_id: z.optional(text("Id of the user, or `workflow:<id of the trusted workflow>`.")),
  credential_id: z.optional(id("Id of the API key.")),
  repository: z.optional(text("Name of the repository whose workflow it is.")),
  ref: z.optional(text("The ref that the workflow ran for.")),
  run_id: z.optional(text("Id of the run or pipeline.")),
  address: z.optional(text("IP address of the client.")),
  user_agent: z.optional(text("`User-Agent` of the client.")),
  request_id: z.optional(text("Id of the request.")),
} satisfies FieldsOf<Actor>);

/** An entry of an audit log. */
export const auditEventSchema = z.strictObject({
  id: id("Id of the entry."),
  at: instant("Time of the change."),
  action: oneOf("What was done.", actions),
  actor,
  resource_id: text("Id of the key, webhook, user, trust or project that was changed."),
  details: z.record(z.string(), z.unknown()).check(z.describe("What helps to understand the change, such as a name.")),
} satisfies FieldsOf<ReturnType<typeof toListItem>>);
