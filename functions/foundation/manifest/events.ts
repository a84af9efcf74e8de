/*
 * The catalogue of events. OpenAPI, the client's types and values, the console, the command line, MCP tools, samples
 * and documents follow from these rows; a stage adds its own (`events`). Data only.
 */

/** JSON Schema 2020-12. https://json-schema.org/draft/2020-12 */
export interface JsonSchema {
  [keyword: string]: unknown;
  properties?: Record<string, JsonSchema>;
}

export interface EventRow {
  /** A clause that follows the name: what has happened. */
  description: string;
  /** A deployment ends with it; a later event of the deployment is possible. */
  final: boolean;
  tone: "neutral" | "good" | "bad";
  /** State of a deployment after it; absent = the part of the name after its last dot. */
  state?: string;
  /** Schema of `data`. Its first `examples`, and each `const`, are the data of a sample. */
  data: JsonSchema;
}

/**
 * Fields of `data` that chats show and filters often name. Each is optional, and of any type: a pipeline may have its
 * own.
 */
export const usualFields = {
  project: { description: "Name of the project, which the service does not know.", examples: ["Shop"] },
  environment: { description: "Environment of the deployment.", examples: ["production"] },
  branch: { description: "Branch that was deployed.", examples: ["main"] },
  commit: {
    description: "Commit that was deployed.",
    examples: ["1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b"],
  },
  commit_message: { description: "First line of the commit's message.", examples: ["Fix the cart"] },
  actor: { description: "Name of the person or the program that started the deployment.", examples: ["Ada"] },
  duration_seconds: { description: "Duration of the build or the deployment in seconds.", examples: [72] },
  logs_url: { description: "URL of the log, as an http(s) URL.", examples: ["https://logs.example.com/1"] },
} satisfies Record<string, JsonSchema>;

const { project, environment, branch, commit } = usualFields;

/** `data` with the usual fields and others. */
const dataWith = (
  description: string,
  properties: Record<string, JsonSchema> = {},
  required?: string[],
): JsonSchema => ({
  type: "object",
  description,
  ...(required && { required }),
  properties: { ...properties, project, environment, branch, commit },
});

const anyData = "Data of the pipeline, passed on unchanged; `{}` when the pipeline sends none.";

/** The events of the pipeline. Webhooks for chats subscribe to `deploy.*`. */
export const deploymentEvents = {
  "deploy.started": {
    description: "a build has started",
    final: false,
    tone: "neutral",
    state: "running",
    data: dataWith(anyData),
  },
  "deploy.succeeded": {
    description: "the deployment is live and healthy",
    final: true,
    tone: "good",
    data: dataWith(
      "URL and status of the app. Other fields of the pipeline are passed on unchanged.",
      {
        url: {
          type: "string",
          format: "uri",
          pattern: "^[Hh][Tt][Tt][Pp][Ss]?://",
          description: "Public URL of the app.",
          examples: ["https://demo.example.com"],
        },
        status: { const: "running", description: "The app serves requests." },
      },
      ["url", "status"],
    ),
  },
  "deploy.failed": {
    description: "the build or a health check failed",
    final: true,
    tone: "bad",
    data: dataWith(anyData, {
      reason: { description: "Why it failed.", examples: ["health check timed out"] },
    }),
  },
} as const satisfies Record<`deploy.${string}`, EventRow>;

const ofWebhook = {
  webhook_id: {
    type: "string",
    format: "uuid",
    description: "Id of the webhook. A webhook is never notified about itself.",
    examples: ["01930000-0000-7000-8000-00000000d301"],
  },
  name: { type: "string", description: "Name of the webhook; absent = it has none." },
  host: {
    type: "string",
    description:
      "Host of its URL, with the port if it is not the usual one. Path and query are left out: they often have a token.",
    examples: ["example.com"],
  },
  failing_since: {
    type: ["string", "null"],
    format: "date-time",
    description: "Time of the first failure after the last success; null = it was not failing.",
    examples: ["2026-11-21T03:34:29.027Z"],
  },
  status_code: {
    type: ["integer", "null"],
    description: "Status code of the last response; null when none arrived or no attempt led to this.",
    examples: [500],
  },
  error_code: {
    type: ["string", "null"],
    description: "Why the last attempt failed, as in `error_code` of an attempt; null when no attempt led to this.",
    examples: ["http_status"],
  },
} satisfies Record<string, JsonSchema>;

