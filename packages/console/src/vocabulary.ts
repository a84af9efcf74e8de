import type {
  Attempt,
  DeliveryStatus,
  EventName,
  Project,
  Webhook,
  WebhookEventName,
} from "../../client/src/client.ts";

/* How the console shows the values of the API. `satisfies` makes the compiler require every value. */

const keysOf = <Key extends string>(record: Record<Key, unknown>) => Object.keys(record) as Key[];

export const eventMeanings = {
  "deploy.started": "a build has started",
  "deploy.succeeded": "the deployment is live and healthy",
  "deploy.failed": "the build or the health check failed",
} satisfies Record<EventName, string>;

/** The events of deployments. */
export const eventNames = keysOf(eventMeanings);

export const webhookEventMeanings = {
  ...eventMeanings,
  "webhook.failing": "another webhook of the project has been failing for 30 minutes",
  "webhook.disabled": "another webhook of the project was disabled",
} satisfies Record<WebhookEventName, string>;

/** The events that a webhook can subscribe to. */
export const webhookEventNames = keysOf(webhookEventMeanings);

export type Tone = "good" | "bad" | "warning" | "neutral";

export const statusTones = {
  pending: "warning",
  succeeded: "good",
  failed: "bad",
  held: "neutral",
  cancelled: "neutral",
} satisfies Record<DeliveryStatus, Tone>;

export const deliveryStatuses = keysOf(statusTones);

export const roleTones = { admin: "good", viewer: "neutral" } satisfies Record<Project["role"], Tone>;

export type DisabledReason = NonNullable<Webhook["disabled_reason"]>;

/** Why a webhook is disabled. The cause completes the sentence "Disabled …". */
export const disabledReasons = {
  gone: { badge: "disabled: 410 Gone", cause: "because the receiver returned 410 Gone" },
  failing: { badge: "disabled: failing", cause: "because no delivery succeeded for several days" },
  manual: { badge: "disabled: by a user", cause: "by a user" },
} satisfies Record<DisabledReason, { badge: string; cause: string }>;

/** Why an attempt was made. Empty for the retry schedule, which needs no mark. */
export const triggerMarks = {
  schedule: "",
  redeliver: "redelivered",
  recover: "recovered",
  test: "test",
} satisfies Record<Attempt["trigger"], string>;
