import { FEED_CURSOR_PATTERN } from "../functions/deliveries/feed/feed-position.ts";
import { LIST_CURSOR_PATTERN, listCursor } from "../functions/deliveries/log/list-cursor.ts";
import { MAX_PROJECTS_PER_CREDENTIAL } from "../functions/foundation/access/identity.ts";
import { type BudgetedRequest, REQUEST_BUDGET, requestCosts } from "../functions/foundation/budgets/request-budget.ts";
import { type OperationId, REVOCATIONS_PER_MINUTE_PER_ADDRESS } from "../functions/foundation/manifest/endpoints.ts";
import type { ErrorCode } from "../functions/foundation/platform/errors.ts";
import { MAX_KEYS_PER_USER, MAX_PREVIOUS_SECRETS } from "../functions/identity/api-keys/api-key.ts";
import { MAX_REVOKED_CREDENTIALS } from "../functions/identity/api-keys/api-key-input.ts";
import { MAX_SERVICE_ACCOUNTS_PER_PROJECT } from "../functions/identity/service-accounts/service-account.ts";
import { MAX_TRUSTED_WORKFLOWS_PER_PROJECT } from "../functions/identity/trusted-workflows/trusted-workflow.ts";
import { MAX_WEBHOOKS_PER_PROJECT } from "../functions/webhooks/webhook/webhook.ts";
import { examples } from "./examples.ts";
import { apiKeySchema, createdApiKeySchema, currentCredentialSchema, revocationSchema } from "./responses/api-key.ts";
import { auditEventSchema } from "./responses/audit-event.ts";
import { certificationSchema } from "./responses/certification.ts";
import { deliveryDetailSchema, deliverySchema, recoveryResultSchema } from "./responses/delivery.ts";
import { eventRecordSchema } from "./responses/event.ts";
import { HTTP_URL_PATTERN } from "./responses/fields.ts";
import { projectSchema } from "./responses/project.ts";
import { memberSchema, serviceAccountSchema } from "./responses/service-account.ts";
import { shownSignInSchema, signInSchema } from "./responses/sign-in.ts";
import { statsSchema } from "./responses/stats.ts";
import { trustedWorkflowSchema } from "./responses/trusted-workflow.ts";
import {
  createdWebhookSchema,
  rotatedWebhookSchema,
  webhookListItemSchema,
  webhookSchema,
} from "./responses/webhook.ts";
import { type Json, listOf, type Schema } from "./schemas.ts";

/** The documentation of an endpoint, beyond what its row and its schemas contain. */
export interface Operation {
  summary: string;
  description?: string;
  response: { status: 200 | 201 | 202; schema: Schema; example: Json; hasNextPage?: true } | { status: 204 };
  /** Error codes beyond those that follow from the row's access, ids and inputs. */
  errors?: ErrorCode[];
  /**
   * JSON Schema keywords for each field of the body, or for each query parameter: descriptions, and rules that the service
   * checks in code. `undefined` removes a keyword. Absent = the description of the field of this name in the response.
   */
  fields?: Record<string, Json>;
  /** JSON Schema keywords for the body as a whole. */
  body?: Json;
  example?: Json;
}

export const tags = {
  "API keys":
    "Credentials for CI jobs and scripts. A key has the permissions of the user who created it, or those of them that it is scoped " +
    "to, and is valid until it is deleted or its `expires_at`.",
  Projects: "The applications that are deployed. The platform adds users to projects, as `admin` or as `viewer`.",
  Webhooks: `URLs that receive the deployment events of a project. At most ${MAX_WEBHOOKS_PER_PROJECT} per project.`,
  Deliveries:
    "Events sent to a webhook: the payload, the responses, and the time of the next attempt. Kept for 30 days.",
  "Service accounts":
    `Callers without a person, for CI jobs of a project: they have API keys of their own and stay when people leave. At most ` +
    `${MAX_SERVICE_ACCOUNTS_PER_PROJECT} per project.`,
  Deployments: "The deployment events of a project, also of one without webhooks. Kept for 30 days.",
  Audit: "Who did what to API keys, webhooks, secrets, members and trusted workflows. Kept for 400 days.",
  Events: "The requests that receivers get.",
  "Trusted workflows":
    "Workflows of CI systems that may act in a project without a stored key: the OIDC token of the job is the credential. A " +
    "workflow has the permissions that it was given, in this project only, and is no user: it has no API keys.",
};

