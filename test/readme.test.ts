import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bodySignature } from "../functions/deliveries/signature.ts";
import { endpoints } from "../functions/endpoints.ts";
import { statusByCode } from "../functions/platform/errors.ts";
import { everyOption } from "./lib/every-option.ts";

/* The README's snippets run, and its tables tell all there is. */

const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "readme-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const secret = `whsec_${"0123456789abcdef".repeat(4)}`;
const body = '{"event":"deploy.failed","data":{"reason":"Grüße, 世界 🚀"}}\n';
const signature = bodySignature(body, secret);
const cases: [string, string, string, boolean][] = [
  ["accepts the signature", body, signature, true],
  ["refuses another body", body.trim(), signature, false],
  ["refuses another signature", body, bodySignature(body, `${secret}0`), false],
  ["refuses no signature", body, "", false],
];

function snippet(language: string, marker: string): string {
  const blocks = [...readme.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(
    ([, code = ""]) => code,
  );
  const found = blocks.find((code) => code.includes(marker));
  if (!found) throw new Error(`the README has no ${language} snippet with ${marker}`);
  return found;
}

function run(program: string, file: string, code: string, rawBody: string, given: string): string {
  writeFileSync(join(folder, file), code);
  writeFileSync(join(folder, "body.json"), rawBody);
  const env = { ...process.env, WEBHOOK_SECRET: secret, SIGNATURE: given };
  return execFileSync(program, [file], { cwd: folder, env, encoding: "utf8" }).trim();
}

const hasPython = (() => {
  try {
    return execFileSync("python3", ["--version"], { encoding: "utf8" }).startsWith("Python 3");
  } catch {
    return false;
  }
})();

test.each(cases)("the Node snippet %s", (_, rawBody, given, isValid) => {
  const call = `import { readFileSync } from "node:fs";
    console.log(isFromPlatform(readFileSync("body.json"), process.env.SIGNATURE, process.env.WEBHOOK_SECRET));`;
  expect(run(process.execPath, "verify.mjs", snippet("js", "isFromPlatform") + call, rawBody, given)).toBe(
    String(isValid),
  );
});

(hasPython ? test.each(cases) : test.skip.each(cases))("the Python snippet %s", (_, rawBody, given, isValid) => {
  const call = `
import os
print(is_from_platform(open("body.json", "rb").read(), os.environ["SIGNATURE"], os.environ["WEBHOOK_SECRET"]))`;
  const printed = run("python3", "verify.py", snippet("python", "is_from_platform") + call, rawBody, given);
  expect(printed).toBe(isValid ? "True" : "False");
});

test.each(cases)("the shell snippet %s", (_, rawBody, given, isValid) => {
  const code = `${snippet("sh", "openssl")}\ntrue`;
  expect(run("/bin/sh", "verify.sh", code, rawBody, given)).toBe(isValid ? "verified" : "");
});

test.each(endpoints)("the table of endpoints has $method $path", ({ method, path }) => {
  const shown = path.replaceAll(/\{(\w+)\}/g, ":$1").replace(":project_id", ":id");
  expect(readme.replaceAll(/\?[\w=&]+`/g, "`")).toContain(`| \`${method} ${shown}\` |`);
});

test.each(Object.entries(statusByCode))("the table of errors has %s with %i", (code, status) => {
  const row = readme.split("\n").find((line) => line.startsWith("| ") && line.includes(`\`${code}\``)) ?? "";
  expect(row.split("|")[1]).toContain(String(status));
});

test.each(optionsOf(everyOption))("the table of a stage's options has %s", (option) => {
  const shown = readme
    .split("\n")
    .filter((line) => /^\| `\w/.test(line))
    .map((line) => line.split("|")[1] ?? "");
  expect(shown.some((cell) => cell.includes(`\`${option}\``))).toBe(true);
});

/** Options are told one by one, or with what they are made of in one place. */
function optionsOf(stage: object): string[] {
  return Object.entries(stage).flatMap(([name, value]) =>
    ["jwt", "apiKeys", "deliveries"].includes(name) ? Object.keys(value).map((part) => `${name}.${part}`) : [name],
  );
}
