import { execFile } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mintToken } from "../bin/command/mint-token.ts";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../functions/identity/api-keys/api-key.ts";
import { signatureHeaders } from "../functions/webhooks/receiver/signature.ts";
import { generateSecret } from "../functions/webhooks/webhook/webhook.ts";
import { eventOf } from "./support/deliveries.ts";
import { leaksIn } from "./support/leaks.ts";

/* The check that runs with every test file (support/log-check.ts) finds secrets in the log and fails the tests. */

const { key, apiKey } = createApiKey("user-1", { name: "ci" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES));
const secret = generateSecret(randomBytes(32));
const jwt = mintToken(randomBytes(32).toString("hex"), "user-1");
const signature = signatureHeaders({ deliveryId: randomUUID(), at: new Date(), body: "{}" }, secret, []);
const event = JSON.stringify(eventOf(randomUUID()));

test.each<[string, string]>([
  ["an API key", key],
  ["a truncated API key", key.slice(0, 13)],
  ["an API key without its prefix", key.slice(4)],
  ["the hash of an API key", apiKey.key_hash],
  ["a partner key", key.replace("svc_", "svcp_")],
  ["a signing secret", secret],
  ["a signing secret without its prefix", secret.slice(6)],
  ["a JWT", jwt],
  ["the start of a JWT", jwt.slice(0, 20)],
  ["an Authorization header", JSON.stringify({ authorization: "Basic dXNlcjpwYXNz" })],
  ["the value of an Authorization header", `Bearer ${randomUUID()}`],
  ["a signature", signature["X-Service-Signature"] ?? ""],
  ["a signature of Standard Webhooks", signature["webhook-signature"] ?? ""],
  ["a signed AWS request", "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/sqs/aws4_request"],
  ["an event", event],
  ["an event inside a message", JSON.stringify({ error: { message: `not queued: ${event}` } })],
  ["a URL with its query", "https://example.com/hook?token=abc"],
])("finds %s in a log line", (_, text) => {
  for (const line of [{ message: text }, { message: "m", error: { cause: { stack: text } } }]) {
    expect(leaksIn(JSON.stringify(line))).not.toEqual([]);
  }
});

test("finds the exact secret of a run", () => {
  expect(leaksIn('{"message":"correct horse battery staple"}', ["correct horse"])).toEqual(["a secret of this run"]);
  expect(leaksIn('{"message":"m"}', [""])).toEqual([]);
});

test("does not report ids, times, key prefixes or stack traces", () => {
  const line = {
    timestamp: new Date().toISOString(),
    message: "attempt",
    request_id: randomUUID(),
    delivery_ids: Array.from({ length: 10 }, () => randomUUID()).join(" "),
    key_prefix: apiKey.key_prefix,
    reason: "invalid_api_key",
    route: "/v1/projects/{project_id}/webhooks",
    error: { stack: new Error("connect ECONNREFUSED 127.0.0.1:1").stack },
  };
  expect(leaksIn(JSON.stringify(line))).toEqual([]);
});

test("fails every test that logs a secret, whichever output it uses", async () => {
  const root = join(import.meta.dirname, "..");
  const { jest } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { globalSetup, globalTeardown, testMatch, ...settings } = jest;
  const config = { ...settings, rootDir: root, testMatch: ["<rootDir>/test/fixtures/leaks-in-jest.ts"] };
  const folder = mkdtempSync(join(tmpdir(), "leaks-"));
  const outputFile = join(folder, "results.json");
  const program = ["--experimental-vm-modules", join(root, "node_modules/jest/bin/jest.js")];
  const args = [...program, "--config", JSON.stringify(config), "--json", "--outputFile", outputFile, "--runInBand"];
  const failure = await new Promise((resolve) => execFile(process.execPath, args, { cwd: root }, resolve));
  expect(failure).toMatchObject({ code: 1 });
  const { testResults } = JSON.parse(readFileSync(outputFile, "utf8"));
  rmSync(folder, { recursive: true });
  const results: { title: string; status: string; failureMessages: string[] }[] = testResults[0].assertionResults;
  expect(results.length).toBeGreaterThan(3);
  for (const { status, failureMessages } of results) {
    expect({ status, failureMessages }).toEqual({
      status: "failed",
      failureMessages: [expect.stringContaining("A secret was logged")],
    });
  }
});
