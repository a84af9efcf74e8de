import {
  createHmac,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  randomUUID,
  sign as signWith,
} from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { jest } from "@jest/globals";
import { FetchError } from "aws-jwt-verify/error";
import type { APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import fc from "fast-check";
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { handler as authorizer } from "../../../../functions/identity/authentication/authorizer.ts";
import { parseJwt } from "../../../../functions/identity/authentication/jwt.ts";
import { verifyJwt as verifyParsed } from "../../../../functions/identity/authentication/user-jwt.ts";

const verifyJwt = (token: string, now: Date) => verifyParsed(token, parseJwt(token), now);

const fixture = (name: string) => readFileSync(new URL(`../../../fixtures/${name}`, import.meta.url));
const cert = fixture("tls-cert.pem");

const makePairs: Record<string, () => { publicKey: KeyObject; privateKey: KeyObject }> = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
};
const algorithms = Object.keys(makePairs);
const pairs = Object.fromEntries(Object.entries(makePairs).map(([alg, make]) => [alg, make()]));

/** Returns the public key of an algorithm as the issuer publishes it. The kid is the name of the algorithm. */
const jwkOf = (alg: string, more: object = { alg, use: "sig" }) => ({
  ...pairs[alg]?.publicKey.export({ format: "jwk" }),
  kid: alg,
  ...more,
});
const published = () => ({ keys: algorithms.map((alg) => jwkOf(alg)) });

/** The response of the issuer, and the paths of the requests that it received. */
let issuerResponse: { status: number; body: unknown; stall?: boolean };
let requestedPaths: (string | undefined)[];
let issuer: string;
const server = https.createServer({ cert, key: fixture("tls-key.pem") }, ({ url }, response) => {
  requestedPaths.push(url);
  const { status, body, stall } = issuerResponse;
  response.writeHead(status);
  if (stall) return response.write("{");
  return response.end(typeof body === "string" ? body : JSON.stringify(body));
});
let origin: string;
let startedAt: number;

beforeAll(async () => {
  logSink.write = () => {};
  https.globalAgent.options.ca = cert;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  // Keys are cached per issuer, so each test uses its own issuer.
  issuer = `${origin}/${randomUUID()}`;
  startedAt = Date.now();
  for (const name of ["JWT_SECRET", "JWKS_URI"]) delete process.env[name];
  process.env.JWKS_SHARES_USERS = "false";
  process.env.JWKS_ISSUER = issuer;
  process.env.JWKS_AUDIENCE = "api";
  issuerResponse = { status: 200, body: published() };
  requestedPaths = [];
});
afterAll(() => {
  delete https.globalAgent.options.ca;
  server.closeAllConnections();
  server.close();
});

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
/** The id of the user `user-1` of the issuer. */
const userId = () => `${issuer}#user-1`;
const nowSeconds = () => Math.floor(Date.now() / 1000);
const claims = () => ({ sub: "user-1", iss: issuer, aud: "api", iat: nowSeconds(), exp: nowSeconds() + 3600 });

function sign(
  alg: string,
  payload: object | null = claims(),
  header: object = { alg, kid: alg },
  key = pairs[alg]?.privateKey,
) {
  const input = `${encode(header)}.${encode(payload)}`;
  const options = { key: key as KeyObject, dsaEncoding: "ieee-p1363" as const };
  const signature = signWith(key?.asymmetricKeyType === "ed25519" ? null : "sha256", Buffer.from(input), options);
  return `${input}.${signature.toString("base64url")}`;
}
const hmac = (header: object, secret: string | Buffer, payload: object = claims()) => {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
};

/** Sets unused bits of the last base64url character: another encoding of the same signature. */
const reencode = (token: string) =>
  token.replace(/.$/, (last) => ({ A: "B", Q: "R", g: "h", w: "x" })[last] ?? `not canonical: ${last}`);

