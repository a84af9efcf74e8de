import { join } from "node:path";
import { identityOf } from "../../../../packages/cli/src/commands/session.ts";

// By its path: it needs the types of a browser.
const { sessionOf } = await import(join(import.meta.dirname, "../../../../packages/console/src/data/session.ts"));

const segment = (claims: object) => Buffer.from(JSON.stringify(claims)).toString("base64url");
const jwt = `${segment({ alg: "HS256" })}.${segment({ sub: "alice", exp: 1_900_000_000 })}.c2lnbmF0dXJl`;

test("svc and the console describe a JWT by its subject and expiry", () => {
  const expires_at = "2030-03-17T17:46:40.000Z";
  expect(identityOf(jwt)).toEqual({ kind: "jwt", subject: "alice", expires_at });
  const strange = `a.${segment({ sub: 7, exp: 1e15 })}.c`;
  expect(identityOf(strange)).toEqual({ kind: "jwt", subject: null, expires_at: null });
  for (const pasted of [jwt, `  Bearer ${jwt} `]) {
    expect(sessionOf(pasted)).toEqual({ token: jwt, kind: "jwt", user: "alice", expiresAt: Date.parse(expires_at) });
  }
});

test.each(["svc_0123456789abcdef", "acme_0123456789", "old.0123456789ab", "old.acme.test.0123"])(
  "svc and the console describe %s as an API key: a service may accept keys of an earlier one",
  (key) => {
    expect(identityOf(key)).toEqual({ kind: "api_key", key_prefix: key.slice(0, 12) });
    expect(sessionOf(key)).toMatchObject({ kind: "key", user: undefined });
  },
);
