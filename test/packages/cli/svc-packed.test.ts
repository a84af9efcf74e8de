import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { listening } from "../../support/listening.ts";
import { folder, install, pack, userEnvironment } from "../../support/npm-pack.ts";

/* The published `svc`, installed from its tarball, on the Node of the machine. */

const prefix = join(folder, "global");
const svc = join(prefix, "bin/svc");
const installed = join(prefix, "lib/node_modules/@deployment-webhooks/cli");
const secret = `whsec_${"0a".repeat(32)}`;
let files: string[];
let env: Record<string, string>;
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../../packages/cli/package.json"), "utf8"));

beforeAll(async () => {
  const packed = pack("packages/cli");
  files = packed.files;
  install(packed.tarball, folder, "--global", "--prefix", prefix);
  const SVC_BASE_URL = await listening(http.createServer((_, response) => response.end('{"data":[]}')));
  env = { ...userEnvironment, SVC_BASE_URL, SVC_API_KEY: "svc_1" };
});

async function run(args: string[], input = "") {
  const child = spawn(svc, args, { env, cwd: folder });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (text: Buffer) => {
    stdout += text;
  });
  child.stderr.on("data", (text: Buffer) => {
    stderr += text;
  });
  child.stdin.end(input);
  const [code] = await once(child, "close");
  return { code, stdout, stderr };
}

test("the tarball contains the bundle and no sources, and has no dependencies", () => {
  const others = files.filter((path) => !/^dist\/[\w-]+\.js$/.test(path));
  expect(others).toEqual(["README.md", "bin/svc.js", "dist/LICENSES.txt", "package.json"]);
  const { dependencies, engines } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  expect({ dependencies, engines }).toEqual({ dependencies: undefined, engines: { node: ">=20.3" } });
});

test("LICENSES.txt has the license of every bundled package", () => {
  const text = readFileSync(join(installed, "dist/LICENSES.txt"), "utf8");
  for (const name of ["commander", "openapi-fetch", "@modelcontextprotocol/server", "yaml", "zod"]) {
    expect(text).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\((MIT|ISC|Apache-2\\.0)\\)$`, "m"));
  }
  expect(text).toContain("Permission is hereby granted");
});

test("--help, --version and completion print their text", async () => {
  expect(await run(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  expect(await run(["--help"])).toMatchObject({ code: 0, stdout: expect.stringContaining("Usage: svc"), stderr: "" });
  expect(await run(["completion", "bash"])).toMatchObject({ code: 0, stdout: expect.stringContaining("_svc()") });
});

test("whoami calls the service", async () => {
  const { code, stdout } = await run(["whoami", "--json"]);
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, base_url: env.SVC_BASE_URL, project_count: 0 });
});

test("apply reads YAML", async () => {
  const file = "webhooks:\n  - url: https://example.com/\n    events: [deploy.failed] # only these\n";
  const project = "0193f8a0-0000-7000-8000-000000000000";
  expect(await run(["apply", "-f", "-", "--dry-run", "--project", project], file)).toEqual({
    code: 0,
    stdout: "+ https://example.com/\n+   events: deploy.failed\n1 to create.\n",
    stderr: "",
  });
});

test("verify accepts a valid signature, and keeps the digits of large numbers", async () => {
  const body = '{"n":9007199254740993}';
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  const args = ["verify", "--secret", secret, "--signature", signature, "--json"];
  expect(await run(args, body)).toMatchObject({ code: 0 });
  const { code, stdout } = await run(args, '{ "n": 9007199254740993 }');
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({
    code: 1,
    signatures: [
      { holds: false, remarks: [{ code: "body_reserialised", says: expect.stringMatching(/white space\.$/) }] },
    ],
  });
});

test("listen receives a delivery", async () => {
  const child = spawn(svc, ["listen", "--port", "0", "--count", "1", "--json"], { env, cwd: folder });
  const [started] = await once(child.stderr, "data");
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(String(started))?.[0] ?? "";
  const [[line]] = await Promise.all([
    once(child.stdout, "data"),
    fetch(url, { method: "POST", body: '{"n":9007199254740993}' }),
  ]);
  expect(JSON.parse(String(line))).toMatchObject({ method: "POST", body: '{"n":9007199254740993}', answered: 200 });
  expect(await once(child, "close")).toEqual([0, null]);
});

test("mcp serves its tools", async () => {
  const client = new Client({ name: "test", version: "1.0.0" });
  try {
    await client.connect(new StdioClientTransport({ command: svc, args: ["mcp"], env, cwd: folder }));
    expect(client.getServerVersion()).toMatchObject({ name: "svc", version });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("explain_failed_delivery");
    expect(await client.callTool({ name: "list_projects", arguments: {} })).toMatchObject({
      structuredContent: { projects: [] },
    });
  } finally {
    // An open connection would keep the test process alive.
    await client.close();
  }
});
