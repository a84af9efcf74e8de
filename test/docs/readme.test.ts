import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endpoints } from "../../functions/manifest/endpoints.ts";
import { statusByCode } from "../../functions/platform/errors.ts";
import { signatureHeaders } from "../../functions/receivers/signature.ts";
import { everyOption } from "../lib/every-option.ts";

/* The README's snippets run, and its tables tell all there is. */

const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "readme-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const secret = `whsec_${"0123456789abcdef".repeat(4)}`;
const body = '{"event":"deploy.failed","data":{"reason":"Grüße, 世界 🚀"}}\n';
const sign = (text: string, key = secret, at = new Date()) =>
  signatureHeaders({ deliveryId: "d-1", at, body: text }, key);

function snippet(language: string, marker: string): string {
  const blocks = [...readme.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(
    ([, code = ""]) => code,
  );
  const found = blocks.find((code) => code.includes(marker));
  if (!found) throw new Error(`the README has no ${language} snippet with ${marker}`);
  return found;
}

test.each<[string, string, Record<string, string>, string]>([
  ["accepts a delivery", body, sign(body), "d-1 deploy.failed"],
  ["refuses another body", body.trim(), sign(body), "no_matching_signature"],
  ["refuses another secret", body, sign(body, `${secret}0123`), "no_matching_signature"],
  ["refuses a replay", body, sign(body, secret, new Date(Date.now() - 3_600_000)), "timestamp_too_old"],
  ["refuses no signature", body, {}, "missing_header"],
])("the Node snippet %s", (_, rawBody, headers, said) => {
  const code = snippet("js", "verifyWebhook").split("\n\n");
  copyFileSync(
    join(import.meta.dirname, "../../docs/receivers/node/verify-webhook.mjs"),
    join(folder, "verify-webhook.mjs"),
  );
  writeFileSync(
    join(folder, "receiver.mjs"),
    `${code[0]}
    const { body, headers, secret } = JSON.parse(process.env.DELIVERY);
    try {
      ${code[1]}
      console.log(id, payload.event);
    } catch (error) {
      console.log(error.code);
    }`,
  );
  const env = { ...process.env, DELIVERY: JSON.stringify({ body: rawBody, headers, secret }) };
  expect(execFileSync(process.execPath, ["receiver.mjs"], { cwd: folder, env, encoding: "utf8" }).trim()).toBe(said);
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

test("no heading comes twice, and nothing is left of an edit", () => {
  const headings = readme
    .split("\n")
    .filter((line) => line.startsWith("#") && !line.startsWith("# an ") && !line.startsWith("# a "));
  expect(headings.filter((line, index) => headings.indexOf(line) !== index)).toEqual([]);
  expect(readme).not.toMatch(/-->|<!--|^[<>=]{7}/m);
});
