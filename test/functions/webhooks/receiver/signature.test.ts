import { createHmac, randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import {
  bodySignature,
  signatureHeaders,
  unexpiredSecrets,
} from "../../../../functions/webhooks/receiver/signature.ts";
import { generateSecret } from "../../../../functions/webhooks/webhook/webhook.ts";

const current = generateSecret(randomBytes(32));
const previous = generateSecret(randomBytes(32));
const older = generateSecret(randomBytes(32));
const body = '{"event":"deploy.failed","data":{"error":"Gerät 🚀 \\ud800 \u2028","n":9007199254740993}}';
const deliveryId = "01930000-0000-7000-8000-00000000d301";
const delivery = () => ({ deliveryId, at: new Date(), body });

/** Computes the signature by the documented formula, over the bytes that are sent. */
const contractSignature = (bytes: Buffer, secret: string) =>
  `sha256=${createHmac("sha256", Buffer.from(secret, "utf8")).update(bytes).digest("hex")}`;

/** Verifies with the Standard Webhooks library, as a receiver does. */
const verify = (secret: string, headers: Record<string, string>, text = body) =>
  new Webhook(secret).verify(text, headers);

describe("X-Service-Signature", () => {
  test("equals the HMAC that openssl computes with the whole secret as key", () => {
    // printf '{"a":"ü"}' | openssl dgst -sha256 -hmac whsec_00ff
    expect(bodySignature('{"a":"ü"}', "whsec_00ff")).toBe(
      "sha256=038e465d8de587ab83ecd7cca35800e40091b733d9a406f34d329c4fdf411bc8",
    );
  });

  test.each([
    ["an empty body", ""],
    ["an ASCII body", '{"event":"deploy.started"}'],
    ["a body with Unicode, escapes and large numbers", body],
  ])("signs the UTF-8 bytes of %s", (_, text) => {
    const { "X-Service-Signature": signature } = signatureHeaders({ ...delivery(), body: text }, current);
    expect(signature).toBe(contractSignature(Buffer.from(text, "utf8"), current));
    expect(signature).toMatch(/^sha256=[0-9a-f]{64}$/);
  });

  test.each([
    ["an additional space", `${body} `, current],
    ["the same JSON with other escapes", JSON.stringify(JSON.parse(body)), current],
    ["the secret without whsec_", body, current.slice("whsec_".length)],
    ["another secret", body, previous],
  ])("differs for %s", (_, text, secret) => {
    expect(bodySignature(body, current)).not.toBe(contractSignature(Buffer.from(text), secret));
  });
});

describe("webhook-signature", () => {
  test("is accepted by the Standard Webhooks library", () => {
    expect(verify(current, signatureHeaders(delivery(), current))).toEqual(JSON.parse(body));
  });

  test.each([
    ["base64 after whsec_", "whsec_b2xkIHBsYXRmb3Jt+/A=", {}],
    ["base64 without padding after whsec_", "whsec_b2xkIHBsYXRmb3JtIQ", {}],
    ["text after whsec_", "whsec_old-platform.signing_key", { format: "raw" } as const],
    ["text without whsec_", "0123456789abcdef".repeat(4), { format: "raw" } as const],
  ])("is accepted by the Standard Webhooks library with an imported secret of %s", (_, secret, options) => {
    expect(new Webhook(secret, options).verify(body, signatureHeaders(delivery(), secret))).toEqual(JSON.parse(body));
  });

  test("covers the id, the time and every byte of the body", () => {
    const headers = signatureHeaders(delivery(), current);
    const earlier = String(Number(headers["webhook-timestamp"]) - 1);
    expect(() => verify(current, { ...headers, "webhook-id": "another" })).toThrow("No matching signature");
    expect(() => verify(current, { ...headers, "webhook-timestamp": earlier })).toThrow("No matching signature");
    expect(() => verify(current, headers, `${body} `)).toThrow("No matching signature");
    expect(() => verify(previous, headers)).toThrow("No matching signature");
  });

  test("carries the id of the delivery and the time of the attempt in whole seconds", () => {
    const headers = signatureHeaders({ deliveryId, at: new Date("2026-01-02T03:04:05.999Z"), body }, current);
    expect(headers).toMatchObject({ "webhook-id": deliveryId, "webhook-timestamp": "1767323045" });
  });

  test("of an old attempt is rejected as a replay", () => {
    const at = new Date(Date.now() - 10 * 60_000);
    expect(() => verify(current, signatureHeaders({ deliveryId, at, body }, current))).toThrow("too old");
  });
});

describe("during a rotation", () => {
  test.each([
    ["one previous secret", [previous]],
    ["two previous secrets", [previous, older]],
  ])("receivers with the current secret or %s can verify both signatures", (_, secrets) => {
    const headers = signatureHeaders(delivery(), current, secrets);
    for (const secret of [current, ...secrets]) expect(verify(secret, headers)).toEqual(JSON.parse(body));
    expect(headers["webhook-signature"]?.split(" ")).toHaveLength(1 + secrets.length);
    const bytes = Buffer.from(body);
    expect(headers["X-Service-Signature"]).toBe(contractSignature(bytes, current));
    const ofPrevious = secrets.map((secret) => contractSignature(bytes, secret));
    expect(headers["X-Service-Signature-Previous"]?.split(", ")).toEqual(ofPrevious);
  });

  test("a receiver with an expired secret cannot verify", () => {
    expect(() => verify(older, signatureHeaders(delivery(), current, [previous]))).toThrow("No matching signature");
  });

  test("without an unexpired previous secret, there is one signature and no header for previous secrets", () => {
    const headers = signatureHeaders(delivery(), current);
    expect(headers).not.toHaveProperty("X-Service-Signature-Previous");
    expect(headers["webhook-signature"]).toMatch(/^v1,[\w+/]{43}=$/);
  });
});

const at = (expiresAt: string) => ({ secret: previous, expiresAt });
test.each<[string, { secret: string; expiresAt: string }[], string[]]>([
  ["no previous secret exists", [], []],
  ["it expires in a millisecond", [at("2026-01-01T00:00:00.001Z")], [previous]],
  ["it expires now", [at("2026-01-01T00:00:00.000Z")], []],
  ["it has expired", [at("2025-12-31T23:59:59.999Z")], []],
  ["its expiry is not a valid time", [at("soon")], []],
  [
    "the newer of two has expired and the older has not",
    [at("2025-12-31T23:59:59.999Z"), { secret: older, expiresAt: "2026-01-08T00:00:00.000Z" }],
    [older],
  ],
  [
    "neither of two has expired: the newer first",
    [at("2026-01-02T00:00:00.000Z"), { secret: older, expiresAt: "2026-01-08T00:00:00.000Z" }],
    [previous, older],
  ],
])("unexpiredSecrets returns the secrets that sign, when %s", (_, secrets, expected) => {
  expect(unexpiredSecrets(secrets, new Date("2026-01-01T00:00:00Z"))).toEqual(expected);
});
