import { createHash, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { mintToken } from "../../bin/command/mint-token.ts";
import { demoUser } from "../../bin/demo/demo-user.ts";
import { batchesOf } from "../../bin/import/read-rows.ts";
import { commandHere } from "../support/command-here.ts";
import { eventually } from "../support/eventually.ts";
import { listening } from "../support/listening.ts";
import { freshDataDir, type LocalRun, startLocalRun, startProgram } from "../support/local-run.ts";
import { send } from "../support/service.ts";

const JWT_SECRET = randomBytes(32).toString("hex");
const IMPORTED_KEYS = '[{"prefix":"acme_","hash":"sha256"}]';
const DATA_DIR = freshDataDir();
const settings = { DATA_DIR, JWT_SECRET, IMPORTED_KEYS };
const scratch = mkdtempSync(join(tmpdir(), "import-"));
let local: LocalRun;
beforeAll(async () => {
  local = await startLocalRun(settings);
});
afterAll(async () => {
  await local.end("SIGTERM");
  rmSync(scratch, { recursive: true });
});

/** Writes a file with a line for each row: a text as it is, anything else as JSON. */
function fileOf(rows: unknown[]): string {
  const path = join(scratch, `${randomUUID()}.ndjson`);
  writeFileSync(path, rows.map((row) => (typeof row === "string" ? row : JSON.stringify(row))).join("\n"));
  return path;
}
const run = (...args: string[]) => commandHere("import", args, settings);
const get = (path: string, credential: string) =>
  send(`${local.baseUrl}${path}`, { headers: { authorization: `Bearer ${credential}` } });
const projectsOf = async (userId: string) => (await get("/v1/projects", mintToken(JWT_SECRET, userId))).body.data;

const keyOf = (name: string) => `acme_${name}`;
const keyRow = (key: string, fields: object = {}) => ({
  hash: createHash("sha256").update(key).digest("hex"),
  user_id: `user-${key}`,
  name: "ci",
  key_prefix: key.slice(0, 9),
  ...fields,
});
const statusWith = async (key = "") => (await get("/v1/projects", key)).status;
const NOTHING = "Nothing was changed. Pass --apply to make these changes.\n";

describe("keys", () => {
  test("are only checked without --apply, and are unchanged when the file is imported again", async () => {
    const keys = Array.from({ length: 1_001 }, () => keyOf(randomUUID()));
    const file = fileOf(keys.map((key) => keyRow(key)));
    const dry = {
      code: 0,
      stdout: `1001 rows: 1001 imported, 0 unchanged, 0 refused\n${NOTHING}`,
      stderr: "",
    };
    expect(await run("keys", file)).toEqual(dry);
    expect(await statusWith(keys[0])).toBe(401);
    const imported = { ...dry, stdout: "1001 rows: 1001 imported, 0 unchanged, 0 refused\n" };
    expect(await run("keys", file, "--apply")).toEqual(imported);
    expect(await Promise.all([keys[0], keys.at(-1)].map(statusWith))).toEqual([200, 200]);
    const again = { ...dry, stdout: "1001 rows: 0 imported, 1001 unchanged, 0 refused\n" };
    expect(await run("keys", file, "--apply")).toEqual(again);
  });

  test("that are refused are listed with their lines, which count empty ones, and the exit code is 1", async () => {
    const [first, last] = [keyOf(randomUUID()), keyOf(randomUUID())];
    const file = fileOf([keyRow(first), "", '{"hash":', keyRow("x", { key_prefix: "\u001b[2Jx" }), keyRow(last), ""]);
    const { code, stdout, stderr } = await run("keys", file, "--apply");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "4 rows: 2 imported, 0 unchanged, 2 refused\n" });
    expect(stderr.split("\n")).toEqual([
      "line 3: the row must be a JSON object",
      expect.stringMatching(/^line 4: key_prefix must be the first characters of the key/),
      "",
    ]);
    expect(await Promise.all([first, last].map(statusWith))).toEqual([200, 200]);
  });
});

test("webhooks are imported with their secrets, also from a file with a byte order mark", async () => {
  const secret = "the secret of the receiver";
  const row = { project_id: local.projectId, url: "https://example.com/hook", events: ["deploy.failed"], secret };
  const { code, stdout } = await run("webhooks", fileOf([`\ufeff${JSON.stringify(row)}`]), "--apply");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "1 row: 1 imported, 0 unchanged, 0 refused\n" });
  const { data } = (await get(`/v1/projects/${local.projectId}/webhooks`, local.token)).body;
  expect(data).toMatchObject([{ url: row.url }]);
});

