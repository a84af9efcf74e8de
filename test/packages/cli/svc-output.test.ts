import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { secretCommands } from "../../support/secret-commands.ts";
import { type Api, useService } from "../../support/service.ts";
import { environment, freshConfigHome, program, svc } from "../../support/svc.ts";

/* What `svc` does when its output cannot be written: the real program, with real files, devices and pipes. */

const service = useService();
let api: Api;
let projectId: string;
let accountId: string;
let env: Record<string, string>;

beforeAll(async () => {
  const user = service.user();
  api = user.api;
  projectId = await service.project(user.userId);
  accountId = (await api.post(`/v1/projects/${projectId}/service-accounts`, { name: "ci", role: "admin" })).body.data
    .id;
  env = { SVC_BASE_URL: service.baseUrl, SVC_API_KEY: user.token, SVC_PROJECT: projectId };
});

const webhooks = () => `/v1/projects/${projectId}/webhooks`;
const accountKeys = () => `/v1/projects/${projectId}/service-accounts/${accountId}/api-keys`;
const create = async (path: string, body: object): Promise<{ id: string }> => (await api.post(path, body)).body.data;
const newKey = async () => (await create("/v1/api-keys", { name: "ci" })).id;
const newAccountKey = async () => (await create(accountKeys(), { name: "ci" })).id;
const newWebhook = async (url = "https://example.com/hook") =>
  (await create(webhooks(), { url, events: ["deploy.failed"] })).id;

function fileOfWebhooks(...entries: object[]): string {
  const path = join(freshConfigHome(), "webhooks.json");
  writeFileSync(path, JSON.stringify({ webhooks: entries }));
  return path;
}

const ROOM = 10;
/** `sh` counts in blocks of 512 bytes. */
const QUOTA_BLOCKS = 8;

/** Ways in which a write fails, as redirections of a shell, and the code of the error. */
const failures = {
  "a full device": [() => "> /dev/full", "ENOSPC"],
  "a file whose quota ends within the text": [
    () => {
      const path = join(freshConfigHome(), "secret.txt");
      writeFileSync(path, " ".repeat(QUOTA_BLOCKS * 512 - ROOM));
      return `>> ${path}`;
    },
    "EFBIG",
  ],
  "a pipe closed early": [() => "", "EPIPE"],
} as const;

interface Finished {
  code: number | null;
  stderr: string;
}

/** Runs `svc` with this redirection. Without one, stdout is a pipe whose reader has gone. */
async function svcInto(redirection: string, args: string[]): Promise<Finished> {
  const isLimited = redirection.startsWith(">>");
  // A file of the cache would be cut off by the quota too.
  const limited = { ...environment(env), ...(isLimited && { NODE_DISABLE_COMPILE_CACHE: "1" }) };
  const script = `${isLimited ? `ulimit -f ${QUOTA_BLOCKS}; ` : ""}exec "$@" ${redirection}`;
  const child = spawn("sh", ["-c", script, "sh", process.execPath, program, ...args], { env: limited });
  child.stdout.destroy();
  child.stdin.end();
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  return { code, stderr };
}

interface Row {
  /** Creates what the command needs. @returns its arguments */
  args(): Promise<string[]>;
  /** What is stored: a command that is refused before its call leaves it as it was. */
  stored(): string;
  /** The command that gets another secret; the first group is the id. */
  replace: RegExp;
  /** Whether a previous secret stays valid for the default of a day. */
  keepsPrevious?: boolean;
}

const ID = "([0-9a-f-]{36})";
const newUrl = () => `https://example.com/${crypto.randomUUID()}`;
const rows: Record<(typeof secretCommands)[number], Row> = {
  "keys create": {
    args: async () => ["keys", "create", "lost"],
    stored: () => "/v1/api-keys",
    replace: RegExp(`svc (keys roll ${ID} --overlap 0)`),
  },
  "keys roll": {
    args: async () => ["keys", "roll", await newKey()],
    stored: () => "/v1/api-keys",
    replace: RegExp(`svc (keys roll ${ID})$`, "m"),
    keepsPrevious: true,
  },
  "service-accounts create-key": {
    args: async () => ["service-accounts", "create-key", accountId, "lost"],
    stored: accountKeys,
    replace: RegExp(`svc (service-accounts roll-key ${ID} ${ID} --project ${ID} --overlap 0)`),
  },
  "service-accounts roll-key": {
    args: async () => ["service-accounts", "roll-key", accountId, await newAccountKey()],
    stored: accountKeys,
    replace: RegExp(`svc (service-accounts roll-key ${ID} ${ID} --project ${ID})$`, "m"),
    keepsPrevious: true,
  },
  "webhooks create": {
    args: async () => ["webhooks", "create", newUrl(), "--events", "deploy.failed"],
    stored: webhooks,
    replace: RegExp(`svc (webhooks rotate ${ID} --project ${ID} --overlap 0 --yes)`),
  },
  "webhooks rotate": {
    args: async () => ["webhooks", "rotate", await newWebhook(newUrl())],
    stored: webhooks,
    replace: RegExp(`svc (webhooks rotate ${ID} --project ${ID})$`, "m"),
    keepsPrevious: true,
  },
  apply: {
    args: async () => ["apply", "-f", fileOfWebhooks({ url: newUrl(), events: ["deploy.failed"] })],
    stored: webhooks,
    replace: RegExp(`svc (webhooks rotate ${ID} --project ${ID} --overlap 0 --yes)`),
  },
};

