import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { deliveryStatuses } from "../../../functions/deliveries/delivery.ts";
import { eventNames } from "../../../functions/deployments/deployment-event.ts";
import { bodySignature } from "../../../functions/receivers/signature.ts";
import { buildConsole } from "../../../packages/console/build.ts";
import { mergePages } from "../../../packages/console/src/delivery-pages.ts";
import { routeOf } from "../../../packages/console/src/route.ts";
import { snippetLanguages, snippets } from "../../../packages/console/src/snippets.ts";
import { countdown, duration, relative } from "../../../packages/console/src/time.ts";
import * as vocabulary from "../../../packages/console/src/vocabulary.ts";
import { needs } from "../../support/optional-program.ts";

/* The parts of the console's page that need no browser. */

const MAX_GZIP_BYTES = 40_000;

test("the page is four files of at most 40 KB gzip together, and each build gives the same bytes", async () => {
  const [files, again] = [await buildConsole(), await buildConsole()];
  expect(files.map(({ name }) => name).sort()).toEqual(["console.css", "icon.svg", "index.html", "main.js"]);
  expect(again).toEqual(files);
  const bytes = files.reduce((sum, { body }) => sum + gzipSync(body).length, 0);
  expect(bytes).toBeLessThanOrEqual(MAX_GZIP_BYTES);
  expect(bytes).toBeGreaterThan(5_000);
});

test("the page contains no address of another server and uses no persistent storage", async () => {
  const text = (await buildConsole()).map(({ body }) => new TextDecoder().decode(body)).join("\n");
  const addresses = [...text.matchAll(/(?:https?:)?\/\/[\w.-]+\.[a-z]{2,}/g)].map(([address]) => address);
  // Names of XML namespaces, which browsers do not load.
  expect(addresses.filter((address) => !address.endsWith("//www.w3.org"))).toEqual([]);
  expect(text).not.toMatch(/@import|localStorage|document\.cookie|dangerouslySetInnerHTML=/);
});

test("the page lists all event names and all delivery statuses of the service, in its order", () => {
  expect(vocabulary.eventNames).toEqual(eventNames);
  expect(vocabulary.deliveryStatuses).toEqual(deliveryStatuses);
  expect(vocabulary.deliveryStatuses).toEqual(["pending", "succeeded", "failed", "held", "cancelled"]);
});

test("the texts for API values differ from each other, and the tones are pinned", () => {
  expect(vocabulary.statusTones).toEqual({
    pending: "warning",
    succeeded: "good",
    failed: "bad",
    held: "neutral",
    cancelled: "neutral",
  });
  expect(vocabulary.disabledReasons.gone.badge).toContain("410 Gone");
  expect(vocabulary.disabledReasons.failing.badge).toContain("failing");
  expect(vocabulary.disabledReasons.manual.badge).toContain("by a user");
  const causes = Object.values(vocabulary.disabledReasons).map(({ cause }) => cause);
  expect(new Set(causes).size).toBe(3);
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
  [`#/projects/${a}/members`, { name: "unknown" }],
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
  ["#/projects/..%2f..%2fkeys", { name: "unknown" }],
  [`#/projects/${a}/webhooks/../../api-keys`, { name: "unknown" }],
  ["#javascript:alert(1)", { name: "unknown" }],
])("the address %s opens its screen, and only UUIDs are accepted as ids", (hash, route) => {
  expect(routeOf(hash)).toEqual(route);
});

const rows = (...ids: string[]) => ids.map((id) => ({ id }));

test.each([
  ["no older rows are loaded", rows("3", "2"), "2", [], rows("3", "2")],
  ["a new row arrived", rows("4", "3"), "3", rows("3", "2"), rows("4", "3", "2")],
  ["a row within the first page was removed", rows("5", "3"), "3", rows("5", "4", "3", "2"), rows("5", "3", "2")],
  ["the first page is empty but not the last", [], "2", rows("1"), rows("1")],
  ["the first page is the last", rows("3"), undefined, rows("2"), rows("3")],
])("the first page and older rows merge into one list when %s", (_, items, nextCursor, older, shown) => {
  expect(mergePages({ items, ...(nextCursor !== undefined && { nextCursor }) }, older)).toEqual(shown);
});

const now = Date.parse("2026-11-21T12:00:00Z");

test.each([
  [0, "now"],
  [-999, "now"],
  [-42_000, "42 s ago"],
  [-3_599_000, "59 min ago"],
  [-47 * 3_600_000, "47 h ago"],
  [-48 * 3_600_000, "2 d ago"],
  [1_500, "in 1 s"],
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
  const runs = {
    node: {
      program: process.execPath,
      file: "verify.mjs",
      call: `import { readFileSync } from "node:fs";
console.log(isFromPlatform(readFileSync("body.json"), process.env.SIGNATURE) ? "verified" : "");`,
    },
    python: {
      program: "python3",
      file: "verify.py",
      call: `
import os
print("verified" if is_from_platform(open("body.json", "rb").read(), os.environ["SIGNATURE"]) else "")`,
    },
    shell: { program: "/bin/sh", file: "verify.sh", call: "true" },
  };
  function verdict(language: keyof typeof runs, given: string): string {
    const { program, file, call } = runs[language];
    writeFileSync(join(folder, file), snippets[language](secret) + call);
    writeFileSync(join(folder, "body.json"), body);
    const env = { ...process.env, SIGNATURE: given };
    return execFileSync(program, [file], { cwd: folder, env, encoding: "utf8" }).trim();
  }

  for (const language of snippetLanguages) {
    const programs = language === "python" ? ["python3"] : [];
    needs(...programs).test(`the ${language} code accepts a signature by the secret and rejects any other`, () => {
      expect(verdict(language, bodySignature(body, secret))).toBe("verified");
      expect(verdict(language, bodySignature(body, `${secret}0`))).toBe("");
      expect(verdict(language, "")).toBe("");
    });
  }
});
