/*
 * JWTs of identity providers, and of public reports about services that accept them: what the provider signs, and what this service must
 * do. A new report is a new row.
 */

export interface Given {
  /** Signed with the key of each of these algorithms; absent = HS256 and RS256. */
  algs?: string[];
  /** Added to `alg` and `kid`. */
  header?: object;
  /** Instead of the usual settings; undefined = not set. */
  settings?: Settings;
  /** Entries of the key set before its own. */
  keysBefore?: unknown[];
  /** Added to its own keys. */
  keys?: object;
  /** What is done to the signature. */
  signature?: "by another key" | "with the public key as the secret" | "in DER" | "of 1,024 bits";
}
type Settings = Record<string, string | undefined>;
/** Instead of the usual ones; undefined = absent. `exp`, `iat` and `nbf` below 100,000 are seconds from now. */
export type Claims = Record<string, unknown>;
/** `accepted`, the code of the error, or the claim that it names. */
export type Outcome = "accepted" | "invalid_token" | "token_expired" | `claim ${string}`;
/** Where it was reported or documented, and what it is about. */
export type TokenRow = [source: string, about: string, Outcome, Claims, Given?];

export const ISSUER = "https://idp.example.com";
const [hs256, rs256, all] = [["HS256"], ["RS256"], ["HS256", "RS256", "ES256", "EdDSA"]];

/** A provider's name, JWKS_ISSUER, JWKS_AUDIENCE, further settings, and its claims beside the usual ones. */
export type Provider = [name: string, issuer: string, audience: string, Settings, Claims, Given?];

const jwt = { algs: rs256, header: { typ: "JWT" } };
const lives = (seconds: number) => ({ JWT_MAX_LIFETIME_SECONDS: String(seconds) });
const keysAt = (JWKS_URI: string) => ({ JWKS_URI });
const entra = "https://login.microsoftonline.com/tenant";
const app = "https://app.example.com";
const certs = "https://www.googleapis.com";
const firebaseKeys = `${certs}/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com`;

/** The table "Identity providers" of docs/configuration.md, with names instead of `<…>`, and a token of each. */
export const providers: Provider[] = [
  [
    "Supabase",
    "https://ref.supabase.co/auth/v1",
    "authenticated",
    {},
    { role: "authenticated", is_anonymous: false, session_id: "1", amr: [{ method: "password", timestamp: 1 }] },
    { ...jwt, algs: ["ES256"] },
  ],
  [
    "Auth0",
    "https://tenant.auth0.com/",
    "https://api.example.com",
    lives(86_400),
    { sub: "auth0|1", aud: ["https://api.example.com", "https://x/userinfo"], azp: "web", scope: "a b", exp: 86_400 },
    jwt,
  ],
  [
    "Cognito",
    "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_pool",
    "web-client,mobile-client",
    { JWKS_AUDIENCE_CLAIM: "client_id", JWT_REQUIRED_CLAIMS: '{"token_use":"access"}' },
    { aud: undefined, client_id: "mobile-client", token_use: "access", scope: "openid", "cognito:groups": ["g"] },
  ],
  [
    "Clerk",
    "https://name.clerk.accounts.dev",
    app,
    { JWKS_AUDIENCE_CLAIM: "azp" },
    { aud: undefined, azp: app, nbf: -10, exp: 60, sid: "sess_1", v: 2, fva: [7, -1], o: { id: "org_1" } },
    jwt,
  ],
  [
    "Keycloak",
    "https://sso.example.com/realms/main",
    "deployments",
    keysAt("https://sso.example.com/realms/main/protocol/openid-connect/certs"),
    {
      aud: ["deployments", "account"],
      typ: "Bearer",
      azp: "web",
      acr: "1",
      realm_access: { roles: ["user"] },
      exp: 300,
    },
    jwt,
  ],
  [
    "Okta",
    "https://org.okta.com/oauth2/default",
    "api://default",
    keysAt("https://org.okta.com/oauth2/default/v1/keys"),
    {
      ver: 1,
      jti: "AT.1",
      cid: "web",
      uid: "00u1",
      scp: ["openid", "profile"],
      auth_time: 1,
      sub: "alice@example.com",
    },
  ],
  [
    "Entra ID",
    `${entra}/v2.0`,
    "11111111-1111-4111-8111-111111111111",
    { ...keysAt(`${entra}/discovery/v2.0/keys`), ...lives(5_700) },
    { iat: -300, nbf: -300, exp: 5_400, ver: "2.0", oid: "1", tid: "tenant", azp: "2", azpacr: "0", scp: "access" },
    jwt,
  ],
  [
    "Google",
    "https://accounts.google.com",
    "web,ios",
    keysAt(`${certs}/oauth2/v3/certs`),
    { aud: "ios", azp: "ios" },
    jwt,
  ],
  [
    "Firebase",
    "https://securetoken.google.com/project",
    "project",
    keysAt(firebaseKeys),
    { user_id: "user-1", auth_time: 1, firebase: { identities: {}, sign_in_provider: "password" } },
    jwt,
  ],
];

