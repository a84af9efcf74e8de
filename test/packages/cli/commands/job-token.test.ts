import http from "node:http";
import { jest } from "@jest/globals";
import { fetchWithJobToken } from "../../../../packages/cli/src/commands/job-token.ts";
import { listening } from "../../../support/listening.ts";

/* A job on GitHub whose token expires: svc asks for the next one, and never becomes someone else. */

const segment = (claims: object) => Buffer.from(JSON.stringify(claims)).toString("base64url");
const jobToken = (seconds: number, claims: object = {}) => {
  const exp = Math.floor(Date.now() / 1000) + seconds;
  const job = { iss: "https://ci.test", aud: "deployments", repository_id: "1", exp };
  return `${segment({})}.${segment({ ...job, ...claims })}.c2lnbmF0dXJl`;
};

/** What CI gives out, and the credential that arrives at the service. */
let issued: string;
let sent: string | undefined;
const server = http.createServer(({ url, headers }, response) => {
  if (url?.startsWith("/token")) return response.end(JSON.stringify({ value: issued }));
  sent = headers.authorization;
  return response.end();
});
let address: string;

beforeAll(async () => {
  address = await listening(server);
  process.env.ACTIONS_ID_TOKEN_REQUEST_URL = `${address}/token`;
  process.env.ACTIONS_ID_TOKEN_REQUEST_TOKEN = "t";
  jest.spyOn(process.stderr, "write").mockReturnValue(true);
});
afterAll(() => {
  delete process.env.ACTIONS_ID_TOKEN_REQUEST_URL;
  delete process.env.ACTIONS_ID_TOKEN_REQUEST_TOKEN;
  jest.restoreAllMocks();
});

test.each<["kept" | "replaced", number, string, object]>([
  ["replaced", 5, "of the same job", {}],
  ["kept", 60, "of the same job", {}],
  ["kept", 5, "of another repository", { repository_id: "2" }],
  ["kept", 5, "of another issuer, which has a repository with the same id", { iss: "https://other.test" }],
])("the token of a job is %s with %i s left, when the next one is %s", async (expected, secondsLeft, _, claims) => {
  const token = jobToken(secondsLeft);
  issued = jobToken(300, claims);
  await fetchWithJobToken(token)?.(address);
  expect(sent).toBe(`Bearer ${expected === "kept" ? token : issued}`);
});
