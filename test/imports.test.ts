import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { functionRows } from "../functions/foundation/manifest/function-rows.ts";

/* The import rules between folders. They enforce the arrows in docs/architecture.md. */

const root = join(import.meta.dirname, "..");

interface SourceFile {
  path: string;
  source: string;
  /** The imported modules: paths from the root of the project, or names of modules. */
  imports: string[];
  /** The npm packages among them. A type of `aws-lambda` is in `@types/aws-lambda`, and nothing loads it. */
  packages: string[];
}

const importPattern = new RegExp(
  [
    // import … from "x", export … from "x", import "x"
    String.raw`^(?<keyword>(?:import|export)(?: type)?)\b(?:[\w$\s{},*]*\bfrom)?\s*["'](?<fixed>[^"']+)["']`,
    // import("x"), require("x"), import.meta.resolve("x")
    "\\b(?:import(?:\\.meta\\.resolve)?|require)\\s*\\(\\s*[\"'`](?<called>[^\"'`]+)[\"'`]",
  ].join("|"),
  "gm",
);

const files = ["bin", "contract", "lib", "functions", "packages", "bench"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(tsx?|[mc]?js)$/.test(name) && !/(^|\/)(node_modules|dist)\//.test(name))
    .map((name) => read(join(folder, name))),
);

function read(path: string): SourceFile {
  const source = readFileSync(join(root, path), "utf8");
  return { path, source, ...importsOf(path, source) };
}

function importsOf(path: string, source: string): Pick<SourceFile, "imports" | "packages"> {
  const found = [...source.matchAll(importPattern)].map(({ groups = {} }) => ({
    name: groups.fixed ?? groups.called ?? "",
    isType: groups.keyword?.endsWith("type"),
  }));
  return {
    imports: found.map(({ name }) => (name.startsWith(".") ? join(dirname(path), name) : name)),
    packages: found
      .filter(({ name, isType }) => !/^(\.|\/|node:)/.test(name) && !(isType && name === "aws-lambda"))
      .map(({ name }) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name),
  };
}

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));

const inFolder = (folder: string) => files.filter(({ path }) => path.startsWith(`${folder}/`));
const handlers = functionRows.map(({ file }) => `functions/${file}.ts`);

function offenders(suspects: SourceFile[], isForbidden: (name: string) => boolean): string[] {
  return suspects.flatMap(({ path, imports }) => imports.filter(isForbidden).map((name) => `${path} -> ${name}`));
}

test("the test finds the files and their imports", () => {
  expect(files.length).toBeGreaterThan(150);
  expect(read("functions/webhooks/webhook/create.ts").imports).toContain(
    "functions/foundation/http/define-endpoint.ts",
  );
});

test.each([
  ['import { build } from "esbuild";', "esbuild"],
  ['import {\n  type A,\n  b as $c,\n} from "esbuild";', "esbuild"],
  ['import * as esbuild from "esbuild";', "esbuild"],
  ['import type { Plugin } from "esbuild";', "esbuild"],
  ['import "esbuild/register";', "esbuild"],
  ['export * from "@scope/name/part";', "@scope/name"],
  ['const { build } = await import("esbuild");', "esbuild"],
  ["const { build } = await import(`esbuild`);", "esbuild"],
  ['const esbuild = require("esbuild");', "esbuild"],
  ['import { Context } from "aws-lambda";', "aws-lambda"],
])("the test finds the package in %j", (source, name) => {
  expect(importsOf("lib/a.ts", source).packages).toEqual([name]);
});

test.each([
  'import type { Context } from "aws-lambda";',
  'import { once } from "node:events";',
  'import { b } from "./b.ts";',
  'const text = `imported from "now"`;',
  'export interface webhooks {\n  "deploy.started": { name: string };\n}',
])("the test finds no package in %j", (source) => {
  expect(importsOf("lib/a.ts", source).packages).toEqual([]);
});

/** A client of the API that runs on Lambda: it serves what `svc mcp` serves, with the same tools. */
const assistants = "functions/assistants/";

