import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jest } from "@jest/globals";
import * as esbuild from "esbuild";
import { Webhook } from "standardwebhooks";
import { exampleRequest, exampleSecret } from "../../bin/openapi/examples.ts";
import { generate } from "../../bin/openapi.ts";
import { eventNames } from "../../functions/deployments/deployment-event.ts";
import { type EndpointRow, endpoints } from "../../functions/manifest/endpoints.ts";
import { workers } from "../../functions/manifest/workers.ts";
import { bodySignature } from "../../functions/receivers/signature.ts";

/* What is generated from the endpoints is what is committed, and is well made. */

const root = join(import.meta.dirname, "../..");
const committed = (path: string) => readFileSync(join(root, path), "utf8");
const rows: readonly EndpointRow[] = endpoints;

let generated: Map<string, string>;
// biome-ignore lint/suspicious/noExplicitAny: its shape is what the linter is for
let document: any;
beforeAll(async () => {
  generated = await generate();
  document = JSON.parse(generated.get("docs/openapi.json") ?? "");
});

test.each(["docs/openapi.json", "docs/api.md", "packages/client/src/schema.d.ts"])(
  "%s is what npm run openapi makes of the endpoints as they are",
  (path) => {
    expect(committed(path)).toBe(generated.get(path));
  },
);

test("what is generated is no more than that", () => {
  expect([...generated.keys()]).toEqual(["docs/openapi.json", "docs/api.md", "packages/client/src/schema.d.ts"]);
});

test.each(rows)("$method $path is described", ({ method, path, access }) => {
  const operation = document.paths[path][method.toLowerCase()];
  expect(operation).toMatchObject({
    operationId: expect.stringMatching(/^[a-z]+([A-Z][a-z]+)*$/),
    summary: expect.stringMatching(/./),
  });
  expect(operation.security).toEqual(access === "session" ? [{ jwt: [] }] : undefined);
});

test("whatever is named is used", () => {
  const text = JSON.stringify(document);
  for (const [kind, parts] of Object.entries<object>(document.components)) {
    if (kind === "securitySchemes") continue;
    const unused = Object.keys(parts).filter((name) => !text.includes(`"#/components/${kind}/${name}"`));
    expect({ kind, unused }).toEqual({ kind, unused: [] });
  }
});

describe("a linter that many know", () => {
  const folder = mkdtempSync(join(tmpdir(), "openapi-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** The response to a method that is not there is used in an extension, where the linter does not look. */
  const options = ["--extends", "recommended-strict", "--skip-rule", "no-unused-components", "--format", "json"];
  const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };

  function rulesBrokenBy(text: string): string[] {
    const path = join(folder, "openapi.json");
    writeFileSync(path, text);
    const cli = join(root, "node_modules/@redocly/cli/bin/cli.js");
    // In a folder of its own: no configuration is found there.
    const run = spawnSync(process.execPath, [cli, "lint", path, ...options], { cwd: folder, env, encoding: "utf8" });
    return JSON.parse(run.stdout).problems.map(({ ruleId }: { ruleId: string }) => ruleId);
  }

  test("finds nothing in it", () => {
    expect(rulesBrokenBy(committed("docs/openapi.json"))).toEqual([]);
  });

  test("would find two operations of one name, and an example that is none", () => {
    const broken = structuredClone(document);
    broken.paths["/v1/projects"].get.operationId = "listApiKeys";
    broken.components.responses.NotFound.content["application/json"].examples.not_found.value.error.code = "conflict";
    expect(rulesBrokenBy(JSON.stringify(broken))).toEqual(
      expect.arrayContaining(["operation-operationId-unique", "no-invalid-media-type-examples"]),
    );
  });
});

test.each(eventNames)("the signatures in the example of %s hold", (name) => {
  const { body, headers } = exampleRequest(name);
  expect(headers["X-Service-Signature"]).toBe(bodySignature(body, exampleSecret));
  // Of the day the example was made: the library refuses what is old.
  jest.useFakeTimers({ now: Number(headers["webhook-timestamp"]) * 1000 });
  const verified = new Webhook(exampleSecret).verify(body, headers);
  jest.useRealTimers();
  expect(verified).toEqual(JSON.parse(body));
  const { parameters, requestBody } = document.webhooks[name].post;
  expect(requestBody.content["application/json"].example).toEqual(JSON.parse(body));
  const shown = parameters.map(({ name, example }: { name: string; example?: string }) => [name, example]);
  expect(Object.fromEntries(shown)).toMatchObject(headers);
});

test("no function loads the schemas of answers", async () => {
  const { metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: [...endpoints, ...workers].map(({ file }) => `functions/${file}.ts`),
    bundle: true,
    metafile: true,
    write: false,
    outdir: "unused",
    platform: "node",
    packages: "external",
  });
  const inputs = Object.keys(metafile.inputs);
  expect(inputs).toContain("functions/api-keys/api-key.ts");
  expect(inputs.filter((path) => /answer\.ts$|event-payload\.ts$/.test(path))).toEqual([]);
});

test("every link of the reference page leads somewhere", () => {
  const page = committed("docs/api.md");
  const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
  const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, target = ""]) => target);
  expect(links.length).toBeGreaterThan(rows.length);
  expect(links.filter((target) => !headings.includes(target))).toEqual([]);
});
