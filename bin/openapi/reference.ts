import type { Json } from "./schemas.ts";

/* The API's description as a page for people, in Markdown. */

/** @param document in OpenAPI 3.1, as `openApiDocument` makes it */
export function reference(document: Json): string {
  const { info, tags, webhooks, components } = document;
  const operations = operationsOf(document);
  const sections = tags.map(({ name, description }: Json) => {
    const ofTag = operations.filter(({ operation }) => operation.tags.includes(name));
    return [`## ${name}`, description, ...ofTag.map((each) => operationSection(document, each))].join("\n\n");
  });
  return `${[
    `# ${info.title}: reference`,
    "Made by `npm run openapi` from the endpoints, like [openapi.json](openapi.json), which says the same to programs.",
    info.description,
    "## Operations",
    table(
      ["", "request", "who"],
      operations.map(({ method, path, operation }) => [
        link(operation.summary),
        `\`${method.toUpperCase()} ${path}\``,
        whoMay(document, operation),
      ]),
    ),
    ...sections,
    table(
      ["header", "", ""],
      firstOf<Json>(webhooks).post.parameters.map(({ name, required, description, example }: Json) => [
        `\`${name}\``,
        `${description}${required ? "" : " Not always there."}`,
        example === undefined ? "" : `\`${clipped(example)}\``,
      ]),
    ),
    ...Object.values<Json>(webhooks).map(({ post }) => eventSection(post)),
    "## Records",
    ...Object.entries<Json>(components.schemas).map(([name, schema]) => recordSection(document, name, schema)),
    "## Errors",
    `Any request may be answered with ${inCode(codesOfAny(document))}; operations name the others.`,
    errorTable(components.responses),
  ].join("\n\n")}\n`;
}

const methods = ["get", "post", "patch", "delete"];

const operationsOf = (document: Json): Entry[] =>
  Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => (item[method] ? [{ method, path, item, operation: item[method] }] : [])),
  );

interface Entry {
  method: string;
  path: string;
  item: Json;
  operation: Json;
}

function operationSection(document: Json, { method, path, item, operation }: Entry): string {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const pathParameters = (item.parameters ?? []).map(({ $ref }: Json) => follow(document, $ref));
  const [status, answer] = Object.entries<Json>(responses).find(([code]) => code.startsWith("2")) ?? [];
  const media = answer?.content?.["application/json"];
  const body = requestBody?.content["application/json"];
  const rows = [
    ...pathParameters.map((told: Json) => parameterRow(document, told, "path")),
    ...parameters.map((told: Json) => parameterRow(document, told, "query")),
    ...(body ? fieldRows(document, body.schema, "body") : []),
  ];
  return [
    `### ${summary}`,
    `\`${method.toUpperCase()} ${path}\` · \`${operationId}\` · ${whoMay(document, operation)}`,
    description === summary ? "" : description,
    rows.length > 0 ? table(["takes", "in", "", ""], rows) : "",
    example(method, path, body?.example),
    media
      ? `Answers ${status} with \`data\`: ${typeOf(media.schema.properties.data)}.`
      : `Answers ${status} with an empty body.`,
    media ? fenced("json", media.example) : "",
    errorsOf(document, responses),
  ]
    .filter(Boolean)
    .join("\n\n");
}

function whoMay({ security }: Json, operation: Json): string {
  return (operation.security ?? security).map((each: Json) => names[Object.keys(each)[0] ?? ""]).join(" or ");
}

const names: Record<string, string> = { jwt: "JWT", apiKey: "API key" };

const parameterRow = (document: Json, { name, required, description, schema }: Json, where: string) =>
  fieldRow(document, name, { ...schema, description }, required, where);

const fieldRows = (document: Json, { properties, required = [] }: Json, where: string) =>
  Object.entries<Json>(properties).map(([name, schema]) =>
    fieldRow(document, name, schema, required.includes(name), where),
  );

function fieldRow(document: Json, name: string, schema: Json, isRequired: boolean, where: string): string[] {
  const { description = "" } = schema.$ref ? follow(document, schema.$ref) : schema;
  const fallback = schema.default === undefined ? "optional" : `default ${JSON.stringify(schema.default)}`;
  return [`\`${name}\``, where, `${typeOf(schema)}${isRequired ? "" : `, ${fallback}`}`, cell(description)];
}