test("functions import nothing from the stack, the local run or the packages, except assistants: the API's client and its tools", () => {
  const isForeign = (name: string) => /^(lib|bin|contract|packages|test|bench)\//.test(name);
  const mayUse = /^packages\/(client\/src|cli\/src\/(mcp|terminal))\//;
  const others = inFolder("functions").filter(({ path }) => !path.startsWith(assistants));
  expect(offenders(others, isForeign)).toEqual([]);
  expect(offenders(inFolder("functions/assistants"), (name) => isForeign(name) && !mayUse.test(name))).toEqual([]);
});

test("functions/assistants imports no noun of the service, and no store: it has no grants", () => {
  const isInside = (name: string) =>
    /^functions\/(?!foundation\/|assistants\/)|-(store|queue|index|topic)\.ts$/.test(name);
  expect(offenders(inFolder("functions/assistants"), isInside)).toEqual([]);
});

test("the dependencies in package.json are the packages that functions import", () => {
  const imported = new Set(inFolder("functions").flatMap(({ packages }) => packages));
  expect([...imported].sort()).toEqual(Object.keys(manifestOf(".").dependencies ?? {}).sort());
});

test("the contract imports only functions and the terms of the stack, and no program", () => {
  const isForbidden = (name: string) => /^(bin|test|bench)\//.test(name);
  expect(offenders(inFolder("contract"), isForbidden)).toEqual([]);
});

test("the stack and the commands import nothing from the tests or the benchmarks", () => {
  const isForbidden = (name: string) => /^(test|bench)\//.test(name);
  expect(offenders([...inFolder("lib"), ...inFolder("bin")], isForbidden)).toEqual([]);
});

test("the stack imports only the manifest from the functions, and nothing from bin or the packages", () => {
  const isForbidden = (name: string) =>
    (name.startsWith("functions/") && !name.startsWith("functions/foundation/manifest/")) ||
    /^(bin|contract|packages)\//.test(name);
  expect(offenders(inFolder("lib"), isForbidden)).toEqual([]);
});

/**
 * They decide what is sent, what is a key, which text is refused and why a receiver failed, and the packages do the same: two
 * copies could differ.
 */
const shared = [
  "functions/foundation/events/failure-code.ts",
  "functions/webhooks/formats/format-of-url.ts",
  "functions/webhooks/receiver/failure-cause.ts",
  "functions/webhooks/receiver/failure-hints.ts",
  "functions/webhooks/webhook/event-filter.ts",
  "functions/identity/api-keys/key-format.ts",
  "functions/foundation/schema/unseen-text.ts",
];

test.each(shared)("%s, which packages import, imports nothing else but types of Node", (path) => {
  expect(offenders([read(path)], (name) => !shared.includes(name) && name !== "node:http")).toEqual([]);
});

const packageNames = ["client", "cli", "console", "verifier"];

test("a package imports only itself, the client and the shared files", () => {
  for (const name of packageNames) {
    const own = new RegExp(`^packages/(client|${name})/`);
    const isForeign = (path: string) =>
      /^(functions|lib|bin|contract|packages|test|bench)\//.test(path) && !own.test(path) && !shared.includes(path);
    expect(offenders(inFolder(`packages/${name}`), isForeign)).toEqual([]);
  }
});

test.each(packageNames)("packages/%s imports only npm packages that its package.json lists", (name) => {
  const { dependencies, devDependencies } = manifestOf(`packages/${name}`);
  const listed = Object.keys({ ...dependencies, ...devDependencies });
  const unlisted = inFolder(`packages/${name}`).flatMap(({ path, packages }) =>
    packages.filter((imported) => !listed.includes(imported)).map((imported) => `${path} -> ${imported}`),
  );
  expect(unlisted).toEqual([]);
});

/** The wings of `functions/` by floor, lowest first. A wing imports only from wings on lower floors. */
const floors = [["foundation"], ["identity", "webhooks"], ["deliveries"], ["assistants"]];

const wingOf = (path: string): string | undefined => /^functions\/([^/]+)\//.exec(path)?.[1];
const floorOf = (wing: string): number => floors.findIndex((wings) => wings.includes(wing));

test("every wing of functions has a floor", () => {
  const wings = new Set(inFolder("functions").map(({ path }) => wingOf(path)));
  expect([...wings].sort()).toEqual(floors.flat().sort());
});