/** All but the clock. */
const allTimers = [
  ...(["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "clearImmediate"] as const),
  ...(["nextTick", "queueMicrotask", "performance", "hrtime"] as const),
];
const verify = (token: string, afterSeconds = 0) => verifyJwt(token, new Date(startedAt + afterSeconds * 1000));
const unknownKid = () => sign("RS256", claims(), { alg: "RS256", kid: randomUUID() });
const apiError = (code: string) => ({ name: "ApiError", code });
const authorize = (token: string) =>
  authorizer({
    type: "REQUEST",
    methodArn: "arn:aws:execute-api:us-east-1:123456789012:api/prod/GET/v1/projects",
    multiValueHeaders: { Authorization: [`Bearer ${token}`] },
    requestContext: { requestId: "request-1" },
  } as unknown as APIGatewayRequestAuthorizerEvent);

describe.each(algorithms)("a token signed with %s", (alg) => {
  test("by the issuer is accepted, and the keys are fetched once", async () => {
    for (let tokens = 0; tokens < 5; tokens++) expect(await verify(sign(alg))).toBe(userId());
    expect(requestedPaths).toEqual([`${new URL(issuer).pathname}/.well-known/jwks.json`]);
  });

  test("is accepted when its nbf is half a minute in the future", async () => {
    expect(await verify(sign(alg, { ...claims(), nbf: nowSeconds() + 30 }))).toBe(userId());
  });

  test.each<[string, string, () => string]>([
    ["with another encoding of its signature", "invalid_token", () => reencode(sign(alg))],
    ["by another issuer", "invalid_token", () => sign(alg, { ...claims(), iss: origin })],
    ["without an issuer", "invalid_token", () => sign(alg, { ...claims(), iss: undefined })],
    ["with a key that is not published", "invalid_token", () => sign(alg, claims(), { alg, kid: randomUUID() })],
    ["without a kid", "invalid_token", () => sign(alg, claims(), { alg })],
    ["with a kid that is not a string", "invalid_token", () => sign(alg, claims(), { alg, kid: 1 })],
    [
      "with other claims",
      "invalid_token",
      () => sign(alg).replace(/\.[^.]+/, `.${encode({ ...claims(), sub: "admin" })}`),
    ],
    ["that has expired", "token_expired", () => sign(alg, { ...claims(), exp: nowSeconds() - 600 })],
    ["that expired within the tolerance", "token_expired", () => sign(alg, { ...claims(), exp: nowSeconds() - 5 })],
    ["without an exp", "invalid_token", () => sign(alg, { ...claims(), exp: undefined })],
    ["with a lifetime of a day", "invalid_token", () => sign(alg, { ...claims(), exp: nowSeconds() + 86_400 })],
    ["that is not valid yet", "invalid_token", () => sign(alg, { ...claims(), nbf: nowSeconds() + 600 })],
    ["that was issued in the future", "invalid_token", () => sign(alg, { ...claims(), iat: nowSeconds() + 600 })],
    ["without a sub", "invalid_token", () => sign(alg, { ...claims(), sub: undefined })],
    ["with claims that are null", "invalid_token", () => sign(alg, null)],
    ["with a critical header", "invalid_token", () => sign(alg, claims(), { alg, kid: alg, crit: ["x"], x: 1 })],
  ])("%s is rejected with %s", async (_title, code, token) => {
    await expect(verify(token())).rejects.toMatchObject(apiError(code));
  });

  test("that is not valid yet is rejected with a message that says so", async () => {
    const token = sign(alg, { ...claims(), nbf: nowSeconds() + 600 });
    await expect(verify(token)).rejects.toMatchObject({ message: "The JWT is not valid yet." });
  });

  test("is rejected with the type of another kind of token, before any request", async () => {
    const token = sign(alg, claims(), { alg, kid: alg, typ: "logout+jwt" });
    await expect(verify(token)).rejects.toMatchObject({ message: expect.stringContaining("logout+jwt") });
    expect(requestedPaths).toEqual([]);
  });

  test("is rejected with the claims of a logout token or of an anonymous visitor", async () => {
    for (const more of [{ events: {} }, { is_anonymous: true }])
      await expect(verify(sign(alg, { ...claims(), ...more }))).rejects.toMatchObject(apiError("invalid_token"));
  });

  test("by another key under a kid of the issuer is rejected, even with that key in the header", async () => {
    const otherPair = makePairs[alg]?.() as (typeof pairs)[string];
    const jwk = otherPair.publicKey.export({ format: "jwk" });
    for (const more of [{}, { jwk }, { jku: "https://evil.example/jwks.json" }]) {
      const token = sign(alg, claims(), { alg, kid: alg, ...more }, otherPair.privateKey);
      await expect(verify(token)).rejects.toMatchObject(apiError("invalid_token"));
    }
  });

  test("is accepted whatever claims it has that are not used", async () => {
    const unused = { scope: ["openid", "api"], jti: 7, azp: null, email: "a@b.c", auth_time: "x", amr: [1], cnf: {} };
    expect(await verify(sign(alg, { ...claims(), ...unused }))).toBe(userId());
  });

  test.each([
    ["iss", () => ({ iss: `${issuer}/` })],
    ["aud", () => ({ aud: "api/" })],
    ["sub", () => ({ sub: 5 })],
    ["exp", () => ({ exp: String(nowSeconds() + 600) })],
    ["iat", () => ({ iat: null })],
  ])(
    "is rejected with the name of the claim %s, but not under an unknown kid or with another signature",
    async (claim, more) => {
      const payload = { ...claims(), ...more() };
      await expect(verify(sign(alg, payload))).rejects.toMatchObject({ ...apiError("invalid_token"), claim });
      const general = { message: "The JWT is not signed by the identity provider." };
      await expect(verify(sign(alg, payload, { alg, kid: "x" }))).rejects.toMatchObject(general);
      const other = makePairs[alg]?.().privateKey;
      await expect(verify(sign(alg, payload, { alg, kid: alg }, other))).rejects.toMatchObject(general);
    },
  );

  test("is accepted only for the configured audience", async () => {
    expect(await verify(sign(alg, { ...claims(), aud: ["web", "api"] }))).toBe(userId());
    for (const aud of ["web", [], undefined]) {
      await expect(verify(sign(alg, { ...claims(), aud }))).rejects.toMatchObject(apiError("invalid_token"));
    }
    process.env.JWKS_AUDIENCE = "web";
    await expect(verify(sign(alg))).rejects.toMatchObject(apiError("invalid_token"));
  });

  test.each(["with", "without"])(
    "under the kid of another kind of key is rejected, %s alg in the keys",
    async (how) => {
      if (how === "without") issuerResponse.body = { keys: algorithms.map((each) => jwkOf(each, {})) };
      for (const kid of algorithms.filter((each) => each !== alg)) {
        await expect(verify(sign(alg, claims(), { alg, kid }))).rejects.toMatchObject(apiError("invalid_token"));
      }
    },
  );

  test.each([1, 10, 63, 64, 65, 255, 256, 257])("is rejected with %d random bytes as signature", async (bytes) => {
    const token = sign(alg).replace(/[^.]+$/, randomBytes(bytes).toString("base64url"));
    await expect(verify(token)).rejects.toMatchObject(apiError("invalid_token"));
  });

  test("is rejected without a request when no issuer is configured", async () => {
    delete process.env.JWKS_ISSUER;
    await expect(verify(sign(alg))).rejects.toMatchObject(apiError("invalid_token"));
    expect(requestedPaths).toEqual([]);
  });
});

test.each(["RS384", "RS512", "PS256", "ES384", "ES512", "none"])("a token with alg %s is rejected", async (alg) => {
  const token = sign("RS256", claims(), { alg, kid: "RS256" });
  await expect(verify(token)).rejects.toMatchObject(apiError("invalid_token"));
  expect(requestedPaths).toEqual([]);
});

describe("an HS256 token", () => {
  test.each(["unset", "set"])("signed with a public key of the issuer is rejected, with JWT_SECRET %s", async (how) => {
    if (how === "set") process.env.JWT_SECRET = randomBytes(32).toString("hex");
    for (const alg of algorithms) {
      const key = pairs[alg]?.publicKey as KeyObject;
      const pem = key.export({ type: "spki", format: "pem" });
      const der = key.export({ type: "spki", format: "der" });
      for (const secret of [pem, String(pem).trim(), der, JSON.stringify(jwkOf(alg)), ""]) {
        const token = hmac({ alg: "HS256", kid: alg }, secret);
        await expect(verify(token)).rejects.toMatchObject(apiError("invalid_token"));
      }
    }
  });

  test("signed with the shared secret is accepted when an issuer is configured too", async () => {
    process.env.JWT_SECRET = randomBytes(32).toString("hex");
    expect(await verify(hmac({ alg: "HS256" }, process.env.JWT_SECRET))).toBe("user-1");
    expect(await verify(sign("RS256"))).toBe(userId());
  });

  test("never signs in as a user of the issuer", async () => {
    process.env.JWT_SECRET = randomBytes(32).toString("hex");
    const token = hmac({ alg: "HS256" }, process.env.JWT_SECRET, { ...claims(), sub: userId() });
    await expect(verify(token)).rejects.toMatchObject(apiError("invalid_token"));
  });

  test("signs in as the same user as a token of the issuer with JWKS_SHARES_USERS", async () => {
    process.env.JWT_SECRET = randomBytes(32).toString("hex");
    process.env.JWKS_SHARES_USERS = "true";
    expect(await verify(hmac({ alg: "HS256" }, process.env.JWT_SECRET))).toBe("user-1");
    expect(await verify(sign("RS256"))).toBe("user-1");
  });
});

describe("the issuer's keys", () => {
  test("are fetched from JWKS_URI if it is set", async () => {
    process.env.JWKS_URI = `${issuer}/other/place.json`;
    expect(await verify(sign("ES256"))).toBe(userId());
    expect(requestedPaths).toEqual([new URL(process.env.JWKS_URI).pathname]);
  });

  test("are fetched again for a new key", async () => {
    issuerResponse.body = { keys: [jwkOf("RS256")] };
    expect(await verify(sign("RS256"))).toBe(userId());
    issuerResponse.body = published();
    expect(await verify(sign("EdDSA"), 1)).toBe(userId());
    expect(requestedPaths).toHaveLength(2);
  });

  test("leave no connection when the issuer responds with an error that does not end", async () => {
    jest.spyOn(AbortSignal, "timeout").mockReturnValue(new AbortController().signal);
    issuerResponse = { status: 500, body: "", stall: true };
    const requested = once(server, "request");
    await expect(verify(sign("RS256"))).rejects.toThrow("Status code is 500");
    const [{ socket }] = await requested;
    if (!socket.destroyed) await once(socket, "close");
    jest.restoreAllMocks();
  });

  test("are fetched again when a token names a new key, two seconds after a token with an unknown key", async () => {
    issuerResponse.body = { keys: [jwkOf("RS256")] };
    await expect(verify(unknownKid())).rejects.toMatchObject(apiError("invalid_token"));
    issuerResponse.body = published();
    const parallel = Array.from({ length: 5 }, () => verify(sign("EdDSA"), 2));
    expect(await Promise.all(parallel)).toEqual(Array(5).fill(userId()));
    expect(requestedPaths).toHaveLength(2);
  });

  test("are not fetched for every token with an unknown key", async () => {
    await expect(verify(unknownKid())).rejects.toMatchObject(apiError("invalid_token"));
    for (let tokens = 0; tokens < 20; tokens++) {
      await expect(verify(unknownKid(), 1)).rejects.toMatchObject(apiError("invalid_token"));
    }
    expect(requestedPaths).toHaveLength(2);
    expect(await verify(sign("RS256"), 1)).toBe(userId());
  });

  test("are fetched at most three times in two seconds for tokens with random keys", async () => {
    for (let second = 0; second < 20; second += 0.25) await verify(unknownKid(), second).catch(() => {});
    expect(requestedPaths).toHaveLength(30);
  });

  test("are fetched at once for a new key while a stranger invents some, and after two seconds while one invents many", async () => {
    for (const [perSecond, waitSeconds] of [
      [1, 0],
      [100, 2],
    ] as const) {
      process.env.JWKS_ISSUER = issuer = `${origin}/${randomUUID()}`;
      issuerResponse.body = { keys: [jwkOf("RS256")] };
      expect(await verify(sign("RS256"))).toBe(userId());
      for (let token = 1; token <= 2 * perSecond; token++)
        await verify(unknownKid(), token / perSecond).catch(() => {});
      issuerResponse.body = published();
      await verify(unknownKid(), 2.1 + waitSeconds).catch(() => {});
      expect(await verify(sign("ES256"), 2.1 + waitSeconds)).toBe(userId());
    }
  });

  test("that are new get 503 with Retry-After, never 401, while a stranger invents 66 a second, and are accepted within two seconds", async () => {
    issuerResponse.body = { keys: [jwkOf("RS256")] };
    expect(await verify(sign("RS256"))).toBe(userId());
    const token = sign("ES256");
    const outcomes: unknown[] = [];
    for (let count = 1; count < 66 * 6; count++) {
      const second = 1 + count / 66;
      await verify(unknownKid(), second).catch(() => {});
      // Published in the middle of a window.
      if (count === 66 * 2) issuerResponse.body = published();
      if (count < 66 * 2) continue;
      outcomes.push(await verify(token, second).catch(({ code, headers }) => ({ code, headers })));
    }
    const undecided = { code: "service_unavailable", headers: { "Retry-After": "2" } };
    expect(new Set(outcomes.map((each) => JSON.stringify(each)))).toEqual(
      new Set([undecided, userId()].map((each) => JSON.stringify(each))),
    );
    expect(outcomes.slice(66 * 2)).toEqual(Array(outcomes.length - 66 * 2).fill(userId()));
    expect(requestedPaths.length).toBeLessThanOrEqual(1 + 3 * 4);
  });

  test("are fetched every two seconds for one token with an unknown key", async () => {
    const token = unknownKid();
    expect(await verify(sign("RS256"))).toBe(userId());
    for (let second = 1; second < 11; second += 0.25) await verify(token, second).catch(() => {});
    expect(requestedPaths).toHaveLength(1 + 5);
  });

  test("reject a token at once whose key was just looked up", async () => {
    const token = unknownKid();
    for (const second of [0, 0.5, 1.5]) {
      await expect(verify(token, second)).rejects.toMatchObject(apiError("invalid_token"));
    }
    expect(requestedPaths).toHaveLength(1);
  });

  test("are not fetched again for a token of another issuer or audience, or one that is not valid now", async () => {
    expect(await verify(sign("RS256"))).toBe(userId());
    const others = [{ iss: origin }, { aud: "other" }, { exp: nowSeconds() - 600 }, { nbf: nowSeconds() + 600 }];
    for (const [second, other] of others.entries()) {
      const token = sign("RS256", { ...claims(), ...other }, { alg: "RS256", kid: randomUUID() });
      await expect(verify(token, second + 1)).rejects.toMatchObject({ name: "ApiError", status: 401 });
    }
    expect(requestedPaths).toHaveLength(1);
  });

  test.each([
    ["removed", () => ({ keys: [jwkOf("ES256")] })],
    [
      "replaced under its kid",
      () => ({ keys: [{ ...makePairs.RS256?.().publicKey.export({ format: "jwk" }), kid: "RS256" }] }),
    ],
  ])("that the issuer has %s are trusted for less than five minutes", async (_title, after) => {
    expect(await verify(sign("RS256"))).toBe(userId());
    issuerResponse.body = after();
    expect(await verify(sign("RS256"), 299)).toBe(userId());
    await expect(verify(sign("RS256"), 300)).rejects.toMatchObject(apiError("invalid_token"));
    expect(requestedPaths).toHaveLength(2);
  });

  test("are not used if they are for encryption", async () => {
    issuerResponse.body = { keys: [jwkOf("RS256", { use: "enc" })] };
    await expect(verify(sign("RS256"))).rejects.toMatchObject(apiError("invalid_token"));
  });

  /** Returns a token that is issued so many seconds from now. */
  const issuedIn = (second: number) =>
    sign("RS256", { ...claims(), iat: nowSeconds() + second, exp: nowSeconds() + second + 3600 });

  test("that are cached are used while the issuer is down, until no older token is valid", async () => {
    expect(await verify(sign("RS256"))).toBe(userId());
    issuerResponse = { status: 500, body: "" };
    for (const second of [10, 300, 3600, 3899]) expect(await verify(issuedIn(second), second)).toBe(userId());
    await expect(verify(issuedIn(3900), 3900)).rejects.toBeInstanceOf(FetchError);
    issuerResponse = { status: 200, body: published() };
    expect(await verify(issuedIn(3930), 3930)).toBe(userId());
  });

  test.each([
    ["ten seconds", 10],
    ["ten minutes", 600],
  ])(
    "that are %s old and unknown while the issuer is down are a 503 with Retry-After, and are found two seconds after it",
    async (_title, age) => {
      expect(await verify(sign("RS256"))).toBe(userId());
      issuerResponse = { status: 500, body: "" };
      const token = sign("RS256", claims(), { alg: "RS256", kid: "new" });
      for (let second = age; second < age + 60; second++) {
        const unavailable = { ...apiError("service_unavailable"), headers: { "Retry-After": "2" } };
        await expect(verify(second % 2 ? unknownKid() : token, second)).rejects.toMatchObject(unavailable);
        expect(await verify(sign("RS256"), second)).toBe(userId());
      }
      expect(requestedPaths.length).toBeGreaterThan(20);
      expect(requestedPaths.length).toBeLessThanOrEqual(32);
      issuerResponse = { status: 200, body: { keys: [...published().keys, { ...jwkOf("RS256"), kid: "new" }] } };
      expect(await verify(token, age + 61)).toBe(userId());
      await expect(verify(unknownKid(), age + 61)).rejects.toMatchObject(apiError("invalid_token"));
    },
  );

  test("that a stranger asked for in an outage of a second are a 503 for two seconds at most, also with many strangers", async () => {
    expect(await verify(sign("RS256"))).toBe(userId());
    issuerResponse = { status: 500, body: "" };
    for (let token = 0; token < 100; token++) await verify(unknownKid(), 1 + token / 100).catch(() => {});
    issuerResponse = { status: 200, body: { keys: [...published().keys, { ...jwkOf("RS256"), kid: "new" }] } };
    const token = sign("RS256", claims(), { alg: "RS256", kid: "new" });
    await expect(verify(token, 2)).rejects.toMatchObject(apiError("service_unavailable"));
    expect(await verify(token, 4)).toBe(userId());
  });

  test("are used only if the issuer sends them within three seconds, or at a second request", async () => {
    issuerResponse.stall = true;
    const startedAt = performance.now();
    await expect(verify(sign("RS256"))).rejects.toBeInstanceOf(FetchError);
    expect(performance.now() - startedAt).toBeGreaterThan(5_900);
    expect(requestedPaths).toHaveLength(2);
  });

  const rsa = (modulusLength: number) =>
    generateKeyPairSync("rsa", { modulusLength }).publicKey.export({ format: "jwk" });
  const { n, ...withoutModulus } = jwkOf("RS256") as Record<string, unknown>;
  test.each<[string, unknown]>([
    ["null", null],
    ["text", "key"],
    ["a list", []],
    ["an object without members", {}],
    ["a key without a kty", { ...jwkOf("RS256"), kty: undefined }],
    ["a key with a kid that is a number", { ...jwkOf("RS256"), kid: 5 }],
    ["a key with a use that is null", { ...jwkOf("RS256"), use: null }],
    ["a key for encryption", jwkOf("RS256", { use: "enc" })],
    ["a key that only signs", jwkOf("RS256", { key_ops: ["sign"] })],
    ["a key with operations that are text", jwkOf("RS256", { key_ops: "verify" })],
    ["a key of another algorithm", jwkOf("RS256", { alg: "PS256" })],
    ["a key for encryption by its algorithm", jwkOf("RS256", { alg: "RSA-OAEP" })],
    ["a key without a modulus", withoutModulus],
    ["a key with a modulus that is a number", { ...withoutModulus, n: 5 }],
    ["an RSA key of 1,024 bits", { ...rsa(1_024), kid: "RS256" }],
    ["a key of an unknown type", { kty: "AKP", alg: "ML-DSA-44", pub: "AAAA", kid: "RS256" }],
    ["a symmetric key", { kty: "oct", k: "AAAA", kid: "RS256" }],
    [
      "a key on another curve",
      { ...generateKeyPairSync("ec", { namedCurve: "P-521" }).publicKey.export({ format: "jwk" }), kid: "RS256" },
    ],
    ["a key to agree on keys", { ...generateKeyPairSync("x25519").publicKey.export({ format: "jwk" }), kid: "RS256" }],
    ["another key with its kid", { ...rsa(2_048), kid: "RS256" }],
  ])("that follow %s in the list, with the same kid, are used", async (_title, entry) => {
    issuerResponse.body = { keys: [entry, ...published().keys] };
    for (const alg of algorithms) expect(await verify(sign(alg))).toBe(userId());
    expect(requestedPaths).toHaveLength(1);
  });

  test("accept and reject with every pair of entries what jose does", async () => {
    const entries = [
      ...published().keys,
      ...algorithms.map((alg) => jwkOf(alg, {})),
      jwkOf("RS256", { alg: "PS256" }),
      jwkOf("RS256", { use: "enc" }),
      jwkOf("ES256", { key_ops: ["sign"] }),
      jwkOf("EdDSA", { key_ops: ["verify"] }),
      { ...jwkOf("ES256"), kid: "RS256" },
      { kty: "oct", k: "AAAA", kid: "EdDSA" },
    ];
    const outcomes = { accepted: 0, rejected: 0 };
    for (const keys of entries.flatMap((one) => entries.map((other) => [one, other]))) {
      process.env.JWKS_ISSUER = issuer = `${origin}/${randomUUID()}`;
      issuerResponse.body = { keys };
      for (const alg of algorithms) {
        const token = sign(alg);
        const judged = jwtVerify(token, createLocalJWKSet({ keys } as JSONWebKeySet), {
          algorithms,
          issuer,
          audience: "api",
        });
        const { code = "accepted" } = await judged.catch((error) => error);
        // jose leaves it to its caller to try each of several keys with one kid.
        if (code === "ERR_JWKS_MULTIPLE_MATCHING_KEYS") continue;
        const verdict = await verify(token).then(
          () => "accepted",
          () => "rejected",
        );
        expect([keys, alg, verdict]).toEqual([keys, alg, code === "accepted" ? "accepted" : "rejected"]);
        outcomes[verdict as "accepted" | "rejected"] += 1;
      }
    }
    expect(outcomes.accepted).toBeGreaterThan(100);
    expect(outcomes.rejected).toBeGreaterThan(100);
  });

  test("of an RSA pair with 1,024 bits verify nothing", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 1_024 });
    issuerResponse.body = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "RS256", alg: "RS256" }] };
    const token = sign("RS256", claims(), { alg: "RS256", kid: "RS256" }, privateKey);
    await expect(verify(token)).rejects.toMatchObject(apiError("invalid_token"));
  });

  test("are for EdDSA also with the alg Ed25519 of RFC 9864, in the key or in the token", async () => {
    issuerResponse.body = { keys: [jwkOf("EdDSA", { alg: "Ed25519" })] };
    expect(await verify(sign("EdDSA"))).toBe(userId());
    expect(await verify(sign("EdDSA", claims(), { alg: "Ed25519", kid: "EdDSA" }))).toBe(userId());
  });

  test.each(algorithms)(
    "verify a token without a kid if there is only one, of %s, and its successor after a rotation",
    async (alg) => {
      const { kid, ...withoutKid } = jwkOf(alg);
      const successor = makePairs[alg]?.() as (typeof pairs)[string];
      const signed = (key = pairs[alg]?.privateKey) => verify(sign(alg, claims(), { alg }, key), 2);
      for (const key of [jwkOf(alg), withoutKid]) {
        process.env.JWKS_ISSUER = issuer = `${origin}/${randomUUID()}`;
        issuerResponse.body = { keys: [jwkOf("RS256", { use: "enc" }), key] };
        expect(await verify(sign(alg, claims(), { alg }))).toBe(userId());
        issuerResponse.body = { keys: [successor.publicKey.export({ format: "jwk" })] };
        expect(await signed(successor.privateKey)).toBe(userId());
        await expect(signed()).rejects.toMatchObject(apiError("invalid_token"));
      }
    },
  );

  test("are none if the list is empty: the tokens of removed keys are invalid", async () => {
    expect(await verify(sign("RS256"))).toBe(userId());
    issuerResponse.body = { keys: [] };
    await expect(verify(sign("RS256"), 300)).rejects.toMatchObject(apiError("invalid_token"));
  });

  test("are used up to 100 keys in 256 KB", async () => {
    const body = { keys: [...Array(99).fill(jwkOf("ES256")), jwkOf("RS256")], padding: "" };
    body.padding = "x".repeat(256 * 1024 - JSON.stringify(body).length);
    issuerResponse.body = body;
    expect(await verify(sign("RS256"))).toBe(userId());
  });

  test("are requested every half a minute while the issuer is down", async () => {
    expect(await verify(sign("RS256"))).toBe(userId());
    issuerResponse = { status: 500, body: "" };
    for (let second = 300; second < 420; second++) expect(await verify(sign("RS256"), second)).toBe(userId());
    expect(requestedPaths).toHaveLength(5);
  });

  test("are requested every two seconds while the issuer is down and none are cached", async () => {
    issuerResponse = { status: 500, body: "" };
    for (let second = 0; second < 20; second++) {
      await expect(verify(unknownKid(), second)).rejects.toBeInstanceOf(FetchError);
    }
    expect(requestedPaths).toHaveLength(10);
    // Once it responds, its failures count no more.
    issuerResponse = { status: 200, body: { keys: [jwkOf("RS256")] } };
    expect(await verify(sign("RS256"), 20)).toBe(userId());
    issuerResponse.body = published();
    expect(await verify(sign("EdDSA"), 22)).toBe(userId());
  });

  test.each<[string, () => void]>([
    ["responds with 500", () => (issuerResponse = { status: 500, body: published() })],
    ["responds with 404", () => (issuerResponse = { status: 404, body: "" })],
    ["responds with HTML", () => (issuerResponse = { status: 200, body: "<html>Down for maintenance</html>" })],
    ["responds with an empty body", () => (issuerResponse = { status: 200, body: "" })],
    ["responds with other JSON", () => (issuerResponse = { status: 200, body: { message: "busy" } })],
    ["responds with more than 100 keys", () => (issuerResponse.body = { keys: Array(101).fill(jwkOf("RS256")) })],
    [
      "responds with more than 256 KB",
      () => (issuerResponse.body = JSON.stringify({ ...published(), padding: "x".repeat(256 * 1024) })),
    ],
    ["responds with invalid keys", () => (issuerResponse = { status: 200, body: { keys: [{}] } })],
    ["is unreachable", () => (process.env.JWKS_URI = "https://127.0.0.1:1/jwks.json")],
    ["has an untrusted certificate", () => delete https.globalAgent.options.ca],
  ])(
    "are unavailable when the issuer %s: the authorizer throws, and recovers with the issuer",
    async (_title, breakIt) => {
      breakIt();
      const token = sign("RS256");
      https.globalAgent.destroy();
      try {
        await expect(authorize(token)).rejects.not.toMatchObject({ name: "ApiError" });
      } finally {
        https.globalAgent.options.ca = cert;
      }
      if (process.env.JWKS_URI !== undefined) return;
      issuerResponse = { status: 200, body: published() };
      jest.useFakeTimers({ now: Date.now() + 5_000, doNotFake: allTimers });
      try {
        expect(await authorize(token)).toMatchObject({ principalId: userId() });
      } finally {
        jest.useRealTimers();
      }
    },
  );
});

