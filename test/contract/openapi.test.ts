import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jest } from "@jest/globals";
import { Webhook } from "standardwebhooks";
import { generate } from "../../bin/commands/openapi.ts";
import { exampleRequest, exampleSecret } from "../../contract/examples.ts";
import { pascalCase } from "../../contract/schemas.ts";
import { webhookEventNames } from "../../functions/foundation/manifest/events.ts";
import { endpointRows } from "../../functions/foundation/manifest/function-rows.ts";
import { bodySignature } from "../../functions/webhooks/receiver/signature.ts";

/* The generated files are committed as generated, complete and valid. */

const root = join(import.meta.dirname, "../..");
const committed = (path: string) => readFileSync(join(root, path), "utf8");

let generated: Map<string, string>;
// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI linter checks its shape
type Json = any;
let document: Json;
beforeAll(async () => {
  generated = await generate();
  document = JSON.parse(generated.get("docs/openapi.json") ?? "");
});

const paths = [
  "docs/openapi.json",
  "packages/client/src/schema.d.ts",
  "docs/receivers/node/verify-webhook.d.mts",
  "packages/client/src/values.ts",
];

test.each(paths)("%s equals the output of npm run openapi", (path) => {
  expect(committed(path)).toBe(generated.get(path));
});

test("npm run openapi generates no other file", () => {
  expect([...generated.keys()]).toEqual(paths);
});

test.each(endpointRows)("$method $path has the security of its access", ({ method, path, access, permission }) => {
  const operation = document.paths[path][method.toLowerCase()];
  const securityOf: Record<string, object[]> = {
    anyone: [],
    session: [{ jwt: [] }],
    admin_session: [{ jwt: [] }],
  };
  // A workflow has no API keys and service accounts, and sees no audit log.
  const isForPeople = /^(webhook-secrets|keys|service-accounts|audit):/.test(permission);
  const byPermission = isForPeople ? [{ jwt: [] }, { apiKey: [] }] : undefined;
  expect(operation.security).toEqual(securityOf[access] ?? byPermission);
});

test("every event has a webhook, a payload schema and a place in the payload of a delivery", () => {
  const payloads = webhookEventNames.map(pascalCase);
  expect(payloads).toEqual(
    expect.arrayContaining(["DeployStarted", "DeploySucceeded", "DeployFailed", "WebhookFailing"]),
  );
  expect(Object.keys(document.webhooks)).toEqual([...webhookEventNames]);
  const bodies = Object.values<Json>(document.webhooks).map(({ post }) => post.requestBody.content["application/json"]);
  const references = payloads.map((name) => ({ $ref: `#/components/schemas/${name}` }));
  expect(bodies.map(({ schema }) => schema)).toEqual(references);
  expect(document.components.schemas.DeliveryWithAttempts.properties.payload.anyOf).toEqual([
    ...references,
    { $ref: "#/components/schemas/PlatformEvent" },
  ]);
});

test("every component is referenced", () => {
  const text = JSON.stringify(document);
  for (const [kind, parts] of Object.entries<object>(document.components)) {
    if (kind === "securitySchemes") continue;
    const unused = Object.keys(parts).filter((name) => !text.includes(`"#/components/${kind}/${name}"`));
    expect({ kind, unused }).toEqual({ kind, unused: [] });
  }
});

test("server variables have no description, which @apidevtools/swagger-parser and its many users refuse", () => {
  const variables = document.servers.flatMap((server: Json) => Object.entries(server.variables ?? {}));
  const defaults = { api: "abcdef1234", region: "eu-central-1", stage: "prod" };
  expect(variables).toEqual(Object.entries(defaults).map(([name, value]) => [name, { default: value }]));
});

