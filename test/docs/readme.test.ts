import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoUser } from "../../bin/demo/demo-user.ts";
import { signatureHeaders } from "../../functions/webhooks/receiver/signature.ts";

/* The README is short, and its snippet works. */

const root = join(import.meta.dirname, "../..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "readme-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const secret = `whsec_${"0123456789abcdef".repeat(4)}`;
const body = '{"event":"deploy.failed","data":{"reason":"Grüße, 世界 🚀"}}\n';
const sign = (text: string, key = secret, at = new Date()) =>
  signatureHeaders({ deliveryId: "d-1", at, body: text }, key);

test("the README has at most 110 lines", () => {
  expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(110);
});

test("the README's commands use the demo user, and a project of their own: they can be pasted again", () => {
  const commands = readme.match(/^(export|npm run) .*$/gm)?.join("\n");
  expect(commands).toContain(`token -- --user ${demoUser.userId} `);
  expect(commands).toContain(`export SVC_PROJECT=$(npm run --silent project -- --user ${demoUser.userId} `);
  expect(commands).toContain('event -- --project "$SVC_PROJECT" ');
});

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
  ["rejects a body that was changed", body.trim(), sign(body), "no_matching_signature"],
  ["rejects a signature by another secret", body, sign(body, `${secret}0123`), "no_matching_signature"],
  ["rejects a replay", body, sign(body, secret, new Date(Date.now() - 3_600_000)), "timestamp_too_old"],
  ["rejects a request without a signature", body, {}, "missing_header"],
])("the README's receiver %s", (_, rawBody, headers, expected) => {
  const code = snippet("js", "verifyWebhook").split("\n\n");
  copyFileSync(join(root, "docs/receivers/node/verify-webhook.mjs"), join(folder, "verify-webhook.mjs"));
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
  expect(execFileSync(process.execPath, ["receiver.mjs"], { cwd: folder, env, encoding: "utf8" }).trim()).toBe(
    expected,
  );
});
