import * as z from "zod/mini";
import { isTime, orRequired, uuid } from "../schema/input.ts";
import {
  createDeploymentEvent,
  type DeploymentEvent,
  type EventContent,
  type EventName,
  eventNames,
  isJsonObject,
  parseJsonExactly,
} from "./deployment-event.ts";

/* The rules for the messages of the pipeline. A file of their own: most functions handle events, and few load a schema library for them. */

/** Receivers ignore a test delivery, so they would ignore an event with its mark. */
const isNoTest = z.refine<Record<string, unknown>>(({ test }) => test !== true, {
  path: ["test"],
  message: "must not be true, which marks a test delivery",
});

const anyData = z.custom<Record<string, unknown>>(isJsonObject, "must be a JSON object").check(isNoTest);

const succeededData = z
  .looseObject(
    {
      url: z.url({ protocol: /^https?$/, error: () => "must be the http(s) URL of the app" }),
      status: z.literal("running", orRequired('must be "running"')),
    },
    orRequired("must be a JSON object with url and status"),
  )
  .check(isNoTest);

const base = {
  project_id: uuid,
  deployment_id: uuid,
  timestamp: z
    .string(orRequired("must be a string"))
    .check(z.refine((text) => isTime(text) && /(Z|\+00:00)$/i.test(text), "must be ISO 8601 in UTC")),
};

/** The rules for the fields of each event. A new event name does not compile until it is added here. */
const schemas = {
  "deploy.started": z.object({ ...base, data: z._default(anyData, {}) }),
  "deploy.succeeded": z.object({ ...base, data: succeededData }),
  "deploy.failed": z.object({ ...base, data: z._default(anyData, {}) }),
} satisfies Record<EventName, z.ZodMiniType>;

const anyEvent = z.looseObject(
  { event: z.enum(eventNames, orRequired(`must be one of ${eventNames.join(", ")}`)) },
  orRequired("must be a JSON object"),
);

export type ParseResult = { ok: true; event: DeploymentEvent } | { ok: false; reason: string };

/**
 * Parses a message of the events queue.
 * @returns the event, or for an invalid message the reason, addressed to the owners of the pipeline
 */
export function parseDeploymentEvent(message: string): ParseResult {
  try {
    return parseEvent(parseJsonExactly(message));
  } catch (error) {
    if (error instanceof SyntaxError) return { ok: false, reason: "the message is not JSON" };
    if (error instanceof RangeError) return { ok: false, reason: "the message is nested too deeply" };
    throw error;
  }
}

function parseEvent(message: unknown): ParseResult {
  const named = z.safeParse(anyEvent, message);
  if (!named.success) return { ok: false, reason: reasonOf(named.error) };
  const { event } = named.data;
  const rest = z.safeParse(schemas[event], message);
  if (!rest.success) return { ok: false, reason: reasonOf(rest.error) };
  const { project_id, deployment_id, timestamp } = rest.data;
  // `data` is taken from the parsed message, not from the schema output, so that it stays unchanged.
  const data = (named.data.data ?? {}) as EventContent["data"];
  return { ok: true, event: createDeploymentEvent({ event, project_id, deployment_id, timestamp, data }) };
}

function reasonOf(error: z.core.$ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join(".") || "the message"} ${message}`).join("; ");
}
