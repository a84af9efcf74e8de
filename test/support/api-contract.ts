import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { Response } from "./service.ts";

/*
 * Holds answers against docs/openapi.json: the status must be one of the operation's, the body must be as that status says
 * with no field more, and so must the headers.
 */

// biome-ignore lint/suspicious/noExplicitAny: any JSON
export type Json = any;

export const document: Json = JSON.parse(readFileSync(join(import.meta.dirname, "../../docs/openapi.json"), "utf8"));

export interface Operation {
  id: string;
  method: string;
  path: string;
  /** JSON pointer of it in the document. */
  pointer: string;
  definition: Json;
}

const escaped = (part: string) => part.replaceAll("~", "~0").replaceAll("/", "~1");

export const operations: Operation[] = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
  ["get", "post", "patch", "delete"].flatMap((method) => {
    const definition = item[method];
    const pointer = `/paths/${escaped(path)}/${method}`;
    return definition ? [{ id: definition.operationId, method: method.toUpperCase(), path, pointer, definition }] : [];
  }),
);

/** What `$ref` leads to, and where that is. */
export function at(pointer: string): { value: Json; pointer: string } {
  const value = pointer
    .split("/")
    .slice(1)
    .reduce((part: Json, name) => part?.[name.replaceAll("~1", "/").replaceAll("~0", "~")], document);
  return value?.$ref ? at(value.$ref.slice(1)) : { value, pointer };
}

/** A copy in which objects have the fields they name and no others, unless they say that they may. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  return copy.properties && !("additionalProperties" in copy) ? { ...copy, additionalProperties: false } : copy;
}

// Numbers in headers are text.
const ajv = new Ajv2020({ allErrors: true, strictTypes: false, coerceTypes: false });
const ofHeaders = new Ajv2020({ allErrors: true, coerceTypes: true });
for (const each of [ajv, ofHeaders]) addFormats.default(each);
ajv.addVocabulary(["components", "paths", "webhooks"]);
ajv.addSchema(
  { ...closed({ components: document.components, paths: document.paths, webhooks: document.webhooks }) },
  "api",
);

const validators = new Map<string, ValidateFunction>();

/** What is wrong with a value, by the schema at this place of the document. */
export function wrongBy(pointer: string, value: unknown): string[] {
  let validate = validators.get(pointer);
  if (!validate) {
    validate = ajv.compile({ $ref: `api#${encodeURI(pointer).replaceAll("%7E", "~")}` });
    validators.set(pointer, validate);
  }
  return validate(value) ? [] : (validate.errors ?? []).map(told);
}

const told = ({ instancePath, message, params }: NonNullable<ValidateFunction["errors"]>[number]): string =>
  `${instancePath || "it"} ${message} ${JSON.stringify(params)}`;

export function wrongByHeader(schema: Json, value: string): string[] {
  const holder = { value };
  const validate = ofHeaders.compile({ type: "object", properties: { value: schema } });
  return validate(holder) ? [] : (validate.errors ?? []).map(told);
}

/** Headers that HTTP itself brings along. */
const ofHttp = ["connection", "content-length", "content-type", "date", "keep-alive", "transfer-encoding"];

/** What an answer has that the response at this place of the document does not say, and the other way round. */
export function undocumented(responsePointer: string, { status, headers, body }: Response): string[] {
  const response = at(responsePointer);
  if (!response.value) return [`status ${status} is not documented`];
  const media = response.value.content?.["application/json"];
  const problems = media ? wrongBy(`${response.pointer}/content/application~1json/schema`, body) : [];
  if (!media && body !== undefined) problems.push("there should be no body");
  if (media && headers.get("content-type") !== "application/json") problems.push("it is not application/json");
  if (body?.error && body.error.request_id !== headers.get("x-request-id")) problems.push("the request ids differ");
  const names = Object.keys(response.value.headers ?? {});
  for (const name of names) {
    const header = at(`${response.pointer}/headers/${escaped(name)}`).value;
    const value = headers.get(name);
    if (value === null && header.required) problems.push(`header ${name} is missing`);
    if (value !== null) problems.push(...wrongByHeader(header.schema, value).map((wrong) => `header ${name} ${wrong}`));
  }
  const known = [...ofHttp, ...names.map((name) => name.toLowerCase())];
  const unknown = [...headers.keys()].filter((name) => !known.includes(name));
  return [...problems, ...unknown.map((name) => `header ${name} is not documented`)];
}