test("every Idempotency-Key has an example of its own, and every time and cursor has one, for tools that send them all", () => {
  const parameters = Object.values<Json>(document.paths)
    .flatMap((item) => Object.values<Json>(item))
    .flatMap((operation) => operation.parameters ?? [])
    .filter(({ name }: Json) => ["Idempotency-Key", "cursor", "after", "since", "until"].includes(name));
  expect(parameters.filter(({ example }: Json) => example === undefined)).toEqual([]);
  const keys = parameters.filter(({ name }: Json) => name === "Idempotency-Key").map(({ example }: Json) => example);
  expect(keys).toContain("createWebhook-1");
  expect(new Set(keys).size).toBe(keys.length);
});

test("a body may be left out where the service needs no field of it, and nowhere else", () => {
  const bodies = Object.values<Json>(document.paths)
    .flatMap((item) => Object.values<Json>(item))
    .filter(({ requestBody }) => requestBody !== undefined);
  expect(bodies.length).toBeGreaterThan(10);
  const optional = bodies.filter(({ requestBody }) => !requestBody.required).map(({ operationId }) => operationId);
  expect(optional.toSorted()).toEqual([
    "requestSignIn",
    "rollApiKey",
    "rollServiceAccountApiKey",
    "rotateWebhookSecret",
    "sendTestDelivery",
  ]);
});

describe("the OpenAPI linter", () => {
  const folder = mkdtempSync(join(tmpdir(), "openapi-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** The component of the 405 response is used only in an extension, which the linter does not follow. */
  const options = ["--extends", "recommended-strict", "--skip-rule", "no-unused-components", "--format", "json"];
  const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };

  test("reports no problem in docs/openapi.json, but operations without a name and an example that does not match its schema", () => {
    const broken = structuredClone(document);
    delete broken.paths["/v1/api-keys"].post.operationId;
    delete broken.paths["/v1/api-keys"].get.summary;
    broken.paths["/v1/projects"].get.operationId = "listApiKeys";
    broken.components.responses.NotFound.content["application/json"].examples.not_found.value.error.code = "conflict";
    writeFileSync(join(folder, "openapi.json"), committed("docs/openapi.json"));
    writeFileSync(join(folder, "broken.json"), JSON.stringify(broken));
    const cli = join(root, "node_modules/@redocly/cli/bin/cli.js");
    // Runs in its own folder, so that it finds no configuration.
    const args = [cli, "lint", "openapi.json", "broken.json", ...options];
    const { stdout } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: "utf8" });
    // One document for each file.
    const [ofCommitted, ofBroken] = stdout.split(/(?<=^\})\s*(?=\{)/m).map((text) => JSON.parse(text).problems);
    expect(ofCommitted).toEqual([]);
    expect(ofBroken.map(({ ruleId }: Json) => ruleId)).toEqual(
      expect.arrayContaining([
        "operation-operationId",
        "operation-summary",
        "operation-operationId-unique",
        "no-invalid-media-type-examples",
      ]),
    );
  });
});

test.each(webhookEventNames)("the request of %s names the fields of a webhook that give it another form", (name) => {
  for (const field of ["format", "signatures"]) {
    expect(document.webhooks[name].post.description).toContain(`\`${field}\``);
  }
});

test.each(webhookEventNames)("the example of %s has valid signatures", (name) => {
  const { body, headers } = exampleRequest(name);
  expect(headers["X-Service-Signature"]).toBe(bodySignature(body, exampleSecret));
  // Set to the time of the example, because the library rejects old timestamps.
  jest.useFakeTimers({ now: Number(headers["webhook-timestamp"]) * 1000 });
  const verified = new Webhook(exampleSecret).verify(body, headers);
  jest.useRealTimers();
  expect(verified).toEqual(JSON.parse(body));
  const { parameters, requestBody } = document.webhooks[name].post;
  expect(requestBody.content["application/json"].example).toEqual(JSON.parse(body));
  const shown = parameters.map(({ name, example }: { name: string; example?: string }) => [name, example]);
  expect(Object.fromEntries(shown)).toMatchObject(headers);
});
