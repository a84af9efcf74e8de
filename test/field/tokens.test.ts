import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import { readCredential } from "../../functions/identity/authentication/credential.ts";
import { listening } from "../support/listening.ts";
import { type Claims, type Given, ISSUER, type Outcome, providers, tokenRows } from "./tokens.ts";

/* Each row of tokens.ts, signed as its provider signs it, under the settings that it names. */

const secret = "a shared secret of the identity provider";
const rsa = (modulusLength: number) => generateKeyPairSync("rsa", { modulusLength });
const makePairs: Record<string, () => { publicKey: KeyObject; privateKey: KeyObject }> = {
  RS256: () => rsa(2_048),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
};
const pairs = Object.fromEntries(Object.entries(makePairs).map(([alg, make]) => [alg, make()]));
const weak = rsa(1_024);

/** The key sets by path: the service caches the keys of an address. */
const keySets = new Map<string, object>();
const server = http.createServer(({ url = "" }, response) => void response.end(JSON.stringify(keySets.get(url))));
let origin: string;
beforeAll(async () => {
  origin = await listening(server);
});
const before = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
});

function publishKeys({ keysBefore = [], keys = {}, signature }: Given): string {
  const own = Object.entries(pairs).map(([alg, pair]) => {
    const { publicKey } = alg === "RS256" && signature === "of 1,024 bits" ? weak : pair;
    return { ...publicKey.export({ format: "jwk" }), kid: alg, alg, use: "sig", ...keys };
  });
  const path = `/${randomUUID()}`;
  keySets.set(path, { keys: [...keysBefore, ...own] });
  return origin + path;
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const hmac = (input: string, key: string | Buffer) => createHmac("sha256", key).update(input).digest();

function signatureOf(input: string, alg: string, how: Given["signature"]): Buffer {
  const isOther = how === "by another key";
  if (alg === "HS256") return hmac(input, isOther ? randomUUID() : secret);
  const pair = isOther ? makePairs[alg]?.() : how === "of 1,024 bits" ? weak : pairs[alg];
  const key = pair?.privateKey as KeyObject;
  if (how === "with the public key as the secret")
    return hmac(input, String(createPublicKey(key).export({ type: "spki", format: "pem" })));
  const dsaEncoding = how === "in DER" ? "der" : "ieee-p1363";
  return sign(alg === "EdDSA" ? null : "sha256", Buffer.from(input), { key, dsaEncoding });
}

function tokenOf(given: Given, more: Claims, alg: string): string {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const claims: Claims = { iss: ISSUER, aud: "api", sub: "user-1", iat: 0, exp: 3_600, ...more };
  for (const name of ["exp", "iat", "nbf"]) {
    const time = claims[name];
    if (typeof time === "number" && time < 100_000) claims[name] = nowSeconds + time;
  }
  const input = `${encode({ alg, kid: alg, ...given.header })}.${encode(claims)}`;
  return `${input}.${signatureOf(input, alg, given.signature).toString("base64url")}`;
}

/** Sets the settings of a local run, and returns what the service makes of a token. */
async function outcomeOf(given: Given, claims: Claims, alg: string): Promise<{ outcome: Outcome; userId?: string }> {
  const usual = { JWT_ISSUER: ISSUER, JWT_AUDIENCE: "api", JWKS_ISSUER: ISSUER, JWKS_AUDIENCE: "api" };
  const settings = { JWT_SECRET: secret, JWKS_SHARES_USERS: "true", ...usual, ...given.settings };
  // The keys are always on this machine.
  Object.assign(process.env, { ...settings, JWKS_URI: publishKeys(given) });
  for (const [name, value] of Object.entries(settings)) if (value === undefined) delete process.env[name];
  const credential = readCredential({ authorization: [`Bearer ${tokenOf(given, claims, alg)}`] });
  const request = { projectId: undefined, lastUse: () => ({}) as never, now: new Date() };
  try {
    return { outcome: "accepted", userId: (await credential?.identify(request))?.userId ?? "" };
  } catch (error) {
    const { name, code, claim } = error as { name: string; code: Outcome; claim?: string };
    if (name !== "ApiError") throw error;
    return { outcome: claim === undefined ? code : `claim ${claim}` };
  }
}

test.each(tokenRows)("%s, %s: %s", async (_source, _about, expected, claims, given = {}) => {
  for (const alg of given.algs ?? ["HS256", "RS256"]) {
    const { outcome, userId } = await outcomeOf(given, claims, alg);
    expect([alg, outcome]).toEqual([alg, expected]);
    if (expected === "accepted") expect(userId).toBe(claims.sub ?? "user-1");
  }
});

describe("the table of identity providers in docs/configuration.md", () => {
  const page = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
  const [, table = ""] = /\*\*Identity providers\.\*\*([\s\S]*)\*\*Who may sign in\.\*\*/.exec(page) ?? [];
  const documented = [...table.matchAll(/^\| (?!provider)([^|]+) \| ([^|]+) \| [^|]+ \| (.+) \|$/gm)];

  test("has the providers of tokens.ts, and the one that oidc-provider.test.ts runs", () => {
    expect(documented.map(([, name]) => name)).toEqual([...providers.map(([name]) => name), "oidc-provider"]);
  });

  test.each(providers)(
    "has settings with which a token of %s is accepted",
    async (name, iss, aud, more, claims, given = {}) => {
      const settings = { JWKS_ISSUER: iss, JWKS_AUDIENCE: aud, ...more };
      const [alg = "RS256"] = given.algs ?? [];
      const outcomes = [iss, `${iss}/`].map(async (other) => {
        const { outcome } = await outcomeOf({ ...given, settings }, { iss: other, aud, ...claims }, alg);
        return outcome;
      });
      expect(await Promise.all(outcomes)).toEqual(["accepted", "claim iss"]);
      const [, , issuer = "", besides = ""] = documented.find(([, each]) => each === name) ?? [];
      const pattern = (/`([^`]+)`/.exec(issuer)?.[1] ?? "").replaceAll(/<\w+>/g, "[\\w.-]+");
      expect(iss).toMatch(new RegExp(`^${pattern}$`));
      const filledIn = besides.replaceAll("<issuer>", iss).replaceAll("<tenant>", "tenant");
      const named = [...filledIn.matchAll(/`(JW[A-Z_]+=[^`]+)`/g)].map(([, setting]) => setting);
      expect(named.sort()).toEqual(
        Object.entries(more)
          .map(([key, value]) => `${key}=${value}`)
          .sort(),
      );
    },
  );
});
