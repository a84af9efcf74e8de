import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import { signatureHeaders } from "../../../functions/webhooks/receiver/signature.ts";
import type { AuditEvent } from "../../../packages/client/src/client.ts";
import { buildConsole, type PageFile, writeConsole } from "../../../packages/console/build.ts";
import { actorOf, namesIn, sentenceOf } from "../../../packages/console/src/data/audit-sentences.ts";
import { mergePages } from "../../../packages/console/src/data/delivery-pages.ts";
import * as permissions from "../../../packages/console/src/data/permissions.ts";
import { routeOf } from "../../../packages/console/src/data/route.ts";
import {
  filesOf,
  type SnippetLanguage,
  snippetLanguages,
  snippets,
} from "../../../packages/console/src/data/snippets.ts";
import { countdown, duration, elapsed, relative } from "../../../packages/console/src/data/time.ts";
import { needs } from "../../support/optional-program.ts";

/* The parts of the console's page that need no browser. */

const receivers = join(import.meta.dirname, "../../../docs/receivers");

const MAX_GZIP_BYTES_AT_START = 30_000;
const MAX_GZIP_BYTES_LATER = 63_000;
const MAX_FONT_BYTES = 60_000;

const textOf = (body: Uint8Array) => new TextDecoder().decode(body);
const gzipBytes = (files: PageFile[]) => files.reduce((sum, { body }) => sum + gzipSync(body).length, 0);

/** The files that the browser loads before it shows a screen: those that `main.js` imports statically, and what it needs. */
function filesAtStart(files: PageFile[]): PageFile[] {
  const names = new Set(["index.html", "console.css", "icon.svg"]);
  const add = (name: string): void => {
    if (names.has(name)) return;
    names.add(name);
    const text = textOf(files.find((file) => file.name === name)?.body ?? new Uint8Array());
    for (const [, imported = ""] of text.matchAll(/(?:from|import)"\.\/([\w-]+\.js)"/g)) add(imported);
  };
  add("main.js");
  return files.filter(({ name }) => names.has(name));
}

test("the first screen needs at most 30 KB gzip, the rest is loaded later, and what an upload replaces is gone", async () => {
  const files = await buildConsole();
  const folder = mkdtempSync(join(tmpdir(), "console-"));
  writeFileSync(join(folder, "chunk-OLD.js"), "");
  await writeConsole(folder);
  const written = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]);
  rmSync(folder, { recursive: true });
  const atStart = filesAtStart(files);
  // With its license.
  const fonts = files.filter(({ name }) => name.startsWith("inter-"));
  const later = files.filter((file) => !atStart.includes(file) && !fonts.includes(file));
  expect(files.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["index.html", "main.js", "console.css", "icon.svg", "receivers.json"]),
  );
  // Each build gives the same bytes.
  expect(Object.fromEntries(written)).toEqual(Object.fromEntries(files.map(({ name, body }) => [name, textOf(body)])));
  expect(gzipBytes(atStart)).toBeLessThanOrEqual(MAX_GZIP_BYTES_AT_START);
  expect(gzipBytes(atStart)).toBeGreaterThan(5_000);
  expect(fonts.reduce((sum, { body }) => sum + body.length, 0)).toBeLessThanOrEqual(MAX_FONT_BYTES);
  expect(gzipBytes(later)).toBeLessThanOrEqual(MAX_GZIP_BYTES_LATER);
  expect(later.map(({ body }) => textOf(body)).join()).toContain("Files to put beside it");
  expect(atStart.map(({ body }) => textOf(body)).join()).not.toContain("Files to put beside it");
});

test("the page contains no address of another server and uses no persistent storage", async () => {
  // The page only shows the texts of receivers.json, and does not load the license of its font.
  const files = (await buildConsole()).filter(({ name }) => !/json$|woff2$|txt$/.test(name));
  const text = files.map(({ body }) => textOf(body)).join("\n");
  const addresses = [...text.matchAll(/(?:https?:)?\/\/[\w.-]+\.[a-z]{2,}/g)].map(([address]) => address);
  // Names of XML namespaces, which browsers do not load.
  expect(addresses.filter((address) => !address.endsWith("//www.w3.org"))).toEqual([]);
  expect(text).not.toMatch(/@import|localStorage|document\.cookie|dangerouslySetInnerHTML=/);
});

