import type { FailureCode } from "../../foundation/events/failure-code.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { timeOrderedUuid } from "../../foundation/platform/uuid.ts";
import type { WebhookFormat } from "../../webhooks/formats/format.ts";

/*
 * The certification of a receiver: whether it accepts valid deliveries and rejects those that are not authentic. Six
 * requests, the probes, show it. They are no deliveries: no list contains them, and of the webhook they change only its
 * `last_certification`.
 */

/** The required response to each probe. `repeated` is `valid` again, with the same id. */
export const probeExpectations = {
  valid: "2xx",
  repeated: "2xx",
  unusual_body: "2xx",
  forged_signature: "4xx",
  stale_timestamp: "4xx",
  cut_body: "4xx",
} as const satisfies Record<string, "2xx" | "4xx">;

export type Probe = keyof typeof probeExpectations;
export const probes = Object.keys(probeExpectations) as Probe[];

/** The formats of products that verify no signature, and show what they accept to people: they get the valid delivery only. */
const UNVERIFYING: readonly (WebhookFormat | undefined)[] = [
  "slack",
  "discord",
  "teams",
  "google-chat",
  "github-dispatch",
];

/** Returns the probes that a receiver of this format gets. */
export const probesOf = (format?: WebhookFormat): Probe[] => (UNVERIFYING.includes(format) ? ["valid"] : probes);

/** How a receiver responded to a probe. */
export interface ProbeResult {
  duration_ms: number;
  /** Absent when no response arrived. */
  status_code?: number | undefined;
  /** Absent for a 2xx. */
  error_code?: FailureCode | undefined;
  /** Input of the failure hint: see `detail` in functions/webhooks/receiver/failure-hints.ts. */
  detail?: string | undefined;
}

/** The results by probe. A probe that was not sent is absent. */
export type ProbeResults = Partial<Record<Probe, ProbeResult>>;

/** The row has neither a due time nor a project, so that no index and no list contains it. */
export interface Certification {
  /** `certification:` and the id of the webhook, so that no list of deliveries contains it. */
  webhook_id: string;
  id: string;
  created_at: string;
  /** When the results were stored; absent before. */
  finished_at?: string;
  results?: ProbeResults;
  /** The format of the webhook when the probes were sent; absent = standard. */
  format?: Exclude<WebhookFormat, "standard">;
  /** Expiry time in epoch seconds. DynamoDB deletes the row after it. */
  expires_at: number;
}

const PREFIX = "certification:";
const RETENTION_DAYS = 30;

/** Returns the partition of a webhook's certifications in the table of deliveries. */
export const partitionOf = (webhookId: string): string => `${PREFIX}${webhookId}`;

/** Returns the id of the webhook that was certified. */
export const webhookIdOf = ({ webhook_id }: Pick<Certification, "webhook_id">): string =>
  webhook_id.slice(PREFIX.length);

/** @param random 16 random bytes */
export function createCertification(webhookId: string, now: Date, random: Uint8Array): Certification {
  return {
    webhook_id: partitionOf(webhookId),
    id: timeOrderedUuid(now.getTime(), random),
    created_at: now.toISOString(),
    expires_at: Math.floor(now.getTime() / 1000) + RETENTION_DAYS * 24 * 3600,
  };
}

/**
 * Time after which a certification without results is not continued. A message whose sender ended is received again after
 * six minutes (the visibility timeout of the queue), and the probes take up to half a minute.
 */
const MAX_RUNNING_SECONDS = 600;

/**
 * - `running`: the probes are not all answered.
 * - `finished`: the results are stored.
 * - `unfinished`: the results were not stored in time, and will not be.
 */
export type CertificationStatus = "running" | "finished" | "unfinished";

export function statusOf({ created_at, finished_at }: Certification, now: Date): CertificationStatus {
  if (finished_at !== undefined) return "finished";
  return addSeconds(now, -MAX_RUNNING_SECONDS) < created_at ? "running" : "unfinished";
}

/** Statuses with which a receiver asks for the request again: they reject nothing. */
const ASKS_FOR_REPEAT = [408, 429];

/** Returns whether a receiver responded to a probe as it must. */
export function isPassed(probe: Probe, result: ProbeResult | undefined): boolean {
  if (!result) return false;
  const { status_code = 0, error_code } = result;
  if (probeExpectations[probe] === "2xx") return error_code === undefined;
  const isComplete = error_code === "http_status";
  return isComplete && status_code >= 400 && status_code < 500 && !ASKS_FOR_REPEAT.includes(status_code);
}

/** Returns whether a complete response arrived within the time limit of deliveries. */
export const isAnswered = ({ error_code = "http_status" }: ProbeResult): boolean => error_code === "http_status";

/** Returns whether all probes were sent, answered in time, and answered as they must be. */
export const allPassed = (results: ProbeResults, format?: WebhookFormat): boolean =>
  probesOf(format).every((probe) => isPassed(probe, results[probe]));
