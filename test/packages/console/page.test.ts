import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { deliveryStatuses } from "../../../functions/deliveries/delivery.ts";
import { eventNames } from "../../../functions/deployments/deployment-event.ts";
import { bodySignature } from "../../../functions/receivers/signature.ts";
import { buildConsole } from "../../../packages/console/build.ts";
import { merge, nextCursorOf } from "../../../packages/console/src/delivery-pages.ts";
import * as records from "../../../packages/console/src/records.ts";
import { routeOf } from "../../../packages/console/src/route.ts";
import { snippetLanguages, snippets } from "../../../packages/console/src/snippets.ts";
import { countdown, duration, relative } from "../../../packages/console/src/time.ts";

/* What the console's page is made of, without a browser. */

const MAX_GZIP_BYTES = 100_000;

test("the page is four files that weigh little, and the same at every build", async () => {
  const [files, again] = [await buildConsole(), await buildConsole()];
  expect(files.map(({ name }) => name).sort()).toEqual(["console.css", "icon.svg", "index.html", "main.js"]);
  expect(again).toEqual(files);
  const bytes = files.reduce((sum, { body }) => sum + gzipSync(body).length, 0);
  expect(bytes).toBeLessThan(MAX_GZIP_BYTES);
  expect(bytes).toBeGreaterThan(5_000);
});

test("the page asks nobody else for anything", async () => {
  const text = (await buildConsole()).map(({ body }) => new TextDecoder().decode(body)).join("\n");
  const addresses = [...text.matchAll(/(?:https?:)?\/\/[\w.-]+\.[a-z]{2,}/g)].map(([address]) => address);
  // Names of XML namespaces, which no browser asks for.
  expect(addresses.filter((address) => !address.endsWith("//www.w3.org"))).toEqual([]);
  expect(text).not.toMatch(/@import|localStorage|document\.cookie|dangerouslySetInnerHTML=/);
});

test("the page knows the events and statuses that there are", () => {
  expect(records.eventNames).toEqual(eventNames);
  expect(records.deliveryStatuses).toEqual(deliveryStatuses);
});

const [a, b, c] = ["0", "1", "2"].map((digit) => `0193${digit}000-0000-7000-8000-00000000d301`);

test.each([
  ["", { name: "projects" }],
  ["#/keys", { name: "keys" }],
  [`#/projects/${a}`, { name: "project", projectId: a }],
  [`#/projects/${a}/webhooks/${b}`, { name: "webhook", projectId: a, webhookId: b, view: "deliveries" }],
  [`#/projects/${a}/webhooks/${b}/verify`, { name: "webhook", projectId: a, webhookId: b, view: "verify" }],
  [
    `#/projects/${a}/webhooks/${b}/deliveries/${c}`,
    { name: "webhook", projectId: a, webhookId: b, view: "deliveries", deliveryId: c },
  ],
  ["#/projects/..%2f..%2fkeys", { name: "unknown" }],
  [`#/projects/${a}/webhooks/../../api-keys`, { name: "unknown" }],
  ["#javascript:alert(1)", { name: "unknown" }],
])("the address %s is a screen of its own, and ids are UUIDs or nothing", (hash, route) => {
  expect(routeOf(hash)).toEqual(route);
});

test.each([
  [null, undefined],
  ["", undefined],
  [`<http://127.0.0.1:3000/v1/x?limit=20&cursor=${a}>; rel="next"`, a],
  [`<https://elsewhere.example/v1/x?cursor=${a}>; rel="prev"`, undefined],
  ['<https://api.example.com/v1/x>; rel="next"', undefined],
])("the next page of a Link header %s is told by its cursor alone", (link, cursor) => {
  expect(nextCursorOf(link)).toBe(cursor);
});

const rows = (...ids: string[]) => ids.map((id) => ({ id }));

test.each([
  ["nothing else was loaded", rows("3", "2"), "2", [], rows("3", "2")],
  ["a new one came", rows("4", "3"), "3", rows("3", "2"), rows("4", "3", "2")],
  ["one between is gone", rows("5", "3"), "3", rows("5", "4", "3", "2"), rows("5", "3", "2")],
  ["a filtered page came empty, and is not the last", [], "2", rows("1"), rows("1")],
  ["the live ones are all there are", rows("3"), undefined, rows("2"), rows("3")],
])("live rows and older ones are one list: %s", (_, items, nextCursor, before, shown) => {
  expect(merge({ items, nextCursor }, before)).toEqual(shown);
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
])("a time %i ms from now is told as people say it", (ms, text) => {
  expect(relative(now + ms, now)).toBe(text);
});

test.each([
  [-5_000, "00:00"],
  [400, "00:01"],
  [462_000, "07:42"],
  [3_600_000, "01:00:00"],
  [86_400_000 + 11_262_000, "1 d 03:07:42"],
])("what is left of %i ms is told to the second", (ms, text) => {
  expect(countdown(now + ms, now)).toBe(text);
});

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [15_004, "15.0 s"],
])("a duration of %i ms is told briefly", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

describe("the snippets to paste", () => {
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
  const isThere = (program: string) => {
    try {
      return execFileSync(program, ["-c", ""]).length === 0;
    } catch {
      return false;
    }
  };

  function verdict(language: keyof typeof runs, given: string): string {
    const { program, file, call } = runs[language];
    writeFileSync(join(folder, file), snippets[language](secret) + call);
    writeFileSync(join(folder, "body.json"), body);
    const env = { ...process.env, SIGNATURE: given };
    return execFileSync(program, [file], { cwd: folder, env, encoding: "utf8" }).trim();
  }

  test.each(snippetLanguages)("in %s accept what is signed with the secret, and nothing else", (language) => {
    if (language === "python" && !isThere("python3")) return;
    expect(verdict(language, bodySignature(body, secret))).toBe("verified");
    expect(verdict(language, bodySignature(body, `${secret}0`))).toBe("");
    expect(verdict(language, "")).toBe("");
  });
});