const [a, b, c] = ["0", "1", "2"].map((digit) => `0193${digit}000-0000-7000-8000-00000000d301`);

test.each([
  ["", { name: "projects" }],
  ["#/keys", { name: "keys" }],
  ["#/keys?a=b", { name: "keys" }],
  [`#/projects/${a}`, { name: "project", projectId: a, view: "webhooks", query: {} }],
  [
    `#/projects/${a}/deliveries?a=1?&b=%20`,
    { name: "project", projectId: a, view: "deliveries", query: { a: "1?", b: " " } },
  ],
  [`#/projects/${a}/events`, { name: "project", projectId: a, view: "events", query: {} }],
  [`#/projects/${a}/webhooks/${b}`, { name: "webhook", projectId: a, webhookId: b, view: "deliveries", query: {} }],
  [
    `#/projects/${a}/webhooks/${b}?status=failed`,
    { name: "webhook", projectId: a, webhookId: b, view: "deliveries", query: { status: "failed" } },
  ],
  [`#/projects/${a}/webhooks/${b}/health`, { name: "webhook", projectId: a, webhookId: b, view: "health", query: {} }],
  [`#/projects/${a}/webhooks/${b}/verify`, { name: "webhook", projectId: a, webhookId: b, view: "verify", query: {} }],
  [
    `#/projects/${a}/webhooks/${b}/deliveries/${c}`,
    { name: "webhook", projectId: a, webhookId: b, view: "deliveries", query: {}, deliveryId: c },
  ],
  ["#/audit", { name: "audit" }],
  [`#/projects/${a}/audit`, { name: "project-audit", projectId: a }],
  [`#/projects/${a}/access`, { name: "access", projectId: a }],
  [`#/projects/${a}/members`, { name: "unknown" }],
  ["#/projects/..%2f..%2fkeys", { name: "unknown" }],
  [`#/projects/${a}/webhooks/../../api-keys`, { name: "unknown" }],
  ["#javascript:alert(1)", { name: "unknown" }],
])("the address %s opens its screen, and only UUIDs are accepted as ids", (hash, route) => {
  expect(routeOf(hash)).toEqual(route);
});

/** The ids of a page, with a cursor unless it is the last. */
const page = (ids: string, nextCursor?: string) => ({
  items: [...ids].map((id) => ({ id })),
  ...(nextCursor !== undefined && { nextCursor }),
});

test.each([
  ["no older rows are loaded", page("32", "2"), undefined, page("32", "2")],
  ["a new row arrived", page("43", "3"), page("32", "2"), page("432", "2")],
  ["the older rows are the last", page("43", "3"), page("32"), page("432")],
  ["a row within the first page was removed", page("53", "3"), page("5432", "2"), page("532", "2")],
  ["the first page is empty but not the last", page("", "2"), page("1"), page("1")],
  ["the first page is the last", page("3"), page("2", "2"), page("3")],
])("the first page and older rows merge into one list when %s", (_, first, older, shown) => {
  expect(mergePages(first, older)).toEqual(shown);
});

const now = Date.parse("2026-11-21T12:00:00Z");

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [42_500, "42 s"],
  [303_000, "5 min 3 s"],
  [12_000_000, "3 h 20 min"],
])("formats a period of %i ms as %j", (ms, text) => {
  expect(elapsed(ms)).toBe(text);
});

test.each([
  [0, "now"],
  [-999, "now"],
  [-42_000, "42 s ago"],
  [-3_599_000, "59 min ago"],
  [-47 * 3_600_000, "47 h ago"],
  [-48 * 3_600_000, "2 d ago"],
  [1_500, "in 2 s"],
  [30 * 86_400_000 - 5_000, "in 30 d"],
  [300_000, "in 5 min"],
])("formats a time %i ms from now as %j", (ms, text) => {
  expect(relative(now + ms, now)).toBe(text);
});