describe("members", () => {
  const memberOf = (project_id: string) => ({
    user_id: `user-${randomUUID()}`,
    project_id,
    name: "Shop",
    role: "viewer",
  });
  const sync = (members: unknown[], ...args: string[]) =>
    run("members", fileOf(members), "--version", new Date().toISOString(), ...args);

  test("are sent in pages that begin with a project, and removed from projects that are gone", async () => {
    const others = Array.from({ length: 2 }, () => randomUUID().replace(/^./, "f"));
    const projects = [local.projectId, ...others].sort();
    const userId = randomUUID();
    // A page ends with the project that has its 2,000th member: the second one.
    const members = [1_500, 500, 3].map((length, index) =>
      Array.from({ length }, () => memberOf(projects[index] ?? "")),
    );
    const mine = { ...memberOf(projects[1] ?? ""), user_id: userId };
    // It is a member already, with another role.
    const demo = { ...memberOf(local.projectId), user_id: demoUser.userId };
    const all = [demo, ...members.slice(0, 1).flat(), mine, ...members.slice(1).flat()];
    expect(await sync(all, "--apply")).toMatchObject({
      code: 0,
      stdout: "2005 rows: 2004 added, 1 changed, 0 removed, 0 unchanged\n",
    });
    expect(await projectsOf(userId)).toMatchObject([{ id: projects[1], role: "viewer" }]);
    // A page that covers projects of the other one would remove their members.
    expect((await sync(all)).stdout).toContain("2005 rows: 0 added, 0 changed, 0 removed, 2005 unchanged\n");
    const ofTwo = all.filter(({ project_id }) => project_id !== projects[1]);
    const refused = await sync(ofTwo, "--apply");
    expect(refused).toMatchObject({ code: 1, stdout: "1504 rows: 0 added, 0 changed, 0 removed, 0 unchanged\n" });
    expect(refused.stderr).toBe(
      "lines 1 to 1504: 501 members would be removed, more than a tenth. Nothing of them was changed. Check the file, then pass --force.\n",
    );
    expect(await sync(ofTwo)).toMatchObject({
      code: 0,
      stdout: `1504 rows: 0 added, 0 changed, 501 removed, 1504 unchanged\n${NOTHING}`,
    });
    expect(await sync(ofTwo, "--apply", "--force")).toMatchObject({
      code: 0,
      stdout: "1504 rows: 0 added, 0 changed, 501 removed, 1504 unchanged\n",
    });
    expect(await projectsOf(userId)).toEqual([]);
  });

  const [first = "", second = "", third = ""] = Array.from({ length: 3 }, () => randomUUID()).sort();
  const userId = `user-${randomUUID()}`;
  // The first 2,001 are a page.
  const page = [
    { ...memberOf(second), user_id: userId },
    ...Array.from({ length: 2_000 }, () => memberOf(second)),
    memberOf(third),
  ];

  test("are divided into pages that end with a project, and say which projects they cover", async () => {
    const pages: [rows: number, after?: string, until?: string][] = [];
    for await (const { rows, after, until } of batchesOf(fileOf(page), true)) pages.push([rows.length, after, until]);
    expect(pages).toEqual([
      [2_001, undefined, second],
      [1, second, undefined],
    ]);
  });

  test.each([
    ["out of order", [...page, memberOf(first)], "line 2003: The members must be in the order of project_id."],
    ["without a project", [...page, { user_id: "alice" }], "line 2003: It has no project_id that is a UUID."],
    ["cut off", [...page, '{"user_id":"al'], "line 2003: It has no project_id that is a UUID."],
    ["of an empty file", [], "line 1: The file has no members."],
  ])("%s are an error before the first page is sent", async (_title, members, message) => {
    expect(await sync(members, "--apply")).toEqual({ code: 1, stdout: "", stderr: `${message}\n` });
    expect(await projectsOf(userId)).toEqual([]);
  });

  test("that the function refuses stop the command, with the lines of their page", async () => {
    const file = fileOf([{ ...memberOf(first), role: "owner" }]);
    // The number of a snapshot instead of its time.
    const { code, stderr } = await run("members", file, "--version", String(Date.now()), "--apply");
    const message = 'lines 1 to 1: The input is not valid: members.0.role must be "admin" or "viewer".';
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `0 rows: 0 added, 0 changed, 0 removed, 0 unchanged, then stopped at ${message}\nCorrect it, and repeat the command.\n`,
    });
  });
});

test.each([
  ["no kind", [], "Pass keys, webhooks or members, and one file."],
  ["an unknown kind", ["toString", "file"], "Pass keys, webhooks or members, and one file."],
  ["no file", ["keys"], "Pass keys, webhooks or members, and one file."],
  ["two files", ["keys", "one", "two"], "Pass keys, webhooks or members, and one file."],
  ["members without a version", ["members", "file"], "--version is required for members, and only for these."],
  ["keys with a version", ["keys", "file", "--version", "1"], "--version is required for members, and only for these."],
  ["keys with --force", ["keys", "file", "--force"], "--force is for members only."],
  ["a value of a flag", ["keys", "file", "--apply=yes"], "Option '--apply' does not take an argument."],
])("%s is a usage error", async (_title, args, message) => {
  const { code, stderr } = await run(...args);
  expect({ code, stderr: stderr.split("\n")[0] }).toEqual({ code: 2, stderr: message });
});

