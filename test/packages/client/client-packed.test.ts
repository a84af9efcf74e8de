import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { listening } from "../../support/listening.ts";
import { folder, install, machineNode, pack, userEnvironment } from "../../support/npm-pack.ts";

/* The published client, installed from its tarball, on the Node of the machine. */

const project = join(folder, "project");
const installed = join(project, "node_modules/@deployment-webhooks/client");
let files: string[];

beforeAll(() => {
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{"type":"module","private":true}');
  const packed = pack("packages/client");
  files = packed.files;
  install(packed.tarball, project);
});

test("the tarball contains the bundle and its types, and has no dependencies", () => {
  expect(files).toEqual([
    "README.md",
    "dist/LICENSES.txt",
    "dist/client.d.ts",
    "dist/errors.d.ts",
    "dist/index.d.ts",
    "dist/index.js",
    "dist/schema.d.ts",
    "dist/values.d.ts",
    "dist/verify-webhook.d.ts",
    "package.json",
  ]);
  expect(JSON.parse(readFileSync(join(installed, "package.json"), "utf8")).dependencies).toBeUndefined();
  expect(readFileSync(join(installed, "dist/LICENSES.txt"), "utf8")).toContain("openapi-fetch 0.17.0 (MIT)");
});

/** A delivery whose signature does not match. */
const unsigned = {
  body: "{}",
  headers: { "x-service-signature": `sha256=${"0".repeat(64)}` },
  secret: `whsec_${"0".repeat(64)}`,
  scheme: "body",
};

test("a program on the Node of the machine imports and uses it", async () => {
  const baseUrl = await listening(http.createServer((_, response) => response.end('{"data":[{"id":"p-1"}]}')));
  writeFileSync(
    join(project, "use.js"),
    `import { ApiError, createClient, NetworkError, verifyWebhook } from "@deployment-webhooks/client";
const client = createClient({ baseUrl: ${JSON.stringify(baseUrl)}, token: "svc_1", signal: new AbortController().signal });
const code = await verifyWebhook(${JSON.stringify(unsigned)}).catch((error) => error.code);
console.log(JSON.stringify([await client.listProjects(), ApiError.name, NetworkError.name, code]));`,
  );
  const child = spawn(machineNode, ["use.js"], { cwd: project, env: userEnvironment });
  const output = await text(child.stdout);
  expect(JSON.parse(output)).toEqual([[{ id: "p-1" }], "ApiError", "NetworkError", "no_matching_signature"]);
});

// A bundler resolves what Node resolves.
test("its types compile as Node resolves them", () => {
  writeFileSync(
    join(project, "use.ts"),
    `import { ApiError, type Client, createClient, verifyWebhook } from "@deployment-webhooks/client";
const client: Client = createClient({ baseUrl: "https://api.example.com", token: "svc_1" });
// @ts-expect-error not a text
export const wrong = () => client.createWebhook("p", { url: "https://example.com", events: [7] });
export const url: Promise<string> = client.getWebhook({ projectId: "p", webhookId: "w" }).then(({ url }) => url);
export const app = async (body: Uint8Array, headers: Headers): Promise<string | undefined> => {
  const { payload } = await verifyWebhook({ body, headers, secret: "whsec_1" });
  return payload.event === "deploy.succeeded" ? payload.data.url : undefined;
};
// @ts-expect-error the body is already parsed
export const parsed = (body: object, headers: Headers) => verifyWebhook({ body, headers, secret: "whsec_1" });
export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.code === "conflict";
`,
  );
  const compilerOptions = {
    noEmit: true,
    strict: true,
    skipLibCheck: false,
    skipDefaultLibCheck: true,
    target: "es2022",
    lib: ["es2023", "dom", "dom.iterable"],
    types: [],
    module: "nodenext",
    moduleResolution: "nodenext",
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["use.ts"] }));
  const tsc = join(import.meta.dirname, "../../../node_modules/typescript/bin/tsc");
  expect(execFileSync(process.execPath, [tsc, "--project", project], { encoding: "utf8" })).toBe("");
});
