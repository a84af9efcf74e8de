import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { Response } from "./service.ts";

/*
 * Compares responses with docs/openapi.json. The status must be documented for the operation; body and headers must
 * match what is documented for that status, without further fields or headers.
 */

// biome-ignore lint/suspicious/noExplicitAny: any JSON
export type Json = any;

export const document: Json = JSON.parse(readFileSync(join(import.meta.dirname, "../../docs/openapi.json"), "utf8"));

export interface Operation {
  id: string;
  method: string;
  path: string;
  /** JSON pointer to the operation in the document. */
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

/** Returns the value at a JSON pointer and its own pointer, with `$ref` resolved. */
export function at(pointer: string): { value: Json; pointer: string } {
  const value = pointer
    .split("/")
    .slice(1)
    .reduce((part: Json, name) => part?.[name.replaceAll("~1", "/").replaceAll("~0", "~")], document);
  return value?.$ref ? at(value.$ref.slice(1)) : { value, pointer };
}

/** Returns a copy in which objects allow no additional fields, unless the schema allows them explicitly. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  return copy.properties && !("additionalProperties" in copy) ? { ...copy, additionalProperties: false } : copy;
}

const bodyAjv = new Ajv2020({ allErrors: true, strictTypes: false, coerceTypes: false });
// Headers and query parameters are text: numbers are parsed from it.
const headerAjv = new Ajv2020({ allErrors: true, coerceTypes: true });
for (const each of [bodyAjv, headerAjv]) addFormats.default(each);
bodyAjv.addVocabulary(["components", "paths", "webhooks"]);
bodyAjv.addSchema(
  { ...closed({ components: document.components, paths: document.paths, webhooks: document.webhooks }) },
  "api",
);

/**
 * Compiled validators by JSON pointer (bodies) and by schema text (headers): compiling takes far longer than
 * validating.
 */
const bodyValidators = new Map<string, ValidateFunction>();
const headerValidators = new Map<string, ValidateFunction>();

function cached(validators: Map<string, ValidateFunction>, key: string, compile: () => ValidateFunction) {
  const validate = validators.get(key) ?? compile();
  validators.set(key, validate);
  return validate;
}

/** Returns the violations of the schema at this pointer of the document; empty = the value is valid. */
export function schemaViolations(pointer: string, value: unknown): string[] {
  const $ref = `api#${encodeURI(pointer).replaceAll("%7E", "~")}`;
  const validate = cached(bodyValidators, pointer, () => bodyAjv.compile({ $ref }));
  return validate(value) ? [] : (validate.errors ?? []).map(violationText);
}

const violationText = ({ instancePath, message, params }: NonNullable<ValidateFunction["errors"]>[number]): string =>
  `${instancePath || "it"} ${message} ${JSON.stringify(params)}`;

/** Returns the violations of a header's or query parameter's schema by its text. */
export function textViolations(schema: Json, value: string): string[] {
  const holder = { value };
  const validate = cached(headerValidators, JSON.stringify(schema), () =>
    headerAjv.compile({ type: "object", properties: { value: schema } }),
  );
  return validate(holder) ? [] : (validate.errors ?? []).map(violationText);
}

/**
 * Returns how a request differs from the documentation of its operation; empty = the service accepts its form.
 * @param body as sent; empty = none
 */
export function undocumentedRequest({ method, url }: Request, body: string): string[] {
  const { pathname, searchParams } = new URL(url);
  const operation = operations.find(
    (each) => each.method === method && pathname.match(`^${each.path.replaceAll(/{\w+}/g, "[^/]+")}$`),
  );
  if (!operation) return [`${method} ${pathname} is not documented`];
  const { requestBody, parameters = [] } = operation.definition;
  const problems = [...searchParams].flatMap(([name, value]) => {
    const schema = parameters.find((each: Json) => each.in === "query" && each.name === name)?.schema;
    return schema ? textViolations(schema, value) : [`the query parameter ${name} is not documented`];
  });
  if (body === "" && requestBody?.required) problems.push("the body is missing");
  if (body !== "" && !requestBody) problems.push("the request has a body, which is not documented");
  if (body !== "" && requestBody) {
    const schema = `${operation.pointer}/requestBody/content/application~1json/schema`;
    problems.push(...schemaViolations(schema, JSON.parse(body)));
  }
  // Stubs return short cursors.
  return problems.filter((problem) => !problem.includes('must match pattern "^[A-Za-z0-9_-]{'));
}

/** Headers that belong to HTTP rather than to the API. */
const httpHeaders = ["connection", "content-length", "content-type", "date", "keep-alive", "transfer-encoding"];

/** Returns the differences between a response and its documentation at this pointer, in both directions. */
export function undocumented(responsePointer: string, { status, headers, body }: Response): string[] {
  const response = at(responsePointer);
  if (!response.value) return [`status ${status} is not documented`];
  const media = response.value.content?.["application/json"];
  const problems = media ? schemaViolations(`${response.pointer}/content/application~1json/schema`, body) : [];
  if (!media && body !== undefined) problems.push("the response has a body, which is not documented");
  if (media && headers.get("content-type") !== "application/json") problems.push("it is not application/json");
  if (body?.error && body.error.request_id !== headers.get("x-request-id")) problems.push("the request ids differ");
  const names = Object.keys(response.value.headers ?? {});
  for (const name of names) {
    const header = at(`${response.pointer}/headers/${escaped(name)}`).value;
    const value = headers.get(name);
    if (value === null && header.required) problems.push(`header ${name} is missing`);
    if (value !== null) problems.push(...textViolations(header.schema, value).map((text) => `header ${name} ${text}`));
  }
  const known = [...httpHeaders, ...names.map((name) => name.toLowerCase())];
  const unknown = [...headers.keys()].filter((name) => !known.includes(name));
  return [...problems, ...unknown.map((name) => `header ${name} is not documented`)];
}
