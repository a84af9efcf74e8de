import { createHash, generateKeyPairSync, type KeyObject } from "node:crypto";
import http from "node:http";
import { jest } from "@jest/globals";
import jwt from "jsonwebtoken";
import { listening } from "../support/listening.ts";
import { useService } from "../support/service.ts";

/* A provider that others wrote: its sign-in, its discovery document, its keys and its tokens, over plain http on this machine. */

const API = "https://api.example.com";
const CALLBACK = "https://app.example.com/callback";
const service = useService();
let issuer: string;
let jwksUri: string;
const before = { ...process.env };

const jwkOf = (alg: string, { privateKey }: { privateKey: KeyObject }) => ({
  ...privateKey.export({ format: "jwk" }),
  alg,
  use: "sig",
});

beforeAll(async () => {
  const server = http.createServer();
  issuer = await listening(server);
  // It prints what to change before production.
  for (const level of ["warn", "info"] as const) jest.spyOn(console, level).mockImplementation(() => {});
  // Without types: none are published for this release.
  const { Provider } = await import("oidc-provider" as string);
  // The last part of the resource names the algorithm.
  const info = (_context: unknown, resource: string) => ({
    scope: "api",
    audience: API,
    accessTokenFormat: "jwt",
    accessTokenTTL: 3_600,
    jwt: { sign: { alg: resource.split("/").at(-1) } },
  });
  const provider = new Provider(issuer, {
    clients: [{ client_id: "web", client_secret: "secret", redirect_uris: [CALLBACK] }],
    jwks: {
      keys: [
        jwkOf("RS256", generateKeyPairSync("rsa", { modulusLength: 2_048 })),
        jwkOf("ES256", generateKeyPairSync("ec", { namedCurve: "P-256" })),
        jwkOf("Ed25519", generateKeyPairSync("ed25519")),
      ],
    },
    enabledJWA: { idTokenSigningAlgValues: ["RS256"] },
    scopes: ["openid", "api"],
    cookies: { keys: ["a key"] },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    features: { resourceIndicators: { enabled: true, getResourceServerInfo: info, useGrantedResource: () => true } },
  });
  server.on("request", provider.callback());
  const discovered = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  jwksUri = (discovered as { jwks_uri: string }).jwks_uri;
});
beforeEach(() => {
  Object.assign(process.env, { JWKS_ISSUER: issuer, JWKS_AUDIENCE: API, JWKS_URI: jwksUri, JWKS_SHARES_USERS: "true" });
});
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
});

/** Signs a user in, as a browser and then the client do. */
async function tokensOf(user: string, alg: string): Promise<{ access_token: string; id_token: string }> {
  const verifier = "v".repeat(43);
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  const query = new URLSearchParams({
    client_id: "web",
    response_type: "code",
    redirect_uri: CALLBACK,
    scope: "openid api",
    resource: `${API}/${alg}`,
    code_challenge: challenge,
    code_challenge_method: "S256",
  });
  const cookies = new Map<string, string>();
  let location = `${issuer}/auth?${query}`;
  for (let form: string | undefined; !location.startsWith(CALLBACK); ) {
    const headers = { cookie: [...cookies].map((pair) => pair.join("=")).join("; ") };
    const body = form === undefined ? null : new URLSearchParams({ prompt: form, login: user, password: "x" });
    const response = await fetch(location, { method: body ? "POST" : "GET", body, headers, redirect: "manual" });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const next = response.headers.get("location");
    const page = await response.text();
    form = next === null ? /name="prompt" value="(\w+)"/.exec(page)?.[1] : undefined;
    if (next === null && form === undefined) throw new Error(`${response.status} ${page.slice(0, 300)}`);
    if (next !== null) location = new URL(next, issuer).href;
  }
  const code = new URL(location).searchParams.get("code") ?? "";
  const authorization = `Basic ${Buffer.from("web:secret").toString("base64")}`;
  const body = {
    grant_type: "authorization_code",
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
    resource: `${API}/${alg}`,
  };
  const response = await fetch(`${issuer}/token`, {
    method: "POST",
    headers: { authorization },
    body: new URLSearchParams(body),
  });
  return response.json() as Promise<{ access_token: string; id_token: string }>;
}

const current = async (token: string) => (await service.as(token).get("/v1/api-keys/current")).body;

test.each(["RS256", "ES256", "Ed25519"])(
  "signs in a user with an access token signed with %s, at its documented address",
  async (alg) => {
    expect(jwksUri).toBe(`${issuer}/jwks`);
    const { access_token } = await tokensOf("alice", alg);
    expect(jwt.decode(access_token, { complete: true })).toMatchObject({
      header: { alg, typ: "at+jwt" },
      payload: { iss: issuer, aud: API, sub: "alice" },
    });
    expect((await current(access_token)).data).toMatchObject({ type: "jwt", user_id: "alice" });
    process.env.JWKS_AUDIENCE = `${API}/`;
    expect((await current(access_token)).error.message).toMatch("another audience (aud)");
  },
);

test("signs in a user with an ID token if its client is one of the audiences", async () => {
  const { id_token } = await tokensOf("alice", "RS256");
  expect((await current(id_token)).error.code).toBe("invalid_token");
  process.env.JWKS_AUDIENCE = `${API},web`;
  expect((await current(id_token)).data).toMatchObject({ type: "jwt", user_id: "alice" });
});
