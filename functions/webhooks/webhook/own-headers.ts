import * as z from "zod/mini";
import { orRequired } from "../../foundation/schema/input.ts";

/*
 * Headers that a user adds to the requests of a webhook, such as `Authorization`. Their values are stored beside the
 * signing secrets: only senders read them, and no response, log or audit event has them.
 */

/**
 * Name and value. Pairs, because a user chooses the names: DynamoDB's client rejects a map with the name `constructor`.
 */
export type OwnHeader = [name: string, value: string];

const MAX_HEADERS = 5;
const MAX_NAME_CHARACTERS = 100;
const MAX_VALUE_CHARACTERS = 2_048;

/** https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2 */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
/** Those that a delivery has itself or may get, and those of one connection: RFC 9110, section 7.6.1. */
const TAKEN =
  /^(x-service-.*|webhook-.*|signature.*|accept|accept-encoding|content-.*|user-agent|host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect)$/i;

const nameProblem = (name: string): string | undefined => {
  if (name.length > MAX_NAME_CHARACTERS || !TOKEN.test(name)) {
    return `must have names of headers, of 1 to ${MAX_NAME_CHARACTERS} letters, digits and -, such as Authorization`;
  }
  return TAKEN.test(name)
    ? `must not have ${name}, which the service sends itself or belongs to the connection`
    : undefined;
};

/** No line break, which would begin another header, and no space that HTTP removes. */
const VALUE = /^[!-~]([ -~]*[!-~])?$/;

const isValue = (value: unknown): boolean =>
  typeof value === "string" && value.length <= MAX_VALUE_CHARACTERS && VALUE.test(value);

/** Returns the rule that the headers break; undefined = none. No message has a value. */
function headersProblem(headers: Record<string, unknown>): string | undefined {
  const names = Object.keys(headers);
  if (names.length < 1 || names.length > MAX_HEADERS) return `must have 1 to ${MAX_HEADERS} headers, or be null`;
  const broken = names.map(nameProblem).find((problem) => problem !== undefined);
  if (broken !== undefined) return broken;
  if (new Set(names.map((name) => name.toLowerCase())).size < names.length) return "must not have a header twice";
  const wrong = names.find((name) => !isValue(headers[name]));
  if (wrong === undefined) return undefined;
  return `must have a value of 1 to ${MAX_VALUE_CHARACTERS} visible ASCII characters for ${wrong}, without a line break`;
}

/** The headers of a request body, by name. The message of an error never has a value. */
export const headersInput = z.pipe(
  z.record(z.string(), z.unknown(), orRequired("must be a JSON object with names and values")).check(
    z.superRefine((headers, context) => {
      const message = headersProblem(headers);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    }),
    z.meta({
      minProperties: 1,
      maxProperties: MAX_HEADERS,
      propertyNames: { type: "string", maxLength: MAX_NAME_CHARACTERS, pattern: TOKEN.source },
      additionalProperties: { type: "string", maxLength: MAX_VALUE_CHARACTERS, pattern: VALUE.source },
      writeOnly: true,
    }),
  ),
  z.transform((headers: Record<string, unknown>): OwnHeader[] => Object.entries(headers as Record<string, string>)),
);