/** The webhooks of a row would reach the limit of a project. */
afterEach(async () => {
  for (const path of [webhooks(), "/v1/api-keys", accountKeys()]) {
    for (const { id } of (await api.get(path)).body.data) await api.delete(`${path}/${id}`);
  }
});

describe.each(Object.entries(rows))("%s", (_, { args, stored, replace, keepsPrevious }) => {
  test("changes nothing with a closed stdout", async () => {
    const command = await args();
    const before = (await api.get(stored())).body.data;
    expect(await svcInto(">&-", command)).toEqual({
      code: 2,
      stderr: expect.stringMatching(/stdout is closed: the secret would be lost\..+Nothing was changed\./s),
    });
    expect((await api.get(stored())).body.data).toEqual(before);
  });

  test.each(Object.entries(failures))("with %s, exits with 1 and names what gets another secret", async (...row) => {
    const [, [redirection, error]] = row;
    const { code, stderr } = await svcInto(redirection(), await args());
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(`Could not write to stdout (${error})`),
    });
    expect(stderr).not.toMatch(/svc_[0-9a-f]{20}|whsec_|\n {4}at /);
    const [, again = ""] = replace.exec(stderr) ?? [];
    const replaced = await svc(again.split(" "), { env, showsSecret: true });
    expect(replaced).toMatchObject({ code: 0, stdout: expect.stringMatching(/^(svc|whsec)_[0-9a-f]{64}\n$/) });
    if (!keepsPrevious) return;
    const [, until = ""] = /The previous one stays valid until (\S+Z)\./.exec(stderr.split("Could not")[1] ?? "") ?? [];
    expect(Math.abs(Date.parse(until) - Date.now() - 86_400_000)).toBeLessThan(60_000);
  });

  test("with --json and a pipe closed early, exits with 1 and reports the error as JSON", async () => {
    const { code, stderr } = await svcInto("", [...(await args()), "--json"]);
    const { error } = JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "");
    expect({ code, error }).toMatchObject({ code: 1, error: { code: "failed", request_id: null } });
    expect(error.message).toMatch(RegExp(replace.source.replace("$", "")));
  });
});

test("keys create > /dev/null discards the key, because the user says so", async () => {
  expect(await svcInto("> /dev/null", ["keys", "create", "discarded"])).toMatchObject({ code: 0 });
});

test("apply with a closed stdout works when it creates nothing", async () => {
  const url = newUrl();
  await newWebhook(url);
  const file = fileOfWebhooks({ url, events: ["deploy.succeeded"] });
  expect(await svcInto(">&-", ["apply", "-f", file])).toMatchObject({ code: 0 });
});

test("apply --json stops with exit code 1 when a change cannot be printed, and makes the others when it is repeated", async () => {
  const urls = [newUrl(), newUrl()];
  for (const url of urls) await newWebhook(url);
  const file = fileOfWebhooks(...urls.map((url) => ({ url, events: ["deploy.succeeded"] })));
  const { code, stderr } = await svcInto("", ["apply", "-f", file, "--json"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("Repeat the command") });
  expect(await svc(["apply", "-f", file], { env })).toMatchObject({ code: 0 });
  for (const { events } of (await api.get(webhooks())).body.data) expect(events).toEqual(["deploy.succeeded"]);
});

const others: Record<string, string[]> = {
  "a list": ["projects", "list"],
  "a list as JSON": ["projects", "list", "--json"],
  "the help": ["keys", "--help"],
  "the version": ["--version"],
  "a script": ["completion", "bash"],
};

test.each(Object.entries(others))("%s: a full device is an error, and a pipe closed early is none", async (_, args) => {
  const full = await svcInto("> /dev/full", args);
  expect(full).toEqual({ code: 1, stderr: expect.stringMatching(/Could not write to stdout \(ENOSPC\)\.("|\n)/) });
  expect(full.stderr).not.toContain("    at ");
  const closed = await svcInto("", args);
  expect(closed).toEqual({ code: 0, stderr: expect.not.stringContaining("EPIPE") });
});

test("a file with room for a part of a list is an error", async () => {
  const [redirection] = failures["a file whose quota ends within the text"];
  const { code, stderr } = await svcInto(redirection(), ["projects", "list"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "Could not write to stdout (EFBIG).\n" });
});

test("a pipe closed early does not hide that a check has failed", async () => {
  const file = fileOfWebhooks({ url: newUrl(), events: ["deploy.failed"] });
  const check = ["apply", "-f", file, "--dry-run", "--exit-code"];
  expect(await svcInto("", check)).toMatchObject({ code: 2 });
});

test("a full stderr changes nothing about the result", async () => {
  const path = join(freshConfigHome(), "key.txt");
  expect((await svcInto(`2> /dev/full > ${path}`, ["keys", "create", "quiet"])).code).toBe(0);
  expect(readFileSync(path, "utf8")).toMatch(/^svc_[0-9a-f]{64}\n$/);
});