/** The tag of an endpoint: the first whose pattern its path matches. */
const tagPatterns: [RegExp, keyof typeof tags][] = [
  [/\/(deliveries|test|recover)\b/, "Deliveries"],
  [/\/webhooks\b/, "Webhooks"],
  [/\/service-accounts\b/, "Service accounts"],
  [/\/trusted-workflows\b/, "Trusted workflows"],
  [/\/audit-events\b/, "Audit"],
  [/\/events\b/, "Deployments"],
  [/\/(api-keys|credentials|sign-ins)\b/, "API keys"],
  [/./, "Projects"],
];

export const tagOf = (path: string) => tagPatterns.find(([pattern]) => pattern.test(path))?.[1];

/** The sentence on the budget that a request uses. */
function budgetNote(request: BudgetedRequest): string {
  const budget = `of ${REQUEST_BUDGET} a minute for test deliveries, redeliveries, recoveries and certifications`;
  return `Counts ${requestCosts[request]} toward the project's budget ${budget}; beyond it, returns 429 \`rate_limited\`.`;
}

const name = {
  description:
    "The label shown in lists. 1 to 100 characters, without control and invisible characters. Spaces around it are removed.",
};

const headers = {
  description:
    "Headers that requests have in addition, by name, such as `Authorization`: at most five. Their values are never returned. Names that a delivery or HTTP has itself are rejected.",
  examples: [{ Authorization: "Bearer abc" }],
};

const receiver = {
  description:
    "The receiver: an https URL with a public host name or address, in ASCII, without user name, password and fragment. " +
    "Ports of services other than web servers, such as 22, 25, 5432 and 6379, are rejected. " +
    "Stored in its normal form: lower-case host without a final dot, no default port, no dot segments. " +
    "A URL without a path is stored as it was sent. A local run also accepts plain http to this machine.",
  pattern: `${HTTP_URL_PATTERN}[!-~]+$`,
  maxLength: 2048,
};

/** The query parameters of lists that are returned in pages. */
const pageParameters = {
  limit: { default: 20, description: "Maximum number of entries on a page." },
  cursor: {
    description: "The start of the page. Take it from the `Link` of the previous page.",
    example: examples.project.id,
  },
};

/** Both audit logs. */
const auditListWith = (example: Json) =>
  ({
    description: "Newest first. The `Link` header leads to the next page and is absent on the last one.",
    fields: pageParameters,
    response: { status: 200, schema: listOf(auditEventSchema), example: [example], hasNextPage: true },
  }) satisfies Partial<Operation>;

const listNote =
  "Newest first, by the time of the event. The `Link` header leads to the next page and is absent on the last one. A page can " +
  "have fewer entries than `limit`, or none, although more pages follow, because a request reads at most 1,000 rows or " +
  "2 MB: rely on the header. `since` and `until` make a search shorter, the other filters do not.";

/** Both lists of deliveries. */
const deliveryList = {
  fields: {
    event: { description: "Only deliveries of this event." },
    status: { description: "Only deliveries with this status." },
    deployment_id: { description: "Only deliveries of events of this deployment." },
    error_code: {
      description: "Only deliveries that have not succeeded, and whose last attempt failed for this reason.",
    },
    since: {
      description: "Only deliveries of events at this time or later; a test delivery has the time of its request.",
      example: "2026-11-21T00:00:00Z",
    },
    until: { description: "Only deliveries of events before this time.", example: "2026-11-22T00:00:00Z" },
    limit: pageParameters.limit,
    cursor: {
      pattern: LIST_CURSOR_PATTERN,
      description: "The start of the page. Take it from the `Link` of the previous page; the filters must be the same.",
      example: listCursor({ after: examples.failingDelivery.id }, { scope: "project:example", filters: {} }),
    },
  },
  response: { status: 200, schema: listOf(deliverySchema), example: [examples.failingDelivery], hasNextPage: true },
} satisfies Partial<Operation>;

