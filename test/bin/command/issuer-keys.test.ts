import { generateKeyPairSync } from "node:crypto";
import http from "node:http";
import { missingKeys } from "../../../bin/command/issuer-keys.ts";
import { listening } from "../../support/listening.ts";

const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const responses: Record<string, object> = {
  "/.well-known/jwks.json": { keys: [publicKey.export({ format: "jwk" })] },
  "/encryption": { keys: [{ ...publicKey.export({ format: "jwk" }), use: "enc" }] },
};
const server = http.createServer(({ url = "" }, response) => {
  response.statusCode = url in responses ? 200 : 404;
  response.end(JSON.stringify(responses[url]));
});
let issuer: string;
beforeAll(async () => {
  issuer = await listening(server);
});
const before = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
});

test.each<[string, string | undefined, RegExp | undefined]>([
  ["the default address of its keys", undefined, undefined],
  [
    "an address without keys",
    "/jwks",
    /^No JWT of JWKS_ISSUER can be verified: .*404.* jwks_uri in http:.*configuration: set JWKS_URI\.$/,
  ],
  ["an address whose keys verify nothing", "/encryption", /has no key for RS256, ES256 or EdDSA\./],
])("an issuer with %s", async (_title, path, warning) => {
  const uri = path === undefined ? {} : { JWKS_URI: issuer + path };
  Object.assign(process.env, { JWKS_ISSUER: issuer, JWKS_AUDIENCE: "api", JWKS_SHARES_USERS: "true", ...uri });
  const found = await missingKeys();
  if (warning === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(warning);
});

test("without an issuer there is nothing to warn of", async () => {
  expect(await missingKeys()).toBeUndefined();
});
