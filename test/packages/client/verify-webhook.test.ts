import { randomBytes, randomUUID } from "node:crypto";
import { inspect } from "node:util";
import { signatureHeaders } from "../../../functions/receivers/signature.ts";
import {
  type VerifyWebhookOptions,
  verifyWebhook,
  WebhookVerificationError,
} from "../../../packages/client/src/index.ts";
import { vectors, vectorWithLeadingZeros } from "../../support/vectors.ts";

/* The client's verifier, on the test vectors of all languages. */

const secret = `whsec_${randomBytes(32).toString("hex")}`;
const event = { event: "deploy.succeeded", data: { url: "https://my-shop.example.app", message: "Grüße, 世界 🚀" } };
const body = JSON.stringify(event);
const headersOf = (id: string = randomUUID(), at = new Date()) =>
  signatureHeaders({ deliveryId: id, at, body }, secret);
const sent = headersOf();

/** Returns the code of the failed check, or "verified". */
async function resultOf(options: VerifyWebhookOptions): Promise<string> {
  try {
    await verifyWebhook(options);
    return "verified";
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.code;
    throw error;
  }
}

test("there are vectors of both schemes, valid and not", () => {
  const kinds = new Set(vectors.map(({ scheme, valid }) => `${scheme} ${valid}`));
  expect([...kinds].sort()).toEqual(["body false", "body true", "standard false", "standard true"]);
});

test.each([...vectors, vectorWithLeadingZeros])(
  "$name",
  async ({ scheme, secrets, headers, now, valid, error, body, test: isTest = false }) => {
    const options = { body, headers, secret: secrets, scheme, now: new Date(now * 1000) };
    expect(await resultOf(options)).toBe(valid ? "verified" : error);
    if (valid) expect((await verifyWebhook(options)).payload.data?.test === true).toBe(isTest);
  },
);

test("returns the id and the parsed body, whose data has the type of its event", async () => {
  const id = randomUUID();
  const verified = await verifyWebhook({ body, headers: headersOf(id), secret });
  expect(verified).toEqual({ id, payload: event });
  if (verified.payload.event !== "deploy.succeeded") throw new Error("not narrowed");
  const url: string = verified.payload.data.url;
  expect(url).toBe(event.data.url);
});

test("returns an id from the body alone with the scheme body", async () => {
  const ids = [headersOf(), headersOf()].map((headers) => verifyWebhook({ body, headers, secret, scheme: "body" }));
  const [first, second] = await Promise.all(ids);
  expect(first?.id).toMatch(/^[0-9a-f]{64}$/);
  expect(first?.id).toBe(second?.id);
});

const pairs = Object.entries(sent);
test.each<[string, VerifyWebhookOptions["headers"]]>([
  ["Headers", new Headers(sent)],
  ["a Map", new Map(pairs)],
  ["pairs", pairs],
  ["Node's headers, in lower case", Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]))],
  [
    "an object of arrays, with undefined",
    { ...Object.fromEntries(pairs.map(([name, value]) => [name, [value]])), cookie: undefined },
  ],
])("accepts headers as %s", async (_, headers) => {
  for (const scheme of ["standard", "body"] as const)
    expect(await resultOf({ body, headers, secret, scheme })).toBe("verified");
});

test.each(["first", "last"])(
  "accepts a signature header that is repeated, of which the %s one matches",
  async (matching) => {
    const others = Object.entries(signatureHeaders({ deliveryId: "other", at: new Date(), body: "" }, secret));
    const wrong = others.filter(([name]) => /signature$/i.test(name));
    const headers = matching === "first" ? [...pairs, ...wrong] : [...wrong, ...pairs];
    for (const scheme of ["standard", "body"] as const)
      expect(await resultOf({ body, headers, secret, scheme })).toBe("verified");
  },
);

const bytes = Buffer.from(body);
test.each<[string, VerifyWebhookOptions["body"]]>([
  ["a Buffer", bytes],
  ["a part of a larger buffer", Buffer.concat([bytes, bytes]).subarray(bytes.length)],
  ["an ArrayBuffer", new Uint8Array(bytes).buffer],
])("accepts the body as %s", async (_, raw) => {
  expect((await verifyWebhook({ body: raw, headers: sent, secret })).payload).toEqual(event);
});

test("does not fall back to X-Service-Signature, which a replay could use", async () => {
  const old = headersOf(randomUUID(), new Date(Date.now() - 3_600_000));
  expect(await resultOf({ body, headers: old, secret })).toBe("timestamp_too_old");
  const only = { "X-Service-Signature": old["X-Service-Signature"] };
  expect(await resultOf({ body, headers: only, secret })).toBe("missing_header");
});

test("tolerates a clock difference of toleranceSeconds", async () => {
  const at = (seconds: number) => headersOf(randomUUID(), new Date(Date.now() + seconds * 1000));
  expect(await resultOf({ body, headers: at(-30), secret, toleranceSeconds: 10 })).toBe("timestamp_too_old");
  expect(await resultOf({ body, headers: at(30), secret, toleranceSeconds: 10 })).toBe("timestamp_too_new");
  expect(await resultOf({ body, headers: at(-3600), secret, toleranceSeconds: 7200 })).toBe("verified");
  expect(await resultOf({ body, headers: sent, secret, now: new Date(Number.NaN) })).toBe("timestamp_too_old");
});

test("returns invalid_payload when the signature is valid and the body is not JSON", async () => {
  const headers = signatureHeaders({ deliveryId: "1", at: new Date(), body: "deployed" }, secret);
  for (const scheme of ["standard", "body"] as const)
    expect(await resultOf({ body: "deployed", headers, secret, scheme })).toBe("invalid_payload");
});

test.each<[string, object]>([
  ["the body is already parsed", { body: event }],
  ["there is no body", { body: undefined }],
  ["there is no secret", { secret: undefined }],
  ["the secret is empty", { secret: "" }],
  ["the secret is shorter than any", { secret: "x".repeat(15) }],
  ["the secret is a prefix only", { secret: "whsec_" }],
  ["the secret has a newline at its end", { secret: `${secret}\n` }],
  ["there are no secrets", { secret: [] }],
  ["one of the secrets is undefined", { secret: [secret, undefined] }],
  ["there are no headers", { headers: undefined }],
  ["the scheme is unknown", { scheme: "any" }],
])("throws a TypeError, not a verification error, when %s", async (_, mistake) => {
  const thrown = await verifyWebhook({ body, headers: sent, secret, ...mistake } as VerifyWebhookOptions).catch(
    (error) => error,
  );
  expect(thrown).toBeInstanceOf(TypeError);
  expect(inspect(thrown)).not.toContain(secret.slice("whsec_".length));
});

test("wrong options do not compile", () => {
  const wrong = () => {
    // @ts-expect-error the body is parsed
    verifyWebhook({ body: event, headers: sent, secret });
    // @ts-expect-error there is no secret
    verifyWebhook({ body, headers: sent });
    // @ts-expect-error unknown scheme
    verifyWebhook({ body, headers: sent, secret, scheme: "any" });
  };
  expect(wrong).toBeDefined();
});
