import { randomBytes, randomUUID } from "node:crypto";
import { inspect } from "node:util";
import * as node from "../../../docs/receivers/node/verify-webhook.mjs";
import { signatureHeaders } from "../../../functions/webhooks/receiver/signature.ts";
import { generateSecret } from "../../../functions/webhooks/webhook/webhook.ts";
import * as client from "../../../packages/client/src/index.ts";
import { publicKeyVectors, vectors, vectorWithLeadingZeros } from "../../support/vectors.ts";

/* The verifiers of the client and of the receivers for Node, which accept and reject the same. */

const secret = generateSecret(randomBytes(32));
const event = { event: "deploy.succeeded", data: { url: "https://my-shop.example.app", message: "Grüße, 世界 🚀" } };
const body = JSON.stringify(event);

/** Returns the headers of a delivery; by default, of one that is sent now. */
const headersOf = ({ id = randomUUID() as string, at = new Date(), signedBody = body, signedWith = secret } = {}) =>
  signatureHeaders({ deliveryId: id, at, body: signedBody }, signedWith);
const sent = headersOf();
const pairs = Object.entries(sent);
const schemes = ["standard", "body"] as const;

type Options = client.VerifyWebhookOptions & node.Options;
const implementations = [
  { name: "the client", verify: client.verifyWebhook, Failure: client.WebhookVerificationError },
  {
    name: "the receivers for Node",
    verify: async (options: Options) => node.verifyWebhook(options),
    Failure: node.WebhookVerificationError,
  },
];