const keyFields = {
  name,
  permissions: {
    description:
      "Permissions of the key, of this list or of `platform_permissions` of the current credential. Default: everything its user may do, " +
      "including permissions added later.",
  },
  project_ids: {
    description: `The projects that the key can see, 1 to ${MAX_PROJECTS_PER_CREDENTIAL} of its user. Default: all.`,
  },
  expires_at: { description: "The moment at which the key expires, at most 366 days ahead. Default: never." },
};

/* Keys of users and of service accounts are created, listed, renamed and rolled in the same way. */

const keyCreation = {
  fields: keyFields,
  example: { name: "ci" },
  response: { status: 201, schema: createdApiKeySchema, example: examples.createdApiKey },
  errors: ["api_key_limit_reached", "project_suspended"],
} satisfies Partial<Operation>;

const keyList = {
  fields: {
    include: { description: "`last_use` adds `last_used_ip` and `last_used_user_agent` to each key." },
  },
  response: { status: 200, schema: listOf(apiKeySchema), example: [examples.listedApiKey] },
} satisfies Partial<Operation>;

const keyRenaming = {
  fields: { name },
  example: { name: "ci of the shop" },
  response: { status: 200, schema: apiKeySchema, example: { ...examples.listedApiKey, name: "ci of the shop" } },
} satisfies Partial<Operation>;

const keyRoll = {
  description:
    "Only this response contains the new `key`. Id, name and limits stay. During the overlap the previous key is accepted too; " +
    `after it, it is rejected like a deleted one. At most ${MAX_PREVIOUS_SECRETS} previous keys stay valid: a further roll revokes the ` +
    "oldest at once. Deleting the key revokes all of them. A key that has expired cannot be rolled.",
  fields: {
    overlap_seconds: {
      description: "Seconds for which the previous key stays valid. 0 revokes all previous keys immediately.",
    },
  },
  example: { overlap_seconds: 3600 },
  response: { status: 200, schema: createdApiKeySchema, example: examples.createdApiKey },
  errors: ["conflict"],
} satisfies Partial<Operation>;