const cognito = { algs: rs256, settings: { JWKS_AUDIENCE: "web", JWKS_AUDIENCE_CLAIM: "client_id" } };
const clerk = { algs: rs256, settings: { JWKS_AUDIENCE: app, JWKS_AUDIENCE_CLAIM: "azp" } };
const two = { settings: { JWKS_AUDIENCE: "web,mobile", JWT_AUDIENCE: "web, mobile" } };
const anyAudience = { algs: hs256, settings: { JWT_AUDIENCE: undefined } };
const x25519 = { kty: "OKP", crv: "X25519", x: "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo", kid: "RS256" };
const mlDsa = { kty: "AKP", alg: "ML-DSA-44", pub: "AAAA", kid: "RS256" };
const oct = { kty: "oct", k: "AAAA", kid: "RS256" };
const typ = (type: string) => ({ header: { typ: type } });
const before = (...keysBefore: unknown[]) => ({ algs: rs256, keysBefore });
const confused: Given = { algs: rs256, header: { alg: "HS256" }, signature: "with the public key as the secret" };

export const tokenRows: TokenRow[] = [
  ["auth0/node-jsonwebtoken#53", "another audience", "claim aud", { aud: "other" }, { algs: all }],
  ["trinodb/trino#15236", "another issuer", "claim iss", { iss: "https://other.example.com" }, { algs: all }],
  ["cloudera/hue#2505", "no audience", "claim aud", { aud: undefined }],
  ["RFC 7519, 4.1.1", "no issuer", "claim iss", { iss: undefined }],
  ["auth0-blog/reactjs-authentication-tutorial#6", "a slash after the audience", "claim aud", { aud: "api/" }],
  ["jpadilla/pyjwt#1200", "a slash after the issuer", "claim iss", { iss: `${ISSUER}/` }],
  ["jpadilla/pyjwt#1200", "http instead of https", "claim iss", { iss: "http://idp.example.com" }],
  ["awslabs/aws-jwt-verify#200", "a list of scopes", "accepted", { scope: ["openid", "api"] }, { algs: all }],
  ["awslabs/aws-jwt-verify#200", "a jti that is a number", "accepted", { jti: 7 }],
  ["DuendeArchive/IdentityServer4#4030", "a list in an access token", "accepted", { scope: ["a"] }, typ("at+jwt")],
  ["spring-attic/spring-authorization-server#877", "a list with one scope", "accepted", { scope: ["openid"] }],
  ["PrefectHQ/fastmcp#3739", "client_id without a setting", "claim aud", { aud: undefined, client_id: "api" }],
  ["awslabs/aws-support-tools#97", "client_id", "accepted", { aud: undefined, client_id: "web" }, cognito],
  ["buccfer/aws-cognito-express#18", "another one", "claim client_id", { aud: undefined, client_id: "x" }, cognito],
  ["buccfer/aws-cognito-express#18", "an ID token", "accepted", { aud: "web" }, cognito],
  ["AWS, JWT authorizers", "client_id beside aud", "claim aud", { aud: "other", client_id: "web" }, cognito],
  ["clerk/javascript#978", "azp, for a minute", "accepted", { aud: undefined, azp: app, exp: 60 }, clerk],
  ["clerk/javascript#978", "azp of another page", "claim azp", { aud: undefined, azp: "https://evil.example" }, clerk],
  ["opensearch-project/security#3723", "the second of two audiences", "accepted", { aud: "mobile" }, two],
  ["auth0/symfony#54", "a list with the audience", "accepted", { aud: ["other", "api"] }],
  ["OCA/server-auth#938", "a list with the audience alone", "accepted", { aud: ["api"] }],
  [
    "damienbod/angular-auth-oidc-client#582",
    "Oracle's own URL in the list",
    "accepted",
    { aud: ["https://idcs/", "api"] },
  ],
  ["panva/openid-client#280", "two audiences without azp", "accepted", { aud: ["api", "mobile"], azp: undefined }],
  ["keycloak/keycloak#52631", "an empty list", "claim aud", { aud: [] }],
  ["nextcloud/user_oidc#856", "azp beside another audience", "claim aud", { aud: "https://other.local", azp: "api" }],
  ["keycloak/keycloak#5719", "azp without an audience", "claim aud", { aud: undefined, azp: "api" }],
  ["jpadilla/pyjwt#205", "a list without it", "claim aud", { aud: ["other", "apis"] }],
  ["benmcollins/libjwt#188", "a fraction in exp", "accepted", { exp: 3_599.5 }],
  ["envoyproxy/envoy#28201", "a fraction in iat", "accepted", { iat: -0.25, exp: 60 }],
  ["panva/openid-client#263", "a fraction in nbf", "accepted", { nbf: -1.5 }],
  ["auth0/node-jsonwebtoken#478", "an exp that is text", "claim exp", { exp: "9999999999" }],
  ["lepture/authlib#277", "an iat that is null", "claim iat", { iat: null }],
  ["auth0/node-jsonwebtoken#141", "an iat 5 s ahead", "accepted", { iat: 5, exp: 600 }],
  ["blake-simpson/expo-jwt#7", "an nbf 55 s ahead", "accepted", { nbf: 55 }],
  ["jwtk/jjwt#61", "an iat 70 s ahead", "claim iat", { iat: 70, exp: 600 }],
  ["jwtk/jjwt#61", "an nbf 70 s ahead", "claim nbf", { nbf: 70 }],
  ["auth0/node-jsonwebtoken#479", "expired a second ago", "token_expired", { iat: -60, exp: -1 }],
  ["auth0/node-jsonwebtoken#479", "expired within the clock skew", "token_expired", { iat: -600, exp: -30 }],
  ["Auth0, access token lifetime", "a lifetime of a day", "claim exp", { exp: 86_400 }],
  ["getnora-io/nora#995", "a lifetime of an hour", "accepted", { iat: -60, exp: 3_540 }],
  ["getnora-io/nora#995", "a lifetime of an hour and 5 s", "claim exp", { iat: -60, exp: 3_545 }],
  ["PrefectHQ/fastmcp#4515", "unknown keys in the set", "accepted", {}, before(mlDsa, x25519, oct)],
  ["jwt/ruby-jwt#743", "a key without a kty, and null", "accepted", {}, before({ kid: "RS256" }, null)],
  [
    "keycloak/keycloak#15114",
    "a key for encryption with the kid",
    "accepted",
    {},
    before({ use: "enc", kid: "RS256" }),
  ],
  ["lestrrat-go/jwx#879", "keys without alg", "accepted", {}, { algs: rs256, keys: { alg: undefined } }],
  ["dotkom/onlineweb4#2982", "RSA of 1,024 bits", "invalid_token", {}, { algs: rs256, signature: "of 1,024 bits" }],
  ["auth0/node-jsonwebtoken#814", "ECDSA in DER", "invalid_token", {}, { algs: ["ES256"], signature: "in DER" }],
  ["RFC 9864", "the alg Ed25519", "accepted", {}, { algs: ["EdDSA"], header: { alg: "Ed25519" } }],
  ["RFC 8725, 2.1", "the alg none", "invalid_token", {}, { header: { alg: "none" } }],
  ["RFC 8725, 2.1", "HS256 with the public key", "invalid_token", {}, confused],
  ["RFC 7515, 4.1.11", "a critical header", "invalid_token", {}, { header: { crit: ["b64"], b64: false } }],
  ["RFC 8725, 3.3", "another key", "invalid_token", { aud: "other" }, { algs: all, signature: "by another key" }],
  ["kortix-ai/suna#6698", "a kid with +/=", "accepted", {}, { algs: hs256, header: { kid: "IBZFPqpuE0oC+hnZ/=" } }],
  ["supabase/supabase#42037", "the anon key", "claim sub", { sub: undefined, role: "anon", exp: 99_999 }, anyAudience],
  ["supabase/supabase#42037", "the service key", "claim role", { role: "service_role" }, anyAudience],
  ["supabase/supabase#47621", "HS256, then ES256", "accepted", { sub: "b8c0c4b5" }, { algs: ["HS256", "ES256"] }],
  ["supabase/auth#68", "an anonymous visitor", "claim is_anonymous", { is_anonymous: true, role: "authenticated" }],
  ["Flowfin/jellyfin-plugin-sso#1317", "a logout token by its type", "invalid_token", {}, typ("logout+jwt")],
  ["Flowfin/jellyfin-plugin-sso#1317", "a logout token by its events", "claim events", { events: {}, sid: "1" }],
  ["auth0/node-jsonwebtoken#1004", "a security event", "invalid_token", {}, typ("secevent+jwt")],
  ["apache/cxf#3294", "a proof of possession", "invalid_token", {}, typ("dpop+jwt")],
  ["serverless/serverless#1991", "a sub of many parts", "accepted", { sub: "samlp|adfs|o'brien#1%20@a.example" }],
  ["serverless/serverless#1991", "a sub with a double quote", "claim sub", { sub: 'waad|O"Brien' }],
  ["serverless/serverless#1991", "a sub with a backslash", "claim sub", { sub: "CORP\\jdoe" }],
  ["dherault/serverless-offline#1376", "a sub with an emoji", "accepted", { sub: "user-\u{1F680}" }],
  ["travisghansen/external-auth-server#161", "a sub that is not ASCII", "accepted", { sub: "\u0141ukasz-\u0418" }],
  ["RFC 7519, 4.1.2", "a sub that is a number", "claim sub", { sub: 42 }],
  ["Keycloak and Entra, groups", "more than 8 KB", "invalid_token", { groups: "x".repeat(8_000) }],
];
