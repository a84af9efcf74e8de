import { createHash } from "node:crypto";
import * as z from "zod/mini";
import { timeOrderedUuid } from "../platform/uuid.ts";
import { isTime, orRequired, uuid } from "../schema/input.ts";

export const eventNames = ["deploy.started", "deploy.succeeded", "deploy.failed"] as const;
export type EventName = (typeof eventNames)[number];

/** A deployment event that the pipeline put on the queue. */
export interface DeploymentEvent {
  event: EventName;
  project_id: string;
  deployment_id: string;
  /** Time of the event, ISO 8601 UTC, as it came. */
  timestamp: string;
  /**
   * What receivers get: the JSON of the four fields above and `data`, which is passed on as it came, fields that we do not
   * know and numbers beyond double precision included.
   */
  body: string;
  /** Identity of the event: the SHA-256 of its five fields, in hex. Two events are the same when all five are. */
  digest: string;
}

const anyData = z.custom<Record<string, unknown>>(isJsonObject, "must be a JSON object");

const succeededData = z.looseObject(
  {
    url: z.url({ protocol: /^https?$/, error: () => "must be the http(s) URL of the app" }),
    status: z.literal("running", orRequired('must be "running"')),
  },
  orRequired("must be a JSON object with url and status"),
);

const base = {
  project_id: uuid,
  deployment_id: uuid,
  timestamp: z
    .string(orRequired("must be a string"))
    .check(z.refine((text) => isTime(text) && /(Z|\+00:00)$/i.test(text), "must be ISO 8601 in UTC")),
};

/** What each event must bring. A new event name does not compile until it stands here. */
const schemas = {
  "deploy.started": z.object({ ...base, data: z._default(anyData, {}) }),
  "deploy.succeeded": z.object({ ...base, data: succeededData }),
  "deploy.failed": z.object({ ...base, data: z._default(anyData, {}) }),
} satisfies Record<EventName, z.ZodMiniType>;

const named = z.looseObject(
  { event: z.enum(eventNames, orRequired(`must be one of ${eventNames.join(", ")}`)) },
  orRequired("must be a JSON object"),
);

export type ReadResult = { ok: true; event: DeploymentEvent } | { ok: false; reason: string };

/** Reads a message of the events queue. A message that is no event yields the reason, for the people who own the pipeline. */
export function readDeploymentEvent(message: string): ReadResult {
  try {
    return read(parseExactly(message));
  } catch (error) {
    if (error instanceof SyntaxError) return { ok: false, reason: "the message is not JSON" };
    if (error instanceof RangeError) return { ok: false, reason: "the message is nested too deeply" };
    throw error;
  }
}

function read(message: unknown): ReadResult {
  const name = z.safeParse(named, message);
  if (!name.success) return { ok: false, reason: reasonOf(name.error) };
  const { event } = name.data;
  const rest = z.safeParse(schemas[event], message);
  if (!rest.success) return { ok: false, reason: reasonOf(rest.error) };
  const { project_id, deployment_id, timestamp } = rest.data;
  // What was checked, and the data untouched by the check.
  const data = (name.data.data ?? {}) as Content["data"];
  return { ok: true, event: deploymentEvent({ event, project_id, deployment_id, timestamp, data }) };
}

interface Content extends Pick<DeploymentEvent, "event" | "project_id" | "deployment_id" | "timestamp"> {
  data: object;
}

/** The event with this content, ready to be sent. */
export function deploymentEvent({ event, project_id, deployment_id, timestamp, data }: Content): DeploymentEvent {
  const content = { event, project_id, deployment_id, timestamp, data };
  const digest = createHash("sha256").update(canonicalJson(content)).digest("hex");
  return { event, project_id, deployment_id, timestamp, body: JSON.stringify(content), digest };
}

function reasonOf(error: z.core.$ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join(".") || "the message"} ${message}`).join("; ");
}

/**
 * The id of the delivery of an event to a webhook: the same event makes the same id, so that an event that comes twice, or
 * is processed again after a crash, is delivered once. The time of the event comes first: ids sort by it.
 */
export function deliveryIdOf({ timestamp, digest }: DeploymentEvent, webhookId: string): string {
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

/** JSON that keeps numbers as they are written: `JSON.parse` alone would turn 9007199254740993 into …992. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  );
}

/** JSON in which the order of an object's keys makes no difference. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    isJsonObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}

/** Raw numbers are objects for `typeof` too. */
function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}