describe.each(implementations)("verifyWebhook of $name", ({ verify, Failure }) => {
  /** Returns the code of the failed check, or "verified". */
  async function resultOf(options: Options): Promise<string> {
    try {
      await verify(options);
      return "verified";
    } catch (error) {
      if (error instanceof Failure) return error.code;
      throw error;
    }
  }
  const resultsOf = (options: Options) => Promise.all(schemes.map((scheme) => resultOf({ ...options, scheme })));
  const inBoth = (result: string) => schemes.map(() => result);

  test.each([...vectors, ...publicKeyVectors, vectorWithLeadingZeros])(
    "$name",
    async ({ scheme, secrets, headers, now, valid, error, body, test: isTest = false }) => {
      const options = { body, headers, secret: secrets, scheme, now: new Date(now * 1000) };
      expect(await resultOf(options)).toBe(valid ? "verified" : error);
      if (valid) expect((await verify(options)).payload.data?.test === true).toBe(isTest);
    },
  );

  test("returns the id and the parsed body, whose data has the type of its event", async () => {
    const id = randomUUID();
    const verified = await verify({ body, headers: headersOf({ id }), secret });
    expect(verified).toEqual({ id, payload: event });
    if (verified.payload.event !== "deploy.succeeded") throw new Error("not narrowed");
    const url: string = verified.payload.data.url;
    expect(url).toBe(event.data.url);
  });

  test("returns an id from the body alone with the scheme body", async () => {
    const next = generateSecret(randomBytes(32));
    const idOf = async (signedBody: string, signedWith = secret) => {
      const headers = headersOf({ signedBody, signedWith });
      return (await verify({ body: signedBody, headers, secret: [secret, next], scheme: "body" })).id;
    };
    const id = await idOf(body);
    expect(id).toMatch(/^[0-9a-f]{64}$/);
    // Also when it is sent again after the secret was rotated.
    expect([await idOf(body, next), await idOf('{"event":"deploy.failed"}')].map((each) => each === id)).toEqual([
      true,
      false,
    ]);
  });

  const namedBy = (rename: (name: string) => string) =>
    Object.fromEntries(pairs.map(([name, value]) => [rename(name), value]));
  test.each<[string, Options["headers"]]>([
    ["Headers", new Headers(sent)],
    ["a Map", new Map(pairs)],
    ["pairs", pairs],
    ["an object in lower case", namedBy((name) => name.toLowerCase())],
    ["an object in upper case", namedBy((name) => name.toUpperCase())],
    ["an object of arrays", Object.fromEntries(pairs.map(([name, value]) => [name, [value]]))],
    ["an object with undefined values", { ...sent, cookie: undefined }],
    ["an object without a prototype", Object.assign(Object.create(null), sent)],
  ])("accepts headers as %s", async (_, headers) => {
    expect(await resultsOf({ body, headers, secret })).toEqual(inBoth("verified"));
  });

  test.each(["first", "last"])(
    "accepts a signature header that is repeated, of which the %s one matches",
    async (matching) => {
      const others = Object.entries(headersOf({ id: "other", signedBody: "" }));
      const wrong = others.filter(([name]) => /signature$/i.test(name));
      const headers = matching === "first" ? [...pairs, ...wrong] : [...wrong, ...pairs];
      expect(await resultsOf({ body, headers, secret })).toEqual(inBoth("verified"));
      const joined = new Headers(headers.map(([name, value]): [string, string] => [name, value]));
      expect(await resultsOf({ body, headers: joined, secret })).toEqual(inBoth("verified"));
    },
  );

  test("does not accept a repeated id", async () => {
    const headers = new Headers(sent);
    headers.append("webhook-id", randomUUID());
    expect(await resultOf({ body, headers, secret })).toBe("no_matching_signature");
  });

  const bytes = Buffer.from(body);
  const padded = Buffer.concat([Buffer.from("before"), bytes, Buffer.from("after")]);
  test.each<[string, Options["body"]]>([
    ["a string", body],
    ["a Buffer", bytes],
    ["a Uint8Array", new Uint8Array(bytes)],
    ["a part of a larger buffer", padded.subarray(6, 6 + bytes.length)],
    ["an ArrayBuffer", new Uint8Array(bytes).buffer],
  ])("accepts the body as %s", async (_, raw) => {
    expect((await verify({ body: raw, headers: sent, secret })).payload).toEqual(event);
  });

  test("rejects a body with other bytes that decode to the same UTF-8 text", async () => {
    const signedBody = '{"a":"\ufffd"}';
    const forged = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    expect(forged.toString("utf8")).toBe(signedBody);
    const headers = headersOf({ signedBody });
    expect(await resultsOf({ body: forged, headers, secret })).toEqual(inBoth("no_matching_signature"));
  });

  test("does not fall back to X-Service-Signature, which a replay could use", async () => {
    const headers = headersOf({ at: new Date(Date.now() - 3_600_000) });
    expect(await resultsOf({ body, headers, secret })).toEqual(["timestamp_too_old", "verified"]);
    const only = { "X-Service-Signature": headers["X-Service-Signature"] };
    expect(await resultsOf({ body, headers: only, secret })).toEqual(["missing_header", "verified"]);
  });

  test("tolerates a clock difference of toleranceSeconds", async () => {
    const at = (seconds: number) => headersOf({ at: new Date(Date.now() + seconds * 1000) });
    expect(await resultOf({ body, headers: at(-30), secret, toleranceSeconds: 10 })).toBe("timestamp_too_old");
    expect(await resultOf({ body, headers: at(30), secret, toleranceSeconds: 10 })).toBe("timestamp_too_new");
    expect(await resultOf({ body, headers: at(-3600), secret, toleranceSeconds: 7200 })).toBe("verified");
    expect(await resultOf({ body, headers: sent, secret, now: new Date(Number.NaN) })).toBe("timestamp_too_old");
  });

  test.each([
    ["not JSON", "deployed"],
    ["empty", ""],
    ["JSON after a byte order mark", "\ufeff{}"],
  ])("returns invalid_payload when the signature is valid and the body is %s", async (_, raw) => {
    const headers = headersOf({ signedBody: raw });
    expect(await resultsOf({ body: raw, headers, secret })).toEqual(inBoth("invalid_payload"));
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
    const thrown = await verify({ body, headers: sent, secret, ...mistake } as Options).catch((error) => error);
    expect(thrown).toBeInstanceOf(TypeError);
    expect(inspect(thrown)).not.toContain(secret.slice("whsec_".length));
  });

  test("reveals neither the secret nor the expected signature in its errors", async () => {
    for (const { scheme, secrets, body: text, headers, now } of vectors.filter(({ valid }) => !valid)) {
      const options = { body: text, headers, secret: secrets, scheme, now: new Date(now * 1000) };
      const thrown = await verify(options).catch((error) => error);
      const printed = inspect(thrown, { depth: 9, showHidden: true }) + JSON.stringify(thrown);
      const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
      const expected = secrets.flatMap((each) => {
        const at = new Date(1000 * Number(lower["webhook-timestamp"] ?? 0) || 0);
        const valid = signatureHeaders({ deliveryId: lower["webhook-id"] ?? "", at, body: text }, each);
        return [each.replace(/^whsec_/, ""), valid["webhook-signature"], valid["X-Service-Signature"]];
      });
      for (const hidden of expected) expect(printed).not.toContain(hidden);
    }
  });
});

test("the receivers for Node accept headers as Node's rawHeaders, and null values", () => {
  for (const headers of [pairs.flat(), { ...sent, "x-nothing": null }]) {
    for (const scheme of schemes) expect(node.verifyWebhook({ body, headers, secret, scheme }).payload).toEqual(event);
  }
});

test.each(schemes)("the client computes at most ten signatures of a request, scheme %s", async (scheme) => {
  const original = crypto.subtle.verify;
  let computed = 0;
  crypto.subtle.verify = (...args) => {
    computed += 1;
    return original.apply(crypto.subtle, args);
  };
  const { "X-Service-Signature": _, ...others } = sent;
  const headers = {
    ...others,
    "webhook-signature": `v1,${"A".repeat(43)}= `.repeat(300),
    "x-service-signature": `sha256=${"0".repeat(64)},`.repeat(300),
  };
  await expect(client.verifyWebhook({ body, headers, secret, scheme })).rejects.toThrow("no signature matches");
  crypto.subtle.verify = original;
  expect(computed).toBe(10);
});

test("wrong options of the client do not compile", () => {
  const wrong = () => {
    // @ts-expect-error the body is parsed
    void client.verifyWebhook({ body: event, headers: sent, secret });
    // @ts-expect-error there is no secret
    void client.verifyWebhook({ body, headers: sent });
    // @ts-expect-error unknown scheme
    void client.verifyWebhook({ body, headers: sent, secret, scheme: "any" });
  };
  expect(wrong).toBeDefined();
});