/** An endpoint without an entry does not compile. */
export const operations: Record<OperationId, Operation> = {
  createApiKey: {
    summary: "Create an API key",
    description:
      `Only this response contains \`key\`. A user can have at most ${MAX_KEYS_PER_USER} keys. A key cannot be limited to a project that is ` +
      "suspended.",
    ...keyCreation,
  },
  listApiKeys: {
    summary: "List your API keys",
    description:
      "Oldest first. A key with `permissions` or `project_ids` lists only itself. The last use of a key is that of any of its " +
      "secrets: after a roll, also of a previous one that is still valid.",
    ...keyList,
  },
  getCurrentCredential: {
    summary: "Show what the credential of the request may do",
    description: "For an API key, a JWT or a workflow. Needs no permission.",
    response: { status: 200, schema: currentCredentialSchema, example: examples.currentCredential },
  },
  deleteApiKey: {
    summary: "Delete an API key",
    description:
      "The next request with the key is rejected. A key can delete itself; one with `permissions` or `project_ids` only itself.",
    response: { status: 204 },
  },
  updateApiKey: {
    summary: "Rename an API key",
    description: "A key can rename itself; one with `permissions` or `project_ids` only itself.",
    ...keyRenaming,
  },
  rollApiKey: {
    summary: "Replace the secret of an API key",
    ...keyRoll,
  },
  revokeCredentials: {
    summary: "Revoke leaked API keys",
    description:
      "For leaked keys, also those of others. The keys are rejected from the next request on. A previous key of a roll " +
      "is revoked alone; the current one is revoked with the previous ones. Each text is searched for keys, so send a key as you found it, " +
      "with what surrounds it: a line of a file, a URL, JSON. `received` is the number of texts in which a key was found; without any, " +
      "returns 400. The response is the same whether a key existed or not. " +
      `An IP address can send ${REVOCATIONS_PER_MINUTE_PER_ADDRESS} keys a minute; beyond it, returns 429 \`rate_limited\`. Text without the ` +
      "checksum of a key does not count.\n\n" +
      "GitHub's secret scanning sends its own form of request here: a JSON array of up to 2,000 `{token, type, url, source}`, signed with a key of its " +
      "public list (`Github-Public-Key-Identifier`, `Github-Public-Key-Signature`). It gets 200 and an array of `{token_raw, token_type, label}`; " +
      "403 `forbidden` without a valid signature, 503 while the list cannot be fetched.",
    errors: ["forbidden"],
    fields: {
      credentials: {
        description: `1 to ${MAX_REVOKED_CREDENTIALS} texts with at most ${MAX_REVOKED_CREDENTIALS} keys together. A key in Base64 is not found: decode it first.`,
      },
    },
    example: { credentials: [examples.createdApiKey.key] },
    response: { status: 202, schema: revocationSchema, example: { received: 1 } },
  },
  requestSignIn: {
    summary: "Sign a machine in",
    description:
      "For a machine without a browser, as in RFC 8628. Without `device_code`, it gets one, a secret, and `user_code`, which it shows with " +
      "`verification_uri`: a person types it there, sees where the request came from, and approves or denies it. With `device_code` it asks every `interval` " +
      "seconds. `status` is `pending`, `slow_down` (it asks too fast), `denied`, `expired` (or the key was taken), or `approved` with `api_key`: a key of that " +
      "person, which only this response has. An IP address can begin ten sign-ins a minute; beyond it, returns 429 `rate_limited`.",
    fields: {
      client: {
        description: "What the machine calls itself, which the person sees. 1 to 100 characters; default: `a program`.",
      },
      device_code: { description: "The code that the machine got: asks for its key." },
    },
    example: { client: "svc on build-7" },
    response: { status: 200, schema: signInSchema, example: examples.signIn },
  },
  decideSignIn: {
    summary: "Approve the sign-in of a machine",
    description:
      "Without `decision`, shows what a code belongs to. With `approve`, `name` and `expires_at` are required; the limits are those of an API key, and the " +
      "key is valid for 90 days at most. A person can type ten codes a minute; beyond it, returns 429 `rate_limited`. A sign-in that was decided: 409 `conflict`.",
    fields: {
      user_code: { description: "The code that the machine shows; case, spaces and dashes do not matter." },
      decision: { description: "Absent = it is only shown." },
      name: { description: "Name of the key." },
      permissions: { description: "What the key may do; absent = all that the person may do." },
      project_ids: { description: "The projects that the key sees; absent = all of the person." },
      expires_at: { description: "First moment at which the key is rejected, at most 90 days from now." },
    },
    example: { user_code: examples.signIn.user_code },
    response: { status: 200, schema: shownSignInSchema, example: examples.shownSignIn },
    errors: ["not_found", "conflict", "project_suspended"],
  },
  listProjects: {
    summary: "List your projects",
    description:
      "With your role in each project. Pages are in the order of the ids, and each page is sorted by when you became a member. The `Link` header " +
      "leads to the next page and is absent on the last one. A workflow sees the projects that trust it, with the role that its " +
      "permissions correspond to.",
    fields: { ...pageParameters, limit: { ...pageParameters.limit, default: 100 } },
    response: { status: 200, schema: listOf(projectSchema), example: [examples.project], hasNextPage: true },
  },
  listEvents: {
    summary: "List the deployment events of a project",
    description:
      "Newest first by the time of the event, or oldest first. The `Link` header has up to two links: `next` leads to the next " +
      "page, also from an empty one; `monitor` to the events that are stored later, with `order=oldest`. To follow the feed, " +
      "request the `monitor` link every few seconds, and each `next` at once. Each event is then returned at least once, also " +
      "one that arrives late. One that is returned again has the same `id`.",
    fields: {
      order: { default: "newest", description: "The order of the events. To follow the feed, use the `monitor` link." },
      event: { description: "Only this event." },
      deployment_id: { description: "Only events of this deployment." },
      after: {
        // A UUID, or the longer cursor of `order=oldest`.
        pattern: FEED_CURSOR_PATTERN.replace("38", "36"),
        description: "The start of the page. Take it from a `Link` of a page with the same filters.",
        example: examples.eventRecord.id,
      },
      limit: pageParameters.limit,
    },
    response: {
      status: 200,
      schema: listOf(eventRecordSchema),
      example: [examples.eventRecord],
      hasNextPage: true,
    },
  },
  createWebhook: {
    summary: "Create a webhook",
    description: `Only this response contains the signing secret. A project can have at most ${MAX_WEBHOOKS_PER_PROJECT} webhooks.`,
    fields: { url: receiver, name, headers },
    example: { url: examples.shownWebhook.url, events: examples.shownWebhook.events },
    response: { status: 201, schema: createdWebhookSchema, example: examples.createdWebhook },
    errors: ["webhook_limit_reached"],
  },
  listWebhooks: {
    summary: "List the webhooks of a project",
    description: "Oldest first, without their secrets.",
    response: { status: 200, schema: listOf(webhookListItemSchema), example: [examples.listedWebhook] },
  },
  getWebhook: {
    summary: "Show a webhook",
    response: { status: 200, schema: webhookSchema, example: examples.shownWebhook },
  },
  updateWebhook: {
    summary: "Change, disable or enable a webhook",
    description:
      "Fields that are left out do not change. Events for a disabled webhook are kept as `held` deliveries. Enabling the webhook " +
      "does not send them; `recoverDeliveries` does. " +
      `The webhooks of a project can be changed ${REQUEST_BUDGET} times a minute; beyond it, returns 429 \`rate_limited\`.`,
    fields: {
      url: receiver,
      name: { description: `${name.description} \`null\` removes it.` },
      enabled: { description: "`false` disables the webhook, `true` enables it." },
      headers: { description: `${headers.description} Replaces all that the webhook had; \`null\` removes them.` },
    },
    body: { minProperties: 1 },
    example: { enabled: true },
    response: { status: 200, schema: webhookSchema, example: examples.shownWebhook },
  },
  rotateWebhookSecret: {
    summary: "Replace the signing secret",
    description:
      "Only this response contains the new secret. During the overlap, deliveries are signed with the old secret too, so that " +
      "receivers can switch at any time, except those that read `X-Service-Signature` alone: it has the new secret's signature at " +
      "once, and `X-Service-Signature-Previous` the others. At most three old secrets stay valid.",
    fields: {
      overlap_seconds: {
        description: "Seconds for which the old secret stays valid. 0 invalidates all old secrets immediately.",
      },
    },
    example: { overlap_seconds: 3600 },
    response: { status: 200, schema: rotatedWebhookSchema, example: examples.rotatedWebhook },
  },
  deleteWebhook: {
    summary: "Delete a webhook",
    description: "Its pending deliveries become `cancelled`, and its deliveries can no longer be read.",
    response: { status: 204 },
  },
  getWebhookStats: {
    summary: "Show success rate and response times of a webhook",
    description:
      "Computed from the newest deliveries when it is requested. Attempts are counted at their own time, retries of older events " +
      "included. `complete` and `covered_since` say what was read.",
    fields: { window: { default: "24h", description: "The time that is counted, until now." } },
    response: { status: 200, schema: statsSchema, example: examples.stats },
  },
  sendTestDelivery: {
    summary: "Send a sample event",
    description:
      "One attempt, immediately, even if the webhook is disabled. The request has the header `X-Service-Test: true`, and `data.test` is `true`. " +
      budgetNote("test"),
    fields: {
      event: {
        description: "The event to simulate: one to which the webhook subscribes. Default: the first of its `events`.",
      },
      data: {
        description:
          "Replaces fields of the sample's data. Unlike a deployment event, it is not compared with a schema.",
      },
    },
    example: { event: "deploy.failed" },
    response: { status: 202, schema: deliverySchema, example: examples.testDelivery },
  },
  certifyWebhook: {
    summary: "Certify a receiver",
    description:
      "Sends six requests with a sample of an event to which the webhook subscribes: three valid ones, one of them a repeat, and three that the receiver must reject, with a " +
      "forged signature, a stale timestamp and a cut body. Each has the header `X-Service-Probe` with the id of the certification, and the marks of a test delivery: `X-Service-Test: true`, and `true` in `data.test`. They are no deliveries, " +
      "are sent even if the webhook is disabled, and change only `last_certification` of the webhook. Read the report with `getCertification`. " +
      budgetNote("certify"),
    response: { status: 202, schema: certificationSchema, example: examples.startedCertification },
  },
  getCertification: {
    summary: "Show a certification",
    description: "The report of each check, with a hint for each that did not pass. Kept for 30 days.",
    response: { status: 200, schema: certificationSchema, example: examples.finishedCertification },
  },
  listProjectDeliveries: {
    summary: "List the deliveries of a project",
    description: `The deliveries of all webhooks that the project has now. ${listNote}`,
    ...deliveryList,
  },
  listDeliveries: {
    summary: "List the deliveries of a webhook",
    description: listNote,
    ...deliveryList,
  },
  getDelivery: {
    summary: "Show a delivery",
    description: "With its payload, and the response to each attempt.",
    response: { status: 200, schema: deliveryDetailSchema, example: examples.shownDelivery },
  },
  redeliver: {
    summary: "Send a delivery again",
    description:
      "Sends the delivery with the same id, whatever its status, also on a disabled webhook. If the attempt fails, the retry " +
      `schedule starts again. ${budgetNote("redeliver")}`,
    response: { status: 202, schema: deliverySchema, example: examples.redelivered },
  },
  recoverDeliveries: {
    summary: "Send failed, held and waiting deliveries",
    description:
      "Sends the failed and held deliveries of events since a time again, oldest first, with the same ids. If any of them waits for a " +
      "later attempt, all that waits for the webhook is sent now. A call ends after 10,000 deliveries, after " +
      "reading 25,000 or 24 MB, or after 20 seconds, also when it has found none: until `complete` is true, repeat it with `next_cursor` as " +
      `\`cursor\`. Enable a disabled webhook first. Shadowed deliveries are sent again only with their status, after the switch to live, and superseded ones after the change to every event. ${budgetNote("recover")}`,
    fields: {
      since: { description: "Time of the earliest event, with its time zone." },
      status: {
        description:
          "Only deliveries with this status; `pending`: what waits. Default: `failed`, `held` and `pending`.",
      },
      cursor: {
        description:
          "Where to continue: the `next_cursor` of a call for the same webhook. `since` still applies, and may differ from " +
          "that call's.",
      },
    },
    example: { since: "2026-11-20T00:00:00Z", status: "failed" },
    response: { status: 202, schema: recoveryResultSchema, example: { count: 12, complete: true, next_cursor: null } },
    errors: ["conflict"],
  },
  listAuditEvents: {
    summary: "List what was done to your API keys",
    ...auditListWith(examples.keyAuditEvent),
  },
  listProjectAuditEvents: {
    summary: "List what was done to the webhooks and members of a project",
    ...auditListWith(examples.webhookAuditEvent),
  },
  createServiceAccount: {
    summary: "Create a service account",
    description: `It becomes a member of the project with the role. A project can have at most ${MAX_SERVICE_ACCOUNTS_PER_PROJECT}.`,
    fields: { name, role: { description: "Role of its keys in the project." } },
    example: { name: "deploy", role: "viewer" },
    response: { status: 201, schema: serviceAccountSchema, example: examples.serviceAccount },
    errors: ["service_account_limit_reached"],
  },
  listMembers: {
    summary: "List the members of a project",
    description:
      "The people whom the platform has added: admins first, then by the time of joining. At most the first 500 by their ids. Not the service accounts. " +
      "Uses the project's read budget; beyond it, returns 429 `rate_limited`.",
    response: {
      status: 200,
      schema: listOf(memberSchema),
      example: [{ user_id: "user", role: "admin", created_at: examples.serviceAccount.created_at }],
    },
  },
  listServiceAccounts: {
    summary: "List the service accounts of a project",
    description: "Oldest first.",
    response: { status: 200, schema: listOf(serviceAccountSchema), example: [examples.serviceAccount] },
  },
  deleteServiceAccount: {
    summary: "Delete a service account",
    description:
      "With all of its API keys: the next request with one of them is rejected. While another request deletes the same service account, " +
      "returns 409 `conflict`. One that failed can be repeated after 30 seconds.",
    response: { status: 204 },
    errors: ["conflict"],
  },
  createServiceAccountApiKey: {
    summary: "Create an API key of a service account",
    description:
      `Only this response contains \`key\`. The key sees this project only, with the role of the service account. At most ` +
      `${MAX_KEYS_PER_USER} for each.`,
    ...keyCreation,
  },
  listServiceAccountApiKeys: {
    summary: "List the API keys of a service account",
    description: "Oldest first.",
    ...keyList,
  },
  updateServiceAccountApiKey: {
    summary: "Rename an API key of a service account",
    ...keyRenaming,
  },
  rollServiceAccountApiKey: {
    summary: "Replace the secret of an API key of a service account",
    ...keyRoll,
  },
  deleteServiceAccountApiKey: {
    summary: "Delete an API key of a service account",
    description: "The next request with the key is rejected.",
    response: { status: 204 },
  },
  createTrustedWorkflow: {
    summary: "Trust the workflows of a repository",
    description:
      "A token matches when it is of this issuer and repository, and each further field that is set equals its claim; a token " +
      `without the claim does not match. A project can have at most ${MAX_TRUSTED_WORKFLOWS_PER_PROJECT} trusted workflows; the permissions of ` +
      "all that match are added up.",
    fields: {
      name: { description: `${name.description} Default: none.` },
      issuer: {
        description: "The CI system: `github`, `gitlab`, or another name, of those that the stage accepts.",
      },
      repository_id: {
        description:
          "The numeric id: `repository_id` of GitHub, `project_id` of GitLab. Names are not accepted, because they can be taken over.",
      },
      repository_owner_id: {
        description:
          "The numeric id of its owner: `repository_owner_id` of GitHub, `namespace_id` of GitLab. Default: any, also after a transfer.",
      },
      ref: {
        description:
          "The full ref that the workflow runs for, such as `refs/heads/main`: `ref` of GitHub, `ref_path` of GitLab. Default: any, " +
          "also pull requests of the repository itself.",
      },
      environment: { description: "The environment of the job. Default: any, also none." },
      job_workflow_ref: {
        description:
          "The file that defines the job, with the ref that it is read from, such as " +
          "`acme/shop/.github/workflows/deploy.yml@refs/heads/main`: `job_workflow_ref` of GitHub, `ci_config_ref_uri` of GitLab. " +
          "Default: any.",
      },
      event_name: {
        description:
          "What started the workflow, such as `push`: `event_name` of GitHub, `pipeline_source` of GitLab. Default: anything, also " +
          "a comment of a stranger, where a workflow runs at one.",
      },
      permissions: {
        description:
          "What the workflow may do in this project, of this list or of `platform_permissions` of the current credential. There are none " +
          "for API keys.",
      },
    },
    example: examples.trustInput,
    response: { status: 201, schema: trustedWorkflowSchema, example: examples.trustedWorkflow },
    errors: ["trusted_workflow_limit_reached"],
  },
  listTrustedWorkflows: {
    summary: "List the trusted workflows of a project",
    description: "Oldest first.",
    response: { status: 200, schema: listOf(trustedWorkflowSchema), example: [examples.trustedWorkflow] },
  },
  deleteTrustedWorkflow: {
    summary: "Delete a trusted workflow",
    description: "The next request of the workflow is rejected, unless another one matches it.",
    response: { status: 204 },
  },
};