test.each([
  ["does not exist", join(scratch, "missing"), "ENOENT"],
  ["is a folder", scratch, "EISDIR"],
])("a file that %s is named in the error", async (_title, file, reason) => {
  const { code, stderr } = await run("keys", file);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`The file cannot be read: ${reason}`) });
});

test("a stage is found by the outputs of its stack, a local run by its address, and a long error is cut off", async () => {
  const requests: string[] = [];
  const server = http.createServer(async (request, response) => {
    const body = await text(request);
    requests.push(`${request.method} ${request.url} ${body}`);
    if (request.url?.includes("/functions/")) {
      const failure = body.includes('["fail"]') && { "x-amz-function-error": "Unhandled" };
      response
        .writeHead(200, failure || {})
        .end(JSON.stringify(failure ? { errorMessage: "x".repeat(600) } : { imported: 1, unchanged: 0, refused: [] }));
      return;
    }
    const isKnown = body.includes("deployment-webhooks-prod");
    const output =
      "<member><OutputKey>ApiKeysImportFunctionName</OutputKey><OutputValue>import-1A2B</OutputValue></member>";
    const stack = `<member><StackName>s</StackName><Outputs>${isKnown ? output : ""}</Outputs></member>`;
    const result = `<DescribeStacksResult><Stacks>${stack}</Stacks></DescribeStacksResult>`;
    response
      .writeHead(200, { "content-type": "text/xml" })
      .end(`<DescribeStacksResponse>${result}</DescribeStacksResponse>`);
  });
  const url = await listening(server);
  const settings = {
    ...{ AWS_ENDPOINT_URL_CLOUDFORMATION: url, AWS_ENDPOINT_URL_LAMBDA: url },
    ...{ AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "x", AWS_SECRET_ACCESS_KEY: "x" },
  };
  const args = ["keys", fileOf([keyRow("acme_1")]), "--apply", "--stage"];
  expect(await commandHere("import", [...args, "prod"], settings)).toMatchObject({ code: 0, stderr: "" });
  expect(requests.at(-1)).toMatch(
    /^POST \/2015-03-31\/functions\/import-1A2B\/invocations \{"keys":\[.*"dry_run":false\}$/,
  );
  // The address is used instead of that of the running service.
  const local = { ...settings, DATA_DIR };
  expect(await commandHere("import", args.slice(0, 3), local)).toMatchObject({ code: 0 });
  expect(requests.at(-1)).toContain("/functions/api-keys-import/");
  const gone = { ...local, AWS_ENDPOINT_URL_LAMBDA: "http://127.0.0.1:9" };
  expect(await commandHere("import", args.slice(0, 3), gone)).toEqual({
    code: 1,
    stdout: "",
    stderr:
      "0 rows: 0 imported, 0 unchanged, 0 refused, then stopped at lines 1 to 1: Could not reach http://127.0.0.1:9 (ECONNREFUSED). " +
      "Start the service at this address, or correct AWS_ENDPOINT_URL_LAMBDA.\nCorrect it, and repeat the command.\n",
  });
  const failed = await commandHere("import", ["keys", fileOf(["fail"]), "--stage", "prod"], settings);
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/lines 1 to 1: x{500}\nCorrect it/) });
  const other = await commandHere("import", [...args, "dev"], settings);
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining("has no output ApiKeysImportFunctionName.") });
});

test("an import that is interrupted by kill -9 of the service ends with the same keys when it is repeated", async () => {
  const keys = Array.from({ length: 3_000 }, (_, index) => keyOf(`${index}-${randomUUID()}`));
  const file = fileOf(keys.map((key) => keyRow(key)));
  const program = startProgram(["bin/run.cjs", "import", "keys", file, "--apply"], settings);
  let stderr = "";
  program.stderr.setEncoding("utf8").on("data", (part: string) => {
    stderr += part;
  });
  const ended = once(program, "exit");
  await eventually(async () => expect(await statusWith(keys[0])).toBe(200));
  await local.end("SIGKILL");
  expect(await ended).toEqual([1, null]);
  expect(stderr).toMatch(
    /^\d+ rows: \d+ imported, 0 unchanged, 0 refused, then stopped at lines \d+ to \d+: .*\nCorrect it/,
  );
  local = await startLocalRun(settings);
  const { code, stdout } = await run("keys", file, "--apply");
  const [, imported, unchanged] = /^3000 rows: (\d+) imported, (\d+) unchanged, 0 refused\n$/.exec(stdout) ?? [];
  expect([code, Number(imported) + Number(unchanged)]).toEqual([0, 3_000]);
  expect(Number(unchanged)).toBeGreaterThan(0);
  expect(await Promise.all([keys[0], keys[2_000], keys.at(-1)].map(statusWith))).toEqual([200, 200, 200]);
});
