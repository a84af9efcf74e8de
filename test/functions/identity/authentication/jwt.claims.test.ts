import { settings } from "../../../../functions/foundation/platform/env.ts";
import {
  type ClaimRules,
  type Claims,
  subjectFromClaims,
  userIdOfIssuer,
  userIdOfProvider,
} from "../../../../functions/identity/authentication/jwt.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const second = now.getTime() / 1000;
const valid = { sub: "user-1", iat: second, exp: second + 3600 };
const { iat: _, ...withoutIat } = valid;

const rules: ClaimRules = { maxLifetimeSeconds: 3600, clockSkewSeconds: 60, requiresIssuedAt: false };

test("the defaults are a lifetime of an hour, a clock skew of a minute, and an optional iat", () => {
  const defaults = {
    maxLifetimeSeconds: settings.jwtMaxLifetimeSeconds(),
    clockSkewSeconds: settings.jwtClockSkewSeconds(),
    requiresIssuedAt: settings.jwtRequiresIssuedAt(),
  };
  expect(defaults).toEqual(rules);
});

test.each<[string, Claims]>([
  ["an hour left", valid],
  ["an hour, issued by a clock that is a minute ahead", { ...valid, iat: second + 60, exp: second + 3660 }],
  ["one second left", { ...valid, iat: second - 3599, exp: second + 1 }],
  ["half a second left", { ...valid, iat: second - 3599, exp: second + 0.5 }],
  ["no iat", withoutIat],
  ["no iat and the maximum lifetime left", { ...withoutIat, exp: second + 3660 }],
  ["an nbf a minute in the future", { ...valid, nbf: second + 60 }],
  ["an nbf in the past", { ...valid, nbf: 0 }],
  ["unknown claims", { ...valid, email: "user@example.com", admin: true, jti: "1", aud: ["x"] }],
])("accepts claims with %s", (_title, payload) => {
  expect(subjectFromClaims(payload, now, rules)).toBe("user-1");
});

test.each(["x", "auth0|1234", "u".repeat(255), "usér-\u{1F680}", "00000000-0000-0000-0000-000000000000"])(
  "returns the user id %s",
  (sub) => {
    expect(subjectFromClaims({ ...valid, sub }, now, rules)).toBe(sub);
  },
);

test.each<[string, Claims, string, RegExp]>([
  ["no sub", { ...valid, sub: undefined }, "invalid_token", /sub/],
  ["an empty sub", { ...valid, sub: "" }, "invalid_token", /sub/],
  ["a blank sub", { ...valid, sub: " \t" }, "invalid_token", /sub/],
  ["a sub that is a number", { ...valid, sub: 42 }, "invalid_token", /sub/],
  ["a sub that is null", { ...valid, sub: null }, "invalid_token", /sub/],
  ["a sub that is true", { ...valid, sub: true }, "invalid_token", /sub/],
  ["a sub that is an array", { ...valid, sub: ["user-1"] }, "invalid_token", /sub/],
  ["a sub that is an object", { ...valid, sub: { id: "user-1" } }, "invalid_token", /sub/],
  ["a sub of 256 characters", { ...valid, sub: "u".repeat(256) }, "invalid_token", /sub/],
  ["a sub with a newline", { ...valid, sub: "user-1\n" }, "invalid_token", /sub/],
  ["a sub with an escape sequence", { ...valid, sub: "\u001b[2Juser" }, "invalid_token", /sub/],
  ["a sub with a C1 control character", { ...valid, sub: "user\u009b1" }, "invalid_token", /sub/],
  ["a sub with a quote", { ...valid, sub: 'user","authType":"jwt' }, "invalid_token", /sub/],
  ["a sub with a backslash", { ...valid, sub: "user\\1" }, "invalid_token", /sub/],
  ["a sub with a zero byte", { ...valid, sub: "user\0" }, "invalid_token", /sub/],
  ["a sub that reverses the text", { ...valid, sub: "user\u202e1" }, "invalid_token", /sub/],
  ["a sub that is not valid Unicode", { ...valid, sub: "\ud800" }, "invalid_token", /sub/],
  ["no exp", { ...valid, exp: undefined }, "invalid_token", /exp/],
  ["an exp that is null", { ...valid, exp: null }, "invalid_token", /exp/],
  ["an exp that is a string", { ...valid, exp: String(valid.exp) }, "invalid_token", /exp/],
  ["an infinite exp", { ...valid, exp: Number.POSITIVE_INFINITY }, "invalid_token", /exp/],
  ["an exp that is NaN", { ...valid, exp: Number.NaN }, "invalid_token", /exp/],
  ["a negative exp", { ...valid, exp: -1 }, "invalid_token", /exp/],
  [
    "an exp in milliseconds",
    { ...valid, exp: now.getTime() + 3_600_000 },
    "invalid_token",
    /lifetime of the JWT is too long/,
  ],
  ["an exp that is now", { ...valid, iat: second - 3600, exp: second }, "token_expired", /expired/],
  ["an exp within the clock skew", { ...valid, iat: second - 3600, exp: second - 1 }, "token_expired", /expired/],
  ["an exp long ago", { ...valid, iat: 0, exp: 3600 }, "token_expired", /expired/],
  ["a lifetime of 3601 seconds", { ...valid, exp: second + 3601 }, "invalid_token", /lifetime of the JWT is too long/],
  [
    "a lifetime of a day that ends soon",
    { ...valid, iat: second - 86_000, exp: second + 400 },
    "invalid_token",
    /too long/,
  ],
  [
    "3661 seconds left and no iat",
    { ...withoutIat, exp: second + 3661 },
    "invalid_token",
    /lifetime of the JWT is too long/,
  ],
  ["an iat 61 seconds ahead", { ...valid, iat: second + 61, exp: second + 3600 }, "invalid_token", /future/],
  ["an iat that is a string", { ...valid, iat: String(second) }, "invalid_token", /iat/],
  ["an iat that is null", { ...valid, iat: null }, "invalid_token", /iat/],
  ["a negative iat", { ...valid, iat: -1 }, "invalid_token", /iat/],
  ["an nbf 61 seconds ahead", { ...valid, nbf: second + 61 }, "invalid_token", /not valid yet/],
  ["an nbf that is a string", { ...valid, nbf: "0" }, "invalid_token", /nbf/],
])("throws for claims with %s", (_title, payload, code, message) => {
  expect(() => subjectFromClaims(payload, now, rules)).toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) }),
  );
});

