import { InvalidArgumentError, Option } from "commander";
import { formatLabels, formatOfUrl } from "../../../../functions/webhooks/formats/format-of-url.ts";
import { credentialsIn } from "../../../client/src/url-credentials.ts";
import { eventNames, signatureSchemes, webhookEventNames, webhookFormats } from "../../../client/src/values.ts";
import { readDuration } from "../terminal/durations.ts";
import { usageError } from "../terminal/exit-codes.ts";
import { namesOption } from "../terminal/names-option.ts";
import { ask, isInteractive, readStdin } from "../terminal/terminal.ts";
import { collect, readText } from "./webhook-secrets.ts";

/* What a webhook gets, and in which form: options of `webhooks create` and `webhooks update`. */

/** Names that a platform has added, and patterns. The service knows which exist. */
const isOwnName = (text: string): boolean => /^[a-z]+(\.[a-z_]+)+$/.test(text);
export const isSubscription = (text: string): boolean =>
  text === "*" || isOwnName(text) || /^[a-z]+(\.[a-z_]+)*\.\*$/.test(text);

export const eventsOption = (): Option =>
  namesOption(
    "--events <names...>",
    "the events to receive; also *, deploy.* and those of the platform",
    webhookEventNames,
    isSubscription,
  );

/** Creates an option for the name of one event, also one that the platform has added. */
export const eventOption = (about: string, known: readonly string[] = webhookEventNames): Option =>
  new Option("--event <name>", about).choices(known).argParser((text) => eventName(text, known));

export const deploymentEventsOption = (about: string): Option =>
  namesOption("--events <names...>", about, eventNames, isOwnName);

/** @throws InvalidArgumentError */
export function eventName(text: string, known: readonly string[] = webhookEventNames): string {
  if (known.includes(text) || isOwnName(text)) return text;
  throw new InvalidArgumentError(`Valid: ${known.join(", ")}, and those of the platform.`);
}

type Format = "standard" | (typeof webhookFormats)[number];

export interface DeliveryOptions {
  format?: Format;
  header?: string[];
  headerFile?: string;
  signatures?: (typeof signatureSchemes)[number][];
  delivery?: "every" | "latest";
  settle?: number;
}

export const deliveryOptions = (): Option[] => [
  new Option("--format <format>", "the form of requests; default: that of the product behind a new URL").choices([
    "standard",
    ...webhookFormats,
  ]),
  new Option(
    "--header <name: value>",
    "a header of requests, such as Authorization; repeatable, visible in process lists",
  ).argParser(collect),
  new Option("--header-file <path>", "a file with such headers, one per line; -: stdin"),
  namesOption(
    "--signatures <schemes...>",
    "hmac: with the secret; ed25519, http: with the project's key pair, which a receiver verifies without a secret; default: hmac",
    signatureSchemes,
  ),
  new Option("--delivery <mode>", "latest: an event is not sent once a newer one of its deployment exists").choices([
    "every",
    "latest",
  ]),
  new Option(
    "--settle <duration>",
    "with --delivery latest: how long an event waits for a newer one, up to 60s",
  ).argParser(seconds),
];

function seconds(text: string): number {
  const value = readDuration(/^\d+$/.test(text) ? `${text}s` : text);
  if (value !== undefined && value <= 60) return value;
  throw new InvalidArgumentError("Pass 0s to 60s.");
}

/** Returns the fields of a webhook that these options set. @throws CommandError for a header that is none */
export async function deliveryFieldsOf(options: DeliveryOptions) {
  const { format, header = [], headerFile, signatures, delivery, settle } = options;
  const text = headerFile === undefined ? "" : headerFile === "-" ? String(await readStdin()) : readText(headerFile);
  if (headerFile !== undefined && text.trim() === "") throw usageError("The file of --header-file has no header.");
  const lines = [...header, ...text.split(/\r?\n/)].filter((line) => line.trim() !== "");
  return {
    ...(format && { format }),
    ...(lines.length > 0 && { headers: Object.fromEntries(lines.map(readHeader)) }),
    ...(signatures && { signatures }),
    ...(delivery && { delivery }),
    ...(settle !== undefined && { settle_seconds: settle }),
  };
}

/** The error does not have the line, which may be a credential without its name. */
function readHeader(line: string): [name: string, value: string] {
  const [, name, value] = /^\s*([^\s:]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
  if (name !== undefined && value) return [name, value];
  throw usageError("A header is not a name and a value.", "Pass --header 'Name: value'.");
}

/**
 * Returns the fields with the format of the product behind a URL if none was chosen, and a user name and password as a
 * header, if the user wants that.
 * @throws CommandError for a URL with a password that is not to be moved
 */
export async function fitToUrl(
  text: string,
  fields: Awaited<ReturnType<typeof deliveryFieldsOf>>,
  { replacesHeaders = false } = {},
) {
  const { format = formatOfUrl(text) } = fields;
  const chosen = { ...fields, ...(format && { format }) };
  const found = credentialsIn(text);
  if (found === undefined) return { url: text, ...chosen };
  const replaces = replacesHeaders ? ", instead of all headers that it has" : "";
  const question = `The URL has a user name and password. Send them in the header Authorization instead${replaces}? [y/N] `;
  const isMoved = isInteractive() && /^y(es)?$/i.test(await ask(question));
  if (!isMoved) {
    const advice =
      "Pass the URL without them, and --header-file with Authorization: Basic <user name:password in base64>.";
    throw usageError("The URL has a user name and password, which are never sent.", advice);
  }
  return { url: found.url, ...chosen, headers: { ...fields.headers, Authorization: found.authorization } };
}

/** Returns what to say about the format of a webhook with this URL. @param given the chosen one; undefined = none */
export function formatRemark(url: string, given: Format | undefined): string | undefined {
  const product = formatOfUrl(url);
  if (product === undefined || given === product) return undefined;
  if (given === undefined) return `The URL is one of ${formatLabels[product]}: its format is ${product}.`;
  return `Warning: the URL looks like one of ${formatLabels[product]}. If it is, it needs --format ${product}.`;
}