const dataAboutWebhook = (properties: Record<string, JsonSchema> = {}): JsonSchema => ({
  type: "object",
  description: "What happened to the webhook. A certification adds its marks: a receiver ignores other fields.",
  required: ["webhook_id", "host", "failing_since", "status_code", "error_code", ...Object.keys(properties)],
  properties: { ...ofWebhook, ...properties },
});

/**
 * The events about webhooks of a project, which this service creates itself. A webhook gets them if it subscribes to
 * them.
 */
export const webhookEvents = {
  "webhook.failing": {
    description: "another webhook of the project has been failing for 30 minutes",
    final: false,
    tone: "bad",
    data: dataAboutWebhook(),
  },
  "webhook.disabled": {
    description: "another webhook of the project was disabled, or switched to shadow mode",
    final: false,
    tone: "bad",
    data: dataAboutWebhook({
      reason: {
        enum: ["failing", "gone", "manual", "shadow"],
        description: [
          "Why it sends nothing.",
          "",
          "- `gone`: the receiver responded with 410",
          "- `failing`: no delivery succeeded for days",
          "- `manual`: disabled by a user or the operator",
          "- `shadow`: it was switched to shadow mode, and is enabled",
        ].join("\n"),
        examples: ["failing"],
      },
    }),
  },
} as const satisfies Record<`webhook.${string}`, EventRow>;

/** The names of the events that every stage has. */
export const eventNames = Object.keys(deploymentEvents) as (keyof typeof deploymentEvents)[];
export const webhookEventNames = [
  ...eventNames,
  ...(Object.keys(webhookEvents) as (keyof typeof webhookEvents)[]),
] as const;

/** An event of a stage: the `events` option, and the setting EVENTS of a local run. */
export interface OwnEvent {
  name: string;
  description: string;
  final: boolean;
  tone?: EventRow["tone"];
  /** Absent = any object. */
  data?: JsonSchema;
}

/** Form of the names of events. */
export const EVENT_NAME = /^[a-z]+(\.[a-z_]+)+$/;

/** Form of the entries of a webhook's `events`: a name, `*`, or the beginning of names and `.*`. */
export const SUBSCRIPTION = /^(\*|[a-z]+(\.[a-z_]+)*\.\*|[a-z]+(\.[a-z_]+)+)$/;

const MAX_OWN_EVENTS = 50;
const MAX_NAME_CHARACTERS = 100;
const MAX_SCHEMA_BYTES = 4_096;
const FIELDS = ["name", "description", "final", "tone", "data"];

/**
 * Returns the first rule that the events of a stage break; undefined = none. Schemas are compiled where they are
 * configured.
 */
export function ownEventsProblem(value: unknown): string | undefined {
  if (!Array.isArray(value)) return "It must be a list of events.";
  if (value.length > MAX_OWN_EVENTS) return `It must have at most ${MAX_OWN_EVENTS} events.`;
  const names = new Set<unknown>();
  for (const [index, event] of value.entries()) {
    if (typeof event !== "object" || event === null) return `Event ${index}: it must be an object.`;
    const { name, description, final, tone, data } = event as Record<keyof OwnEvent, unknown>;
    const at = typeof name === "string" ? `"${name.slice(0, MAX_NAME_CHARACTERS)}"` : `Event ${index}`;
    const unknown = Object.keys(event).find((field) => !FIELDS.includes(field));
    if (unknown !== undefined) return `${at}: ${unknown} is not a known field.`;
    if (typeof name !== "string" || name.length > MAX_NAME_CHARACTERS || !EVENT_NAME.test(name)) {
      return `${at}: the name must be words of a to z with dots between them, such as deploy.rolled_back, of at most ${MAX_NAME_CHARACTERS} characters.`;
    }
    if (name in deploymentEvents || name.startsWith("webhook.")) return `${at}: the service has this name itself.`;
    if (names.has(name)) return `${at}: the name occurs twice.`;
    names.add(name);
    if (typeof description !== "string" || description === "") return `${at}: the description must be a sentence.`;
    if (typeof final !== "boolean") return `${at}: final must be true or false.`;
    if (!["neutral", "good", "bad", undefined].includes(tone as EventRow["tone"])) {
      return `${at}: tone must be neutral, good or bad.`;
    }
    if (data !== undefined && (typeof data !== "object" || data === null || Array.isArray(data))) {
      return `${at}: data must be a JSON Schema.`;
    }
    if (new TextEncoder().encode(JSON.stringify(data ?? {})).length > MAX_SCHEMA_BYTES) {
      return `${at}: the schema of data must have at most ${MAX_SCHEMA_BYTES} bytes.`;
    }
  }
  return undefined;
}
