import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/* Who may know whom. The arrows of docs and README hold because these tests do. */

const root = join(import.meta.dirname, "..");

interface SourceFile {
  path: string;
  /** What it imports: paths from the project's root, or names of packages. */
  imports: string[];
}

const files = ["bin", "lib", "functions"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => read(join(folder, name))),
);

function read(path: string): SourceFile {
  const source = readFileSync(join(root, path), "utf8");
  const names = [...source.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g)].map(([, name = ""]) => name);
  return { path, imports: names.map((name) => (name.startsWith(".") ? join(dirname(path), name) : name)) };
}

const dataTables = [
  "endpoints",
  "workers",
  "tables",
  "queues",
  "uses",
  "gateway-responses",
  "metrics",
  "response-headers",
].map((name) => `functions/${name}.ts`);
const isVerb = ({ path }: SourceFile) =>
  /\bhandler\b/.test(
    readFileSync(join(root, path), "utf8")
      .match(/export (const|async function) \w+/g)
      ?.join() ?? "",
  );
const verbs = files.filter((file) => file.path.startsWith("functions/") && isVerb(file)).map(({ path }) => path);
const inFolder = (folder: string) => files.filter(({ path }) => path.startsWith(`${folder}/`));

test("the test sees the files and their imports", () => {
  expect(files.length).toBeGreaterThan(50);
  expect(verbs).toEqual(expect.arrayContaining(["functions/authorizer.ts", "functions/webhooks/create.ts"]));
  expect(read("functions/webhooks/create.ts").imports).toContain("functions/endpoint.ts");
});

test("functions know nothing of the stack or the local run", () => {
  const isForeign = (name: string) =>
    /^(lib|bin|test|bench)\//.test(name) || /^(aws-cdk-lib|constructs|fauxqs)/.test(name);
  expect(offenders(inFolder("functions"), isForeign)).toEqual([]);
});

test("the stack knows only the data tables of the functions", () => {
  const isCode = (name: string) => name.startsWith("functions/") && !dataTables.includes(name);
  expect(offenders(inFolder("lib"), isCode)).toEqual([]);
  expect(offenders(inFolder("lib"), (name) => name.startsWith("bin/"))).toEqual([]);
});

test("the data tables load nothing but each other, and only as types", () => {
  const tables = files.filter(({ path }) => dataTables.includes(path));
  expect(tables).toHaveLength(dataTables.length);
  expect(offenders(tables, (name) => !dataTables.includes(name))).toEqual([]);
});

test("only stores, queue modules and platform/aws.ts speak to AWS", () => {
  const mayUseSdk = /(-store|-queue|rejected-events|platform\/aws)\.ts$/;
  const others = inFolder("functions").filter(({ path }) => !mayUseSdk.test(path));
  expect(offenders(others, (name) => name.startsWith("@aws-sdk/"))).toEqual([]);
});

test("only platform/env.ts reads the environment", () => {
  const readers = inFolder("functions").filter(({ path }) =>
    /process\.env/.test(readFileSync(join(root, path), "utf8")),
  );
  expect(readers.map(({ path }) => path)).toEqual(["functions/platform/env.ts"]);
});

const pure = [
  "api-keys/api-key",
  "auth/credential",
  "auth/hs256",
  "auth/jwt-claims",
  "deliveries/attempt-metrics",
  "deliveries/breaker",
  "deliveries/delivery",
  "deliveries/delivery-resource",
  "deliveries/hint",
  "deliveries/retry",
  "deliveries/signature",
  "deployments/deployment-event",
  "platform/metrics",
  "projects/project",
  "webhooks/receiver-address",
  "webhooks/receiver-url",
  "webhooks/webhook",
].map((name) => `functions/${name}.ts`);

test.each(pure)("%s decides without a clock, randomness, store or SDK of its own", (path) => {
  const isImpure = (name: string) => /-store\.ts$|-queue\.ts$|platform\/(aws|env|log)\.ts$|^@aws-sdk/.test(name);
  expect(offenders([read(path)], isImpure)).toEqual([]);
  const source = readFileSync(join(root, path), "utf8");
  expect(source).not.toMatch(/Date\.now|new Date\(\)|Math\.random|randomBytes|randomUUID|performance\.now/);
});

test("a verb file never imports another verb", () => {
  const verbFiles = files.filter(({ path }) => verbs.includes(path));
  expect(offenders(verbFiles, (name) => verbs.includes(name))).toEqual([]);
});

test("platform knows no noun", () => {
  const isNoun = (name: string) => /^functions\/(api-keys|projects|webhooks|deployments|deliveries|auth)\//.test(name);
  expect(offenders(inFolder("functions/platform"), isNoun)).toEqual([]);
});

test("no file imports itself in a circle", () => {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const visit = (path: string, trail: string[]): string[] => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    const next = byPath.get(path)?.imports.filter((name) => byPath.has(name)) ?? [];
    return next.map((name) => visit(name, [...trail, path])).find((circle) => circle.length > 0) ?? [];
  };
  for (const { path } of files) expect(visit(path, []).join(" -> ")).toBe("");
});

function offenders(suspects: SourceFile[], isForbidden: (name: string) => boolean): string[] {
  return suspects.flatMap(({ path, imports }) => imports.filter(isForbidden).map((name) => `${path} -> ${name}`));
}