test.each(floors.flat())("functions/%s imports only from wings on lower floors", (wing) => {
  const isForbidden = (name: string) => {
    const other = wingOf(name);
    return other !== undefined && other !== wing && floorOf(other) >= floorOf(wing);
  };
  expect(offenders(inFolder(`functions/${wing}`), isForbidden)).toEqual([]);
});

test("of the senders, only the handler that calls it imports a feature", () => {
  const isFeature = (name: string) => name.startsWith("functions/deliveries/certification/");
  expect(offenders(inFolder("functions/deliveries/sending"), isFeature)).toEqual([
    "functions/deliveries/sending/send-slow.ts -> functions/deliveries/certification/certify.ts",
  ]);
});

test("only stores, queue modules, the due index, the topic and two files of platform import the AWS SDK", () => {
  const mayUseSdk = /(-store|-queue|-index|-dlq|-topic|platform\/(aws|dynamo))\.ts$/;
  const others = inFolder("functions").filter(({ path }) => !mayUseSdk.test(path));
  expect(offenders(others, (name) => /^@(aws-sdk|smithy)\//.test(name))).toEqual([]);
});

test("only foundation/platform/env.ts reads the environment", () => {
  const readers = inFolder("functions").filter(({ source }) =>
    /process\.env|process\[|["']node:process["']/.test(source),
  );
  expect(readers.map(({ path }) => path)).toEqual(["functions/foundation/platform/env.ts"]);
});

const pure = [
  "foundation/access/member",
  "identity/api-keys/api-key",
  "identity/api-keys/key-format",
  "foundation/records/audit-event",
  "deliveries/sending/attempt-metrics",
  "webhooks/webhook/circuit-breaker",
  "deliveries/sending/retry",
  "identity/authentication/credential",
  "identity/authentication/jwt",
  "deliveries/line/delivery",
  "deliveries/log/delivery-presenter",
  "deliveries/log/delivery-stats",
  "deliveries/log/waiting",
  "foundation/events/deployment-event",
  "foundation/events/parse-deployment-event",
  "foundation/events/webhook-event",
  "foundation/records/notification",
  "foundation/platform/backoff",
  "foundation/platform/metrics",
  "webhooks/formats/message",
  "webhooks/receiver/failure-cause",
  "webhooks/receiver/failure-hints",
  "webhooks/receiver/receiver-address",
  "webhooks/receiver/receiver-url",
  "webhooks/receiver/signature",
  "foundation/schema/unseen-text",
  "identity/service-accounts/service-account",
  "identity/trusted-workflows/trusted-workflow",
  "identity/trusted-workflows/workflow-claims",
  "identity/trusted-workflows/workflow-grant",
  "identity/trusted-workflows/workflow-issuer",
  "webhooks/subscription/occurrence",
  "webhooks/subscription/subscription",
  "webhooks/webhook/event-filter",
  "webhooks/webhook/health",
  "webhooks/webhook/webhook",
].map((name) => `functions/${name}.ts`);

test.each(pure)("%s does not use a clock, randomness, a store or the SDK", (path) => {
  const isImpure = (name: string) =>
    /-(store|queue|index|dlq|topic)\.ts$|platform\/(aws|env|log)\.ts$|^@(aws-sdk|smithy)\//.test(name);
  const file = read(path);
  expect(offenders([file], isImpure)).toEqual([]);
  expect(file.source).not.toMatch(/Date\.now|new Date\(\)|Math\.random|randomBytes|randomUUID|performance\.now/);
});

test("no file imports a handler", () => {
  expect(handlers).toEqual(
    expect.arrayContaining(["functions/identity/authentication/authorizer.ts", "functions/webhooks/webhook/create.ts"]),
  );
  expect(offenders(inFolder("functions"), (name) => handlers.includes(name))).toEqual([]);
});

test("there are no circular imports", () => {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const finished = new Set<string>();
  const visit = (path: string, trail: string[]): string[] => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (finished.has(path)) return [];
    const next = byPath.get(path)?.imports.filter((name) => byPath.has(name)) ?? [];
    const circle = next.map((name) => visit(name, [...trail, path])).find((found) => found.length > 0) ?? [];
    if (circle.length === 0) finished.add(path);
    return circle;
  };
  for (const { path } of files) expect(visit(path, []).join(" -> ")).toBe("");
});