/** What a value is, in a few words. */
function typeOf(schema: Json): string {
  if (schema.$ref) return link(nameOf(schema.$ref));
  if (schema.oneOf) return schema.oneOf.map(typeOf).join(" or ");
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  const types = [schema.type].flat();
  if (types.includes("array")) return `list of ${typeOf(schema.items)}`;
  const texts = schema.enum?.map((text: unknown) => `\`${text}\``).join(", ");
  const format = schema.format === "uuid" ? "UUID" : schema.format === "date-time" ? "time" : undefined;
  const word = texts ?? format ?? types[0];
  const range = schema.maximum === undefined ? "" : ` ${schema.minimum}–${schema.maximum}`;
  return `${word}${range}${types.includes("null") && !texts ? " or null" : ""}`;
}

/** A command that does it, with what stands in braces as variables of the shell. */
function example(method: string, path: string, body: unknown): string {
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`);
  const verb = method === "get" || (method === "post" && body !== undefined) ? "" : ` -X ${method.toUpperCase()}`;
  const lines = [`curl -s${verb} "$BASE${address}" -H "Authorization: Bearer $TOKEN"`];
  if (body !== undefined) lines.push(`-H "Content-Type: application/json" -d '${JSON.stringify(body)}'`);
  return `\`\`\`sh\n${lines.join(" \\\n     ")}\n\`\`\``;
}

/** What it may be refused with, beyond what any request may. */
function errorsOf(document: Json, responses: Json): string {
  const always = codesOfAny(document);
  const codes = codesOf(document, responses).filter((code) => !always.includes(code));
  return codes.length === 0 ? "" : `Errors: ${inCode(codes)}.`;
}

const codesOf = (document: Json, responses: Json): string[] =>
  Object.values<Json>(responses).flatMap(({ $ref }) => ($ref ? codesIn(follow(document, $ref)) : []));

/** The codes that stand with every operation. */
function codesOfAny(document: Json): string[] {
  const all = operationsOf(document).map(({ operation }) => codesOf(document, operation.responses));
  return all.reduce((common, codes) => common.filter((code) => codes.includes(code)));
}

const inCode = (texts: string[]): string => texts.map((text) => `\`${text}\``).join(", ");

const codesIn = (response: Json): string[] => Object.keys(response.content["application/json"].examples);

function eventSection({ summary, requestBody }: Json): string {
  const { schema, example } = requestBody.content["application/json"];
  return [`### ${summary}`, `The body is a ${typeOf(schema)}.`, fenced("json", example)].join("\n\n");
}

function recordSection(document: Json, name: string, schema: Json): string {
  if (!schema.properties) return [`### ${name}`, cell(schema.description)].join("\n\n");
  const rows = Object.entries<Json>(schema.properties).map(([field, told]) => {
    const [first = "", , type = "", description = ""] = fieldRow(document, field, told, true, "");
    return [first, type, description];
  });
  return [`### ${name}`, table(["field", "", ""], rows)].join("\n\n");
}

/** All codes with their meaning, once each: some stand in two responses. */
function errorTable(responses: Json): string {
  const meanings = new Map<string, string>();
  for (const { description, content } of Object.values<Json>(responses)) {
    const lines: string[] = description.split("\n\n");
    for (const [index, code] of codesIn({ content }).entries()) {
      meanings.set(code, lines[index]?.replace(/^`\w+`: /, "") ?? "");
    }
  }
  return table(
    ["code", "meaning"],
    [...meanings].map(([code, meaning]) => [`\`${code}\``, meaning]),
  );
}

function follow(document: Json, ref: string): Json {
  return ref
    .slice(2)
    .split("/")
    .reduce((part, name) => part[name], document);
}

const nameOf = (ref: string): string => ref.split("/").at(-1) ?? "";

/** To the heading with this text. */
const link = (heading: string): string =>
  `[${heading}](#${heading
    .toLowerCase()
    .replaceAll(/[^a-z -]/g, "")
    .replaceAll(" ", "-")})`;

const firstOf = <Value>(record: Record<string, Value>): Value => Object.values(record)[0] as Value;

const fenced = (language: string, value: unknown): string =>
  `\`\`\`${language}\n${JSON.stringify(value, null, 2)}\n\`\`\``;

const clipped = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text);

/** A text with a list in it, in one cell. */
const cell = (text: string): string => text.replaceAll(/\n+- /g, "<br>").replaceAll("|", "\\|");

const table = (head: string[], rows: string[][]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
