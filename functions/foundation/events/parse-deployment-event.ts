import { createContext, Script } from "node:vm";
import { format, type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import * as z from "zod/mini";
import { deploymentEvents, type EventRow } from "../manifest/events.ts";
import { isTime, orRequired, shownText, uuid } from "../schema/input.ts";
import { closestName, deploymentEventRows } from "./catalogue.ts";
import {
  createDeploymentEvent,
  type DeploymentEvent,
  type EventContent,
  isJsonObject,
  parseJsonExactly,
} from "./deployment-event.ts";

/* The rules for the messages of the pipeline. A file of their own: most functions handle events, and few load a schema library for them. */

const base = {
  project_id: uuid,
  deployment_id: uuid,
  timestamp: z
    .string(orRequired("must be a string"))
    .check(z.refine((text) => isTime(text) && /(Z|\+00:00)$/i.test(text), "must be ISO 8601 in UTC")),
};

const eventFields = z.object(base);

const namedEvent = z.looseObject(
  { event: z.string(orRequired("must be the name of an event")) },
  orRequired("must be a JSON object"),
);

// As browsers and HTTP clients read URLs, which encode what RFC 3986 does not allow: `https://bücher.example/?filter=[a|b]`.
// The library's own expression for `url` takes minutes with 38 characters.
format.uri = (text) => URL.canParse(text);
format.url = format.uri;

/** Compares `data` with the schema of its event. Made once per event: interpreted, so that a start compiles nothing. */
const validators = new WeakMap<EventRow, Validator>();

function validatorOf(row: EventRow): Validator {
  const validator = validators.get(row) ?? new Validator(row.data as Schema, "2020-12", false);
  validators.set(row, validator);
  return validator;
}

/** Broken rules that are looked at. A hostile event breaks ten thousands, each of which is compared with all. */
const MAX_RULES = 100;

/** Longer than the largest event takes on the slowest function. */
const MAX_COMPARISON_MS = 1_000;
const comparison = new Script("compare()");
let comparing: ReturnType<typeof createContext> | undefined;

/** Schemas without a slow pattern. A limit takes a thread per event: a seventh of all that a local run does for an event. */
const withoutLimit = new Set<EventRow>(Object.values(deploymentEvents));

/**
 * Returns the rules that `data` breaks. Limits the time, because a stage may have a pattern that takes hours with a text that anybody
 * wrote, such as the name of a branch: one event must not delay those of all others.
 * @throws Error when it takes too long, or a schema refers to itself without end
 */
function brokenRules(row: EventRow, data: unknown): OutputUnit[] {
  const compare = () => validatorOf(row).validate(data).errors;
  if (withoutLimit.has(row)) return compare().slice(0, MAX_RULES);
  comparing ??= createContext({});
  comparing.compare = compare;
  const errors: OutputUnit[] = comparison.runInContext(comparing, { timeout: MAX_COMPARISON_MS });
  return errors.slice(0, MAX_RULES);
}

/** Reported rules that `data` breaks, and characters of each. */
const MAX_REASONS = 5;
const MAX_REASON_CHARACTERS = 300;

/** Returns how `data` breaks the schema of its event; undefined = it does not. */
function dataProblem(row: EventRow, data: unknown): string | undefined {
  if (!isJsonObject(data)) return "data must be a JSON object";
  let errors: OutputUnit[];
  try {
    // The validator fails on halves of surrogate pairs in names.
    errors = brokenRules(row, portable(data, new Set()));
  } catch {
    return "data cannot be compared with its schema in a second: look for a pattern that repeats a repetition, or a $ref to itself";
  }
  // Without those of the schemas around another one.
  const rules = errors.filter(
    ({ keywordLocation: at }) => !errors.some(({ keywordLocation: other }) => other.startsWith(`${at}/`)),
  );
  const reasons = rules.slice(0, MAX_REASONS).map(({ instanceLocation, error }) => {
    const path = instanceLocation.split("/").slice(1).map(decodeURIComponent);
    // With names of the event. SQS refuses control characters in an attribute, and then the dead letter.
    return shownText(`${["data", ...path].join(".")} does not fit its schema: ${error}`, MAX_REASON_CHARACTERS);
  });
  return reasons.length > 0 ? reasons.join(" ") : undefined;
}

/** `changed`: how `data` differs from the message; absent = it does not. */
export type ParseResult = { ok: true; event: DeploymentEvent; changed?: string } | { ok: false; reason: string };

/** Levels of the body of a delivery: the default of .NET. Ruby has 100, PHP 512, Python about 1,000. */
const MAX_LEVELS = 64;

/** The parser for exact numbers fails at about 2,300 levels. A deeper message is read without them. */
const MAX_EXACT_LEVELS = 1_200;

/** Returns what replaces `data`, and adds to `changes` what it changed. */
type ChangeData = (data: Record<string, unknown>, changes: Set<string>) => unknown;

/** For the body of a stored event, which then has the digest under which it was stored. */
export const unchanged: ChangeData = (data) => data;

/**
 * Parses a message of the events queue.
 * @param receivedAt when SQS received it; absent = it was accepted before, and its time is not checked again
 * @param change default: replaces what parsers of receivers refuse, because customers may choose a part of `data`, and an event must not
 *   be lost for that, or become a dead letter
 * @returns the event, or for an invalid message the reason, addressed to the owners of the pipeline
 */
export function parseDeploymentEvent(message: string, receivedAt?: Date, change: ChangeData = portable): ParseResult {
  // A byte order mark, which PowerShell and .NET write, is ignored: RFC 8259, section 8.1.
  const text = message.replace(/^\ufeff/, "");
  try {
    const plain: unknown = JSON.parse(text);
    return parseEvent(plain, isDeeper(plain, MAX_EXACT_LEVELS) ? plain : parseJsonExactly(text), receivedAt, change);
  } catch (error) {
    if (error instanceof SyntaxError) return { ok: false, reason: "the message is not JSON" };
    throw error;
  }
}

/** Fields of messages that contain an event, and how to send the event itself. */
const envelopes: [fields: string[], reason: string][] = [
  [["TopicArn", "Message"], "the message is an envelope of SNS: enable raw message delivery for the subscription"],
  [
    ["detail-type", "detail"],
    "the message is an envelope of EventBridge: set the input path of the target to $.detail",
  ],
];

/** A pipeline that does not set the time sends the zero of its language, which no list since a time would show. */
const EARLIEST = new Date("2000-01-01T00:00:00Z");
const MAX_AHEAD_MS = 24 * 3_600_000;
const PLAUSIBLE = "timestamp must be between the year 2000 and a day after the event is sent";

const isPlausible = (at: Date, receivedAt: Date): boolean =>
  at >= EARLIEST && at.getTime() <= receivedAt.getTime() + MAX_AHEAD_MS;

const isDeeper = (value: unknown, levels: number): boolean =>
  Object(value) === value &&
  (levels === 0 || Object.values(value as object).some((part) => isDeeper(part, levels - 1)));

/**
 * Returns the value as all usual parsers accept it. PHP and Ruby refuse half of a surrogate pair, which a pipeline sends that cuts a text
 * inside an emoji (RFC 8259, section 8.2). Go and Rust refuse numbers beyond a double, Python integers of 4,301 digits.
 * @param levels levels that it may have; `data` is the second of a body
 */
function portable(value: unknown, changes: Set<string>, levels = MAX_LEVELS - 1): unknown {
  if (typeof value === "string") {
    if (!value.isWellFormed()) changes.add("U+FFFD for halves of surrogate pairs");
    return value.toWellFormed();
  }
  if (typeof value !== "object" || value === null) return value;
  if (JSON.isRawJSON(value)) {
    const { rawJSON } = value as { rawJSON: string };
    if (Number.isFinite(Number(rawJSON))) return value;
    changes.add("strings for numbers beyond double range");
    return rawJSON;
  }
  if (levels === 0) {
    changes.add(`null for what was nested deeper than ${MAX_LEVELS} levels`);
    return null;
  }
  if (Array.isArray(value)) return value.map((part) => portable(part, changes, levels - 1));
  const changed = (name: string, part: unknown) => [portable(name, changes), portable(part, changes, levels - 1)];
  return Object.fromEntries(Object.entries(value).map(([name, part]) => changed(name, part)));
}

/** Receivers ignore a test delivery, by a signed `data.test`. Some parsers, such as that of Go, read any case of its name. */
const isTestMark = ([name, value]: [string, unknown]): boolean => value === true && /^test$/iu.test(name);

/** @param message as parsed by `JSON.parse`; `exact` is the same with its numbers as written */
function parseEvent(message: unknown, exact: unknown, receivedAt: Date | undefined, change: ChangeData): ParseResult {
  const named = z.safeParse(namedEvent, message);
  if (!named.success) {
    const envelope = envelopes.find(([fields]) => fields.every((field) => Object.hasOwn(Object(message), field)));
    return { ok: false, reason: envelope?.[1] ?? reasonOf(named.error) };
  }
  const { event, data: sent = {} } = named.data;
  // A stored event was accepted. Its stage may have another catalogue since.
  const problem = change === unchanged ? undefined : contentProblem(event, sent);
  const rest = z.safeParse(eventFields, message);
  if (!rest.success || problem !== undefined) {
    const reasons = [problem, rest.error && reasonOf(rest.error)];
    return { ok: false, reason: reasons.filter((reason) => reason !== undefined).join("; ") };
  }
  const { project_id, deployment_id, timestamp } = rest.data;
  if (receivedAt && !isPlausible(new Date(timestamp), receivedAt)) return { ok: false, reason: PLAUSIBLE };
  const changes = new Set<string>();
  const given = Object((exact as { data?: unknown }).data) as Record<string, unknown>;
  const entries = Object.entries(change(given, changes) as EventContent["data"]);
  const unmarked = entries.filter((entry) => !isTestMark(entry));
  const isMarked = unmarked.length < entries.length;
  if (isMarked) changes.add("test is renamed to pipeline_test");
  // If `data` has the other name too, that is kept.
  const data = Object.fromEntries(isMarked ? [["pipeline_test", true], ...unmarked] : entries);
  const parsed = createDeploymentEvent({ event, project_id, deployment_id, timestamp, data });
  return { ok: true, event: parsed, ...(changes.size > 0 && { changed: [...changes].join("; ") }) };
}

/** Returns why an event with this data is not one of the catalogue; undefined = it is. */
function contentProblem(event: string, data: unknown): string | undefined {
  const rows = deploymentEventRows();
  const row = rows.get(event);
  if (row) return dataProblem(row, data);
  const names = [...rows.keys()];
  return `event must be one of ${names.join(", ")}; "${shownText(event, 100)}" is most like ${closestName(event, names)}`;
}

function reasonOf(error: z.core.$ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join(".") || "the message"} ${message}`).join("; ");
}
