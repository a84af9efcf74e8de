import { randomBytes, randomUUID } from "node:crypto";
import http from "node:http";
import { json } from "node:stream/consumers";
import { SettingError } from "../../../../functions/foundation/platform/errors.ts";
import { handler as getPublicKeys } from "../../../../functions/webhooks/receiver/get-public-keys.ts";
import { projectKey } from "../../../../functions/webhooks/receiver/project-key.ts";
import { publicKeys, signingOf } from "../../../../functions/webhooks/receiver/project-keys.ts";
import { listening } from "../../../support/listening.ts";

/* The keys of projects while the secret of the stage is rotated in Secrets Manager, of which there is no embedded engine. */

const [first, second, third] = [1, 2, 3].map(() => randomBytes(32).toString("hex")) as [string, string, string];
const projectId = randomUUID();
const kidOf = (secret: string): string => projectKey(secret, projectId).jwk.kid;
const at = (seconds: number): Date => new Date(Date.parse("2026-03-01T12:00:00Z") + seconds * 1000);

interface Versions {
  AWSCURRENT?: string;
  AWSPREVIOUS?: string;
  AWSPENDING?: string;
}
/** The secret by stage; undefined = it cannot be read. */
let versions: Versions | undefined;
const server = http.createServer(async (request, response) => {
  const { SecretId, VersionStage } = (await json(request)) as { SecretId: string; VersionStage: keyof Versions };
  const SecretString = versions?.[VersionStage];
  const __type = versions ? "ResourceNotFoundException" : "AccessDeniedException";
  const result = SecretString ? { ARN: SecretId, SecretString } : { __type };
  const headers = { "content-type": "application/x-amz-json-1.1" };
  response.writeHead(SecretString ? 200 : 400, headers).end(JSON.stringify(result));
});
beforeAll(async () => {
  process.env.AWS_ENDPOINT_URL_SECRETS_MANAGER = await listening(server);
});
beforeEach(() => {
  process.env.SIGNATURE_SECRET_ARN = `arn:aws:secretsmanager:us-east-1:000000000000:secret:signature-${randomUUID()}`;
});

const kids = async (now: Date) => (await publicKeys(projectId, now)).map(({ kid }) => kid);
const signingKid = async (now: Date) => {
  const signing = await signingOf({ project_id: projectId, url: "https://a.example/", signatures: ["ed25519"] }, now);
  return signing?.key.jwk.kid;
};

test("the directory has the key that signs, the one that will and the one that did, and the first of them signs", async () => {
  versions = { AWSCURRENT: second, AWSPREVIOUS: first, AWSPENDING: third };
  expect(await kids(at(0))).toEqual([second, third, first].map(kidOf));
  expect(await signingKid(at(0))).toBe(kidOf(second));
});

test("a rotation step by step, each five minutes after the last: no key signs that the directory did not have before", async () => {
  const seen: unknown[] = [];
  const steps: Versions[] = [
    { AWSCURRENT: first },
    { AWSCURRENT: first, AWSPENDING: second },
    { AWSCURRENT: second, AWSPREVIOUS: first },
  ];
  for (const [step, stored] of steps.entries()) {
    versions = stored;
    seen.push([await signingKid(at(step * 300)), await kids(at(step * 300))]);
  }
  const [one, other] = [first, second].map(kidOf);
  expect(seen).toEqual([
    [one, [one]],
    [one, [one, other]],
    [other, [other, one]],
  ]);
});

test("a secret that is pending and current has one key", async () => {
  versions = { AWSCURRENT: first, AWSPENDING: first };
  expect(await kids(at(0))).toEqual([kidOf(first)]);
});

test("a secret without a value is a mistake of the operator, which names it", async () => {
  versions = {};
  const message = `The secret ${process.env.SIGNATURE_SECRET_ARN} has no value.`;
  await expect(signingKid(at(0))).rejects.toEqual(new SettingError(message));
});

test("while the secret cannot be read, the directory returns 503 and when to ask again", async () => {
  versions = undefined;
  const request = { queryStringParameters: { project_id: projectId }, headers: {}, requestContext: { requestId: "r" } };
  const { statusCode, headers, body } = await getPublicKeys(request as never);
  expect({ statusCode, headers, error: JSON.parse(body).error.code }).toMatchObject({
    statusCode: 503,
    headers: { "Retry-After": "5" },
    error: "service_unavailable",
  });
  expect(headers).not.toMatchObject({ "Cache-Control": expect.stringContaining("public") });
});