test.each([
  [-5_000, "00:00"],
  [400, "00:01"],
  [462_000, "07:42"],
  [3_600_000, "01:00:00"],
  [86_400_000 + 11_262_000, "1 d 03:07:42"],
])("formats the remaining %i ms as %j", (ms, text) => {
  expect(countdown(now + ms, now)).toBe(text);
});

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [15_004, "15.0 s"],
])("formats a duration of %i ms as %j", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

describe("code to paste into a receiver", () => {
  const folder = mkdtempSync(join(tmpdir(), "snippets-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const secret = `whsec_${"0123456789abcdef".repeat(4)}`;
  const body = '{"event":"deploy.failed","data":{"reason":"Grüße, 世界 🚀"}}\n';
  const headersBy = (by: string) => {
    const all = signatureHeaders({ deliveryId: randomUUID(), at: new Date(), body }, by, []);
    return Object.fromEntries(Object.entries(all).filter(([name]) => /^webhook-/i.test(name)));
  };
  /** Go is only compiled: a run takes seconds. */
  type RunLanguage = Exclude<SnippetLanguage, "go">;
  /** Prints the id of the delivery, or fails. `headers.json` and `body.json` are beside the code. */
  const runs: Record<RunLanguage, { program: string; args: string[]; file: string; call: string }> = {
    node: {
      program: process.execPath,
      args: ["verify.mjs"],
      file: "verify.mjs",
      call: `import { readFileSync } from "node:fs";
console.log(receive(readFileSync("body.json"), JSON.parse(readFileSync("headers.json"))).id);`,
    },
    python: {
      program: "python3",
      args: ["verify.py"],
      file: "verify.py",
      call: `
import json
print(receive(open("body.json", "rb").read(), json.load(open("headers.json")))[0])`,
    },
    ruby: {
      program: "ruby",
      args: ["verify.rb"],
      file: "verify.rb",
      call: `puts receive(File.binread("body.json"), JSON.parse(File.read("headers.json")))[0]`,
    },
    php: {
      program: "php",
      args: ["verify.php"],
      file: "verify.php",
      call: `echo receive(file_get_contents("body.json"), json_decode(file_get_contents("headers.json"), true))["id"];`,
    },
    shell: { program: "/bin/sh", args: ["verify.sh"], file: "verify.sh", call: "" },
  };
  /** Writes the code with its file into a folder of its own. */
  function writeCode(language: SnippetLanguage, file: string, call = ""): string {
    const cwd = mkdtempSync(join(folder, `${language}-`));
    const source = snippets[language].file;
    copyFileSync(join(receivers, source), join(cwd, basename(source)));
    writeFileSync(join(cwd, file), snippets[language].code(secret) + call);
    return cwd;
  }

  function accepts(language: RunLanguage, by: string): boolean {
    const { program, args, file, call } = runs[language];
    const cwd = writeCode(language, file, call);
    const headers = headersBy(by);
    writeFileSync(join(cwd, "body.json"), body);
    writeFileSync(join(cwd, "headers.json"), JSON.stringify(headers));
    const { "webhook-id": ID, "webhook-timestamp": TIMESTAMP, "webhook-signature": SIGNATURE } = headers;
    return spawnSync(program, args, { cwd, env: { ...process.env, ID, TIMESTAMP, SIGNATURE } }).status === 0;
  }

  for (const language of snippetLanguages.filter((each) => each !== "go")) {
    const { program } = runs[language];
    const needed = { node: [], shell: ["openssl"], python: [program], ruby: [program], php: [program] }[language];
    needs(...needed).test(`the ${language} code accepts a signature by the secret and rejects any other`, () => {
      expect(accepts(language, secret)).toBe(true);
      expect(accepts(language, `whsec_${"1".repeat(64)}`)).toBe(false);
    });
  }

  needs("go").test("the go code compiles with its file", () => {
    const cwd = writeCode("go", "receive.go");
    writeFileSync(join(cwd, "go.mod"), "module receiver\n\ngo 1.18\n");
    const { status, stderr } = spawnSync("go", ["vet", "."], { cwd, encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test("the files of each language include the one that its code needs, first", async () => {
    const file = (await buildConsole()).find(({ name }) => name === "receivers.json");
    const files: Record<string, string> = JSON.parse(textOf(file?.body ?? new Uint8Array()));
    for (const language of snippetLanguages) {
      const [[path, text] = ["", ""]] = filesOf(language, files);
      expect(path).toBe(snippets[language].file);
      expect(text).toBe(readFileSync(join(receivers, path), "utf8"));
    }
    expect(filesOf("node", files).map(([path]) => basename(path))).toEqual([
      "verify-webhook.mjs",
      "express.mjs",
      "fastify.mjs",
      "inbox.mjs",
      "lambda.mjs",
      "next.mjs",
    ]);
  });
});

type Details = AuditEvent["details"];
const entry = (action: AuditEvent["action"], details: Details = {}, type: AuditEvent["actor"]["type"] = "jwt") => ({
  id: "e",
  at: new Date(now).toISOString(),
  action,
  actor: { type, user_id: "alice" },
  resource_id: "r-1",
  details,
});

test.each<[string, AuditEvent]>([
  ["alice created the API key “ci”", entry("api_key.created", { name: "ci", key_prefix: "svc_1" })],
  [
    "The service deleted the API key r-1 because it was reported as leaked",
    entry("api_key.deleted", { reason: "leaked" }, "system"),
  ],
  ["alice with an API key disabled the webhook r-1", entry("webhook.updated", { enabled: false }, "api_key")],
  [
    "alice changed the url and events of the webhook “a.example”",
    entry("webhook.updated", { url: { host: "a.example", sha256: "0" }, events: [] }),
  ],
  [
    "Someone without a credential deleted the API key r-1 because it was reported as leaked",
    entry("api_key.deleted", { reason: "leaked" }, "anonymous"),
  ],
  [
    "Someone without a credential deleted the API key r-1 because it was reported as leaked at https://github.com/a/b",
    entry(
      "api_key.deleted",
      { reason: "leaked", found: { url: "https://github.com/a/b", source: "commit" } },
      "anonymous",
    ),
  ],
  [
    "Someone without a credential revoked a previous secret of the API key r-1 before its overlap was over because it was reported as leaked",
    entry("api_key.earlier_ended", { reason: "leaked", found: { source: "npm" } }, "anonymous"),
  ],
  ["alice resent a delivery to the webhook r-1", entry("webhook.redelivery_requested", { delivery_id: "d" })],
  [
    "The service disabled the webhook r-1 because the receiver returned 410 Gone",
    entry("webhook.disabled", { reason: "gone" }, "system"),
  ],
  ["The platform gave the user r-1 the role admin", entry("member.updated", { role: "admin" }, "platform")],
  [
    "alice trusted the CI workflow of github repository 7",
    entry("trusted_workflow.created", { issuer: "github", repository_id: "7" }),
  ],
])("the audit says %j", (text, event) => {
  expect(`${actorOf(event.actor)} ${sentenceOf(event, new Map())}`).toBe(text);
});

test("the audit names a resource in an entry without a name by a later or earlier entry that has one", () => {
  const [renamed, created] = [entry("api_key.renamed", { name: "new" }), entry("api_key.created", { name: "old" })];
  const names = namesIn([renamed, created]);
  expect(sentenceOf(entry("api_key.deleted"), names)).toBe("deleted the API key “new”");
});

test("the presets of keys contain exactly these permissions, and are recognized in any order", () => {
  expect(permissions.presets).toEqual({
    "CI: read": ["projects:read", "webhooks:read", "deliveries:read", "events:read"],
    "CI: manage webhooks": ["projects:read", "webhooks:read", "webhooks:write", "deliveries:read", "events:read"],
  });
  expect(permissions.presetOf(["events:read", "deliveries:read", "projects:read", "webhooks:read"])).toBe("CI: read");
  expect(permissions.presetOf(permissions.presets["CI: manage webhooks"])).toBe("CI: manage webhooks");
  expect(permissions.presetOf(["projects:read"])).toBeUndefined();
});

test("a key expires after the chosen days, or never", () => {
  expect(permissions.expiryOf("90", now)).toBe("2027-02-19T12:00:00.000Z");
  expect(permissions.expiryOf("never", now)).toBeUndefined();
});