test.each<[ClaimRules, number, boolean]>([
  [{ ...rules, maxLifetimeSeconds: 600, clockSkewSeconds: 0 }, 600, true],
  [{ ...rules, maxLifetimeSeconds: 600, clockSkewSeconds: 0 }, 601, false],
  [{ ...rules, maxLifetimeSeconds: 600, clockSkewSeconds: 10 }, 600, true],
  [{ ...rules, maxLifetimeSeconds: 600, clockSkewSeconds: 10 }, 601, false],
])("with the rules %j, a lifetime of %d seconds is accepted: %s", (rules, lifetime, expected) => {
  const check = () => subjectFromClaims({ ...valid, exp: second + lifetime }, now, rules);
  if (expected) expect(check()).toBe("user-1");
  else expect(check).toThrow("lifetime of the JWT is too long");
});

test.each<[string, Partial<ClaimRules>, Claims, string | undefined]>([
  ["the issuer", { issuer: "https://idp" }, { iss: "https://idp" }, undefined],
  ["another issuer", { issuer: "https://idp" }, { iss: "https://idp/" }, "iss"],
  ["a list with the issuer", { issuer: "https://idp" }, { iss: ["https://idp"] }, "iss"],
  ["no issuer", { issuer: "https://idp" }, {}, "iss"],
  ["the audience", { audiences: ["api"] }, { aud: "api" }, undefined],
  ["the audience among others", { audiences: ["api"] }, { aud: ["web", 5, "api"] }, undefined],
  ["one of two audiences", { audiences: ["web", "mobile"] }, { aud: "mobile" }, undefined],
  ["none of two audiences", { audiences: ["web", "mobile"] }, { aud: "web,mobile" }, "aud"],
  ["another audience", { audiences: ["api"] }, { aud: "apis" }, "aud"],
  ["no audience", { audiences: ["api"] }, {}, "aud"],
  ["no audiences", { audiences: ["api"] }, { aud: [] }, "aud"],
  ["an audience in an object", { audiences: ["api"] }, { aud: { api: true } }, "aud"],
  ["the client as the audience", { audiences: ["web"], audienceClaim: "client_id" }, { client_id: "web" }, undefined],
  ["another client", { audiences: ["web"], audienceClaim: "client_id" }, { client_id: "cli" }, "client_id"],
  ["a client of another audience", { audiences: ["web"], audienceClaim: "azp" }, { azp: "web", aud: "other" }, "aud"],
  ["a client and no audience claim", { audiences: ["web"] }, { client_id: "web", azp: "web" }, "aud"],
  ["both", { issuer: "https://idp", audiences: ["api"] }, { iss: "https://idp", aud: "api" }, undefined],
  ["one of both", { issuer: "https://idp", audiences: ["api"] }, { iss: "https://idp", aud: "web" }, "aud"],
  ["any, when none is configured", {}, { iss: "https://other", aud: "web" }, undefined],
])("claims with %s, for the rules %j and the claims %j, are rejected for: %s", (_title, more, claims, rejected) => {
  const check = () => subjectFromClaims({ ...valid, aud: undefined, ...claims }, now, { ...rules, ...more });
  if (rejected === undefined) return expect(check()).toBe("user-1");
  return expect(check).toThrow(expect.objectContaining({ code: "invalid_token", claim: rejected }));
});

test("the error message contains no value of a claim", () => {
  const check = () => subjectFromClaims({ ...valid, sub: { secret: "value" } }, now, rules);
  expect(check).toThrow(
    "The sub claim of the JWT is missing or invalid. A user id has up to 255 printable characters, without backslashes and double quotes.",
  );
});

test("with requiresIssuedAt, claims without an iat are rejected, and others are accepted", () => {
  const strict = { ...rules, requiresIssuedAt: true };
  expect(() => subjectFromClaims(withoutIat, now, strict)).toThrow("The iat claim of the JWT is missing or invalid.");
  expect(subjectFromClaims(valid, now, strict)).toBe("user-1");
});

describe("the user id", () => {
  const issuer = "https://idp.example.com/";

  test("of an issuer's subject begins with the issuer", () => {
    expect(userIdOfIssuer("user-1", issuer)).toBe("https://idp.example.com/#user-1");
  });

  test("of the provider's subject is the subject", () => {
    for (const sub of ["user-1", "#user-1", issuer, "https://idp.example.com#user-1"]) {
      expect(userIdOfProvider(sub, issuer)).toBe(sub);
    }
  });

  test("of an issuer's subject is never one of the provider's", () => {
    expect(() => userIdOfProvider(userIdOfIssuer("user-1", issuer), issuer)).toThrow("The sub claim of the JWT");
  });

  test("has at most 255 characters, the issuer included", () => {
    const room = 255 - issuer.length - 1;
    expect(userIdOfIssuer("u".repeat(room), issuer)).toHaveLength(255);
    expect(() => userIdOfIssuer("u".repeat(room + 1), issuer)).toThrow("The sub claim of the JWT");
  });
});
