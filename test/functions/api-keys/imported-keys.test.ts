import { importedKeyKinds, kindOfKey } from "../../../functions/api-keys/imported-keys.ts";
import { readCredential } from "../../../functions/auth/credential.ts";
import { SettingError } from "../../../functions/platform/errors.ts";

const set = (kinds: unknown) => {
  process.env.IMPORTED_KEYS = JSON.stringify(kinds);
};
afterEach(() => {
  delete process.env.IMPORTED_KEYS;
});
const kind = (prefix: string) => ({ prefix, hash: "sha256" });
const kindOf = (token: string) => readCredential({ authorization: [`Bearer ${token}`] })?.kind;

test("without the setting IMPORTED_KEYS there are none, and only svc_ begins an API key", () => {
  expect(importedKeyKinds()).toEqual([]);
  expect(["svc_1", "svcp_1", "acme_1"].map(kindOf)).toEqual(["api_key", "jwt", "jwt"]);
});

test("a token that begins with one of the prefixes is an API key, and any other is as before", () => {
  set([kind("acme_"), { prefix: "old.", hash: "hmac-sha256" }]);
  const tokens = ["acme_1", "old.1", "svc_1", "svcp_1", "acme-1", "Acme_1", "eyJ0.a.b"];
  expect(tokens.map(kindOf)).toEqual(["api_key", "api_key", "api_key", "jwt", "jwt", "jwt", "jwt"]);
  expect(kindOfKey("old.1")).toEqual({ prefix: "old.", hash: "hmac-sha256" });
});

test("a change of the setting applies at once", () => {
  set([kind("acme_")]);
  expect(kindOf("acme_1")).toBe("api_key");
  set([kind("beta_")]);
  expect(kindOf("acme_1")).toBe("jwt");
});

test.each([
  ["that is not JSON", "[", "IMPORTED_KEYS cannot be used. It is not JSON. Example: "],
  ["that is no list", "{}", "must be a list"],
  ["with an unknown hash", [{ prefix: "acme_", hash: "md5" }], "0.hash must be sha256 or hmac-sha256"],
  ["with an unknown field", [{ ...kind("acme_"), pepper: "x" }], "0.pepper is not a known field"],
  ["without a prefix", [{ hash: "sha256" }], "0.prefix must be 2 to 20 characters"],
  ["with a prefix of one character", [kind("a")], "0.prefix must be 2 to 20 characters"],
  ["with a prefix of 21 characters", [kind("a".repeat(21))], "0.prefix must be 2 to 20 characters"],
  ["with a space in a prefix", [kind("acme ")], "0.prefix must be 2 to 20 characters"],
  ["with the prefix of this service", [kind("svc_")], "0.prefix must be"],
  ["with the prefix of partners", [kind("svcp_")], "0.prefix must be"],
  ["with the beginning of svc_", [kind("sv")], "0.prefix must be"],
  ["with a longer prefix than svc_", [kind("svc_live_")], "0.prefix must be"],
  ["with the beginning of a JWT", [kind("eyJhbGciOi")], "0.prefix must be"],
  [
    "with a prefix that begins with another",
    [kind("acme_live_"), kind("acme_")],
    "must have prefixes that do not begin",
  ],
  ["with the same prefix twice", [kind("acme_"), kind("acme_")], "must have prefixes that do not begin"],
  ["with 11 kinds", Array.from({ length: 11 }, (_, n) => kind(`k${n + 10}_`)), "must have 1 to 10 entries"],
])("IMPORTED_KEYS %s stops with an error that names it", (_title, value, message) => {
  process.env.IMPORTED_KEYS = typeof value === "string" ? value : JSON.stringify(value);
  expect(importedKeyKinds).toThrow(SettingError);
  expect(importedKeyKinds).toThrow(message);
});
