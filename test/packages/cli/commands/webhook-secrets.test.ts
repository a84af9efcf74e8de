import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkSecrets, readSecrets } from "../../../../packages/cli/src/commands/webhook-secrets.ts";

const digits = "0a".repeat(32);
const secret = `whsec_${digits}`;

test("checkSecrets returns valid secrets, and none when none was given", () => {
  const imported = ["0123456789abcdef", digits, "another platform's secret", "é".repeat(128)];
  expect(checkSecrets([secret, ...imported])).toEqual([secret, ...imported]);
  expect(checkSecrets([])).toEqual([]);
});

test.each([
  ["an API key", `svc_${digits}00000000`, "The signing secret is an API key."],
  ["a JWT", "eyJhbGciOiJIUzI1NiJ9.e30.x", "The signing secret is a JWT."],
  ["a secret in quotes", `"${secret}"`, "The signing secret has quotes or white space around it."],
  ["a secret with a space", `${secret} `, "The signing secret has quotes or white space around it."],
  ["a short secret", secret.slice(0, 15), "The signing secret is cut off, or is another text: it has 16 to 256 bytes."],
  ["a long text", "é".repeat(129), "The signing secret is cut off, or is another text: it has 16 to 256 bytes."],
])("checkSecrets rejects %s with exit code 2, and does not repeat it", (_, given, message) => {
  const check = () => checkSecrets([given]);
  expect(check).toThrow(expect.objectContaining({ exitCode: 2, message }));
});

test("a file of secrets may have the line breaks of Windows, and blank lines; the variable commas and line breaks", () => {
  const secretFile = join(mkdtempSync(join(tmpdir(), "secrets-")), "secrets.txt");
  writeFileSync(secretFile, `${secret}\r\n \r\n${digits}\r\n`);
  expect(readSecrets({ secretFile })).toEqual([secret, digits]);
  expect(readSecrets({}, { SVC_WEBHOOK_SECRET: ` ,${secret}\n${digits},x` })).toEqual([secret, digits, "x"]);
});

test("checkSecrets says which of several secrets is wrong", () => {
  expect(() => checkSecrets([secret, "hunter2"])).toThrow(
    "Signing secret 2 of 2 is cut off, or is another text: it has 16 to 256 bytes.",
  );
});