describe("a token that a stranger invents", () => {
  const ciIssuer = () => `${issuer}/ci`;
  beforeEach(() => {
    process.env.JWT_SECRET = randomBytes(32).toString("hex");
    process.env.OIDC_ISSUERS = JSON.stringify([{ name: "ci", issuer: ciIssuer(), audience: "api" }]);
  });
  afterEach(() => void delete process.env.OIDC_ISSUERS);

  test.each([
    ["users", () => issuer],
    ["workflows", ciIssuer],
  ])("is denied with any kid under the issuer of %s, and is no error of the authorizer", async (_title, iss) => {
    for (let tokens = 0; tokens < 20; tokens++) {
      const token = sign("RS256", { ...claims(), iss: iss() }, { alg: "RS256", kid: randomUUID() });
      const result = await authorize(token);
      if (tokens < 3) expect(result).toMatchObject({ context: { errorCode: "invalid_token" } });
      else if (result !== null) expect(result).toMatchObject({ context: { errorCode: "invalid_token" } });
    }
    expect(requestedPaths.length).toBeLessThanOrEqual(1 + 3);
  });

  test("gets no decision under an issuer that is down, of which the keys are cached, and is no error of the authorizer", async () => {
    await authorize(unknownKid());
    issuerResponse = { status: 500, body: "" };
    jest.useFakeTimers({ now: Date.now() + 10_000, doNotFake: allTimers });
    try {
      for (let tokens = 0; tokens < 20; tokens++) expect(await authorize(unknownKid())).toBeNull();
      expect(await authorize(sign("RS256"))).toMatchObject({ principalId: userId() });
      const others = [{ aud: "other" }, { iss: origin }, { sub: undefined, exp: nowSeconds() - 600 }];
      for (const other of others) {
        const token = sign("RS256", { ...claims(), ...other }, { alg: "RS256", kid: randomUUID() });
        expect(await authorize(token)).toMatchObject({ principalId: "anonymous" });
      }
    } finally {
      jest.useRealTimers();
    }
    expect(requestedPaths).toHaveLength(2);
  });

  test("is denied whatever its header, claims and signature are", async () => {
    const oneOf = (...usual: unknown[]) => fc.oneof(fc.constantFrom(...usual), fc.jsonValue());
    const header = fc.record(
      { alg: oneOf("HS256", ...algorithms), kid: oneOf(...algorithms), crit: fc.jsonValue() },
      { requiredKeys: ["alg"] },
    );
    const payload = fc.record(
      {
        iss: oneOf(issuer, ciIssuer()),
        aud: oneOf("api"),
        exp: oneOf(nowSeconds() + 600),
        iat: fc.jsonValue(),
        nbf: fc.jsonValue(),
        sub: fc.jsonValue(),
        repository_id: fc.jsonValue(),
      },
      { requiredKeys: ["iss"] },
    );
    const object = (fields: typeof header | typeof payload) =>
      fc.oneof({ weight: 9, arbitrary: fields }, { weight: 1, arbitrary: fc.jsonValue() });
    const signature = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString("base64url"));
    const isDenied = async (...parts: [unknown, unknown, string]) => {
      const token = parts.map((part) => (typeof part === "string" ? part : encode(part))).join(".");
      expect(await authorize(token)).toMatchObject({ principalId: "anonymous" });
    };
    await fc.assert(fc.asyncProperty(object(header), object(payload), signature, isDenied), { numRuns: 2_000 });
  });
});
