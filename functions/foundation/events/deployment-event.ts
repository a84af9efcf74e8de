import { createHash } from "node:crypto";
import { timeOfUuid, timeOrderedUuid } from "../platform/uuid.ts";

/** Name of an event in the catalogue of this stage: catalogue.ts. */
export type EventName = string;

/** A valid deployment event of the pipeline. */
export interface DeploymentEvent {
  event: EventName;
  project_id: string;
  deployment_id: string;
  /** Time of the event, ISO 8601 in UTC, as the pipeline wrote it. */
  timestamp: string;
  data: object;
  /**
   * The payload for receivers: the four fields above and `data` as JSON. `data` is passed on unchanged, including
   * unknown fields and numbers beyond double precision.
   */
  body: string;
  /** Identity of the event: SHA-256 over its five fields, in hex. Two events with equal fields are the same event. */
  digest: string;
}

export type EventContent = Omit<DeploymentEvent, "body" | "digest">;

/** Creates the event with these fields: its payload and its digest. */
export function createDeploymentEvent({
  event,
  project_id,
  deployment_id,
  timestamp,
  data,
}: EventContent): DeploymentEvent {
  const content = { event, project_id, deployment_id, timestamp, data };
  const digest = createHash("sha256").update(canonicalJson(content)).digest("hex");
  return { ...content, body: JSON.stringify(content), digest };
}

/**
 * Returns the value of `X-Service-Sequence` for an event of this id or of a delivery of it: decimal digits, larger for a newer event of the
 * same deployment. It is the time of the event in tenths of a millisecond. At the same time, a final event is newer: many pipelines
 * write whole seconds.
 */
export const sequenceOf = (id: string, isFinal: boolean): number => timeOfUuid(id).getTime() * 10 + (isFinal ? 1 : 0);

/** Returns the id of an event: equal events have equal ids. Ids sort by the time of the event. */
export const eventIdOf = ({ timestamp, digest }: DeploymentEvent): string =>
  timeOrderedUuid(Math.max(0, Date.parse(timestamp)), Buffer.from(digest, "hex"));

/**
 * Returns the id of the delivery of an event to a webhook. Equal events have equal ids, so that a duplicate event or a
 * retry after a crash creates no second delivery. Ids sort by the time of the event.
 */
export function deliveryIdOf(
  { timestamp, digest }: Pick<DeploymentEvent, "timestamp" | "digest">,
  webhookId: string,
): string {
  const hash = createHash("sha256").update(digest).update(webhookId).digest();
  return timeOrderedUuid(Math.max(0, Date.parse(timestamp)), hash);
}

declare global {
  // https://tc39.es/proposal-json-parse-with-source/, in Node since 21.
  interface JSON {
    rawJSON(text: string): unknown;
    isRawJSON(value: unknown): boolean;
  }
}

/** Parses JSON and keeps numbers as written. `JSON.parse` alone turns 9007199254740993 into 9007199254740992. */
export function parseJsonExactly(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  );
}

/** Serializes to JSON with sorted keys, so that the key order of the input makes no difference. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    isJsonObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}

/** Returns whether a value is a JSON object. `typeof` is "object" for the raw numbers of `parseJsonExactly` too. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}
