import { checkSecrets } from "../../../packages/cli/src/webhook-secrets.ts";

const digits = "0a".repeat(32);
const secret = `whsec_${digits}`;

test("checkSecrets returns valid secrets, and none when none was given", () => {
  expect(checkSecrets([secret, secret])).toEqual([secret, secret]);
  expect(checkSecrets([])).toEqual([]);
});

test.each([
  ["an API key", `svc_${digits}00000000`, "The signing secret is an API key."],
  ["a JWT", "eyJhbGciOiJIUzI1NiJ9.e30.x", "The signing secret is a JWT."],
  ["a secret in quotes", `"${secret}"`, "The signing secret has quotes or white space around it."],
  ["a secret with a space", `${secret} `, "The signing secret has quotes or white space around it."],
  ["a secret without its prefix", digits, "The signing secret lacks its prefix whsec_."],
  [
    "a short secret",
    secret.slice(0, -1),
    "The signing secret is cut off or altered: 64 hexadecimal digits follow whsec_.",
  ],
  ["another text", "hunter2", "The signing secret does not start with whsec_."],
])("checkSecrets rejects %s with exit code 2, and does not repeat it", (_, given, message) => {
  const check = () => checkSecrets([given]);
  expect(check).toThrow(expect.objectContaining({ exitCode: 2, message }));
});

test("checkSecrets says which of several secrets is wrong", () => {
  expect(() => checkSecrets([secret, "hunter2"])).toThrow("Signing secret 2 of 2 does not start with whsec_.");
});
