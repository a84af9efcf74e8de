import type { Attempt, Delivery, DeliveryStatus, Project, Webhook } from "../../../client/src/client.ts";
import { type DeploymentState, type Outcome, outcomeIn } from "../../../client/src/deployment-timeline.ts";

/* How the console shows the values of the API. `satisfies` makes the compiler require every value. */

export type Tone = "good" | "bad" | "warning" | "neutral";

export const statusTones = {
  pending: "warning",
  succeeded: "good",
  failed: "bad",
  held: "neutral",
  cancelled: "neutral",
  shadowed: "neutral",
  superseded: "neutral",
} satisfies Record<DeliveryStatus, Tone>;

const outcomeTones = { open: "warning", good: "good", bad: "bad", unknown: "neutral" } satisfies Record<Outcome, Tone>;
export const deploymentTone = (state: DeploymentState): Tone => outcomeTones[outcomeIn(state)];

export type WaitingFor = NonNullable<Delivery["waiting_for"]>;

/**
 * Why a delivery is not attempted now: the `sentence` in its detail, in which `next` precedes the time of its next attempt,
 * and the `mark` in a list. Before the time if the mark `isTimed`.
 */
export const waitingTexts = {
  schedule: { sentence: "Waits for its next attempt", next: "next", mark: "next", isTimed: true },
  recovery: { sentence: "Waits for the receiver's recovery", next: "next probe", mark: "probe", isTimed: true },
  busy: {
    sentence: "Waits for a free sender: others are being sent, or the receiver is slow",
    next: "due",
    mark: "waits for a sender",
    isTimed: false,
  },
  suspended: {
    sentence: "Not sent while the webhook is disabled or the project suspended",
    next: "next",
    mark: "on hold",
    isTimed: false,
  },
} satisfies Record<WaitingFor, { sentence: string; next: string; mark: string; isTimed: boolean }>;

type HealthState = Webhook["health"]["state"];

/** How the deliveries to a webhook fare. Its duration follows the note. */
export const healthStates = {
  new: { badge: "new", tone: "neutral", note: "No delivery has succeeded yet" },
  healthy: { badge: "healthy", tone: "good", note: "Healthy for" },
  slow: { badge: "slow", tone: "warning", note: "The receiver has been slow for" },
  failing: { badge: "failing", tone: "bad", note: "No attempt has succeeded for" },
  probing: {
    badge: "failing",
    tone: "bad",
    note: "Deliveries wait until one succeeds. None has for",
  },
  shadow: { badge: "shadow", tone: "neutral", note: "In shadow mode" },
  disabled: { badge: "disabled", tone: "bad", note: "Disabled for" },
} satisfies Record<HealthState, { badge: string; tone: Tone; note: string }>;

export const roleTones = { admin: "neutral", viewer: "neutral" } satisfies Record<Project["role"], Tone>;

export type DisabledReason = NonNullable<Webhook["disabled_reason"]>;

/** Why a webhook is disabled. The cause completes the sentence "Disabled …". */
export const disabledReasons = {
  gone: { badge: "disabled: 410 Gone", tone: "bad", cause: "because the receiver returned 410 Gone" },
  failing: { badge: "disabled: failing", tone: "bad", cause: "because no delivery succeeded for several days" },
  manual: { badge: "disabled: by a user", tone: "neutral", cause: "by a user" },
} satisfies Record<DisabledReason, { badge: string; tone: Tone; cause: string }>;

/** Why an attempt was made. Empty for the retry schedule, which needs no mark. */
export const triggerMarks = {
  schedule: "",
  redeliver: "resent",
  recover: "resent",
  test: "test",
} satisfies Record<Attempt["trigger"], string>;
