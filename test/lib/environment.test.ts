import { Token } from "aws-cdk-lib";
import { functionRows } from "../../functions/foundation/manifest/function-rows.ts";
import { protocols } from "../../functions/foundation/manifest/protocols.ts";
import { workers } from "../../functions/foundation/manifest/workers.ts";
import { environmentFor } from "../../lib/environment.ts";
import type { StageResources } from "../../lib/grants.ts";
import { InvalidStageError, type Stage } from "../../lib/stage.ts";
import { stageNamed } from "../../lib/stages.ts";
import { dev, SynthesizedStack } from "./synthesized.ts";

const every = new SynthesizedStack("everyOption");
const variablesOf = (stack: SynthesizedStack, id: string): Record<string, unknown> =>
  stack.functionFor(id).Properties.Environment.Variables;

const credentialSettings = {
  JWT_ISSUER: "https://id.example.com",
  JWT_AUDIENCE: "platform",
  JWT_MAX_LIFETIME_SECONDS: "1800",
  JWT_REQUIRES_ISSUED_AT: "true",
  JWT_REQUIRED_CLAIMS: '{"email_verified":true,"role":["member","owner"]}',
  JWKS_ISSUER: "https://sso.example.com/",
  JWKS_URI: "https://sso.example.com/keys",
  JWKS_AUDIENCE: "web,mobile",
  JWKS_AUDIENCE_CLAIM: "azp",
  JWKS_SHARES_USERS: "true",
  KEEPS_DATA: "true",
};
const deliverySettings = { RETRY_SCHEDULE: "1,60,3600", DISABLE_AFTER_SECONDS: "86400" };
const workflowSettings = {
  OIDC_ISSUERS: JSON.stringify([
    { name: "github", audience: "https://api.example.com" },
    {
      name: "gitlab-internal",
      issuer: "https://gitlab.example.com",
      audience: "https://api.example.com",
      claims: "gitlab",
      jwks_uri: "https://gitlab.example.com/keys",
    },
  ]),
};
const verifiers = ["auth-authorizer", "credentials-verify"];
const usersOfCredentials = [...verifiers, "getResourceMetadata"];
const usersOfWorkflows = [...verifiers, "createTrustedWorkflow"];
const permissionSettings = { PERMISSIONS: '[{"name":"registry:push","description":"push images"}]' };
const usersOfPermissions = [
  "createApiKey",
  "getCurrentCredential",
  "api-keys-import",
  "api-keys-provision",
  "credentials-verify",
  "createServiceAccountApiKey",
  "createTrustedWorkflow",
  "decideSignIn",
];
const importSettings = { IMPORTED_KEYS: '[{"prefix":"acme_","hash":"sha256"},{"prefix":"old_","hash":"hmac-sha256"}]' };
const senderSettings = { LEGACY_SIGNATURE_HEADER: '{"name":"X-Acme-Signature","until":"2027-01-31"}' };
const usersOfPepper = [...verifiers, "revokeCredentials"];
const usersOfImports = [...usersOfPepper, "api-keys-import"];
const pepperSettings = {
  IMPORTED_KEYS_PEPPER_ARN: "arn:aws:secretsmanager:eu-west-1:111122223333:secret:pepper-AbCdEf",
};
/** The functions that read or write deliveries. */
const usersOfDeliveries = [
  "attempts-send",
  "attempts-send-slow",
  "certifyWebhook",
  "getCertification",
  "deliveries-fan-out",
  "getDelivery",
  "getWebhookStats",
  "listDeliveries",
  "listProjectDeliveries",
  "deliveries-publish-notifications",
  "recoverDeliveries",
  "redeliver",
  "deliveries-replay",
  "sendTestDelivery",
  "getWebhook",
  "listWebhooks",
  "updateWebhook",
];

test.each(functionRows)("$id gets the options of the stage that it reads, and no others", ({ id }) => {
  const names = Object.keys({
    ...{ ...credentialSettings, ...deliverySettings, ...workflowSettings, ...permissionSettings },
    ...{ ...importSettings, ...pepperSettings, ...senderSettings },
  });
  const settings = Object.entries(variablesOf(every, id)).filter(([name]) => names.includes(name));
  expect(Object.fromEntries(settings)).toEqual({
    ...(usersOfCredentials.includes(id) && credentialSettings),
    ...(usersOfDeliveries.includes(id) && deliverySettings),
    ...(usersOfWorkflows.includes(id) && workflowSettings),
    ...(usersOfPermissions.includes(id) && permissionSettings),
    ...(usersOfImports.includes(id) && importSettings),
    ...(usersOfPepper.includes(id) && pepperSettings),
    ...(["attempts-send", "attempts-send-slow"].includes(id) && senderSettings),
  });
});

test.each(functionRows)("$id gets no setting for an option that the stage does not have", ({ id, uses }) => {
  const locations = /_(TABLE|URL|ARN)$/;
  const others = Object.entries(variablesOf(dev, id)).filter(([name]) => !locations.test(name));
  // Which tell others where the API is.
  const own = (id in protocols || uses.reads?.includes("signatureSecret")) && { API_ADDRESS: dev.outputs.ApiUrl.Value };
  expect(Object.fromEntries(others)).toEqual({ STAGE: "dev", ...own });
  expect(variablesOf(dev, id)).not.toHaveProperty("IMPORTED_KEYS_PEPPER_ARN");
});

test("no function on AWS allows webhooks to private addresses", () => {
  for (const stack of [dev, every]) expect(JSON.stringify(stack.template)).not.toContain("WEBHOOK_ALLOW_CIDRS");
});

describe("the environment of a function", () => {
  const { "auth-authorizer": authorizer } = workers;
  const data = { tables: {}, queues: {} } as unknown as StageResources;
  const issuers = (count: number, length: number) =>
    Array.from({ length: count }, (_, index) => {
      return {
        name: `ci-${index}`,
        issuer: `https://ci.example/${"p".repeat(length)}${index}`,
        audience: "deployments",
      };
    });
  const variables = (options: Partial<Stage>) =>
    environmentFor({ ...authorizer, id: "auth-authorizer", uses: {} }, { ...stageNamed("dev"), ...options }, data);

  test("may have 20 issuers of a usual length", () => {
    expect(variables({ workflowIssuers: issuers(20, 20) })).toHaveProperty("OIDC_ISSUERS");
  });

  test("is rejected at synthesis, with the option, when Lambda would not accept it", () => {
    const environmentOf = () => variables({ workflowIssuers: issuers(20, 150) });
    expect(environmentOf).toThrow(InvalidStageError);
    expect(environmentOf).toThrow(
      /"dev" in lib\/stages\.ts is not valid:\n {2}workflowIssuers: is too long: the environment of auth-authorizer would have \d{4} bytes, and Lambda accepts 4096\. Use fewer or shorter entries/,
    );
  });

  test("counts names that are known only when the stage is deployed, the quotes that JSON escapes, and bytes", () => {
    const bytesOf = (text: string) => {
      const environment = { LONG: text, QUEUE_URL: Token.asString({ Ref: "Queue" }) };
      return environmentFor({ id: "a", uses: {}, environment }, stageNamed("dev"), data);
    };
    const unknown = "x".repeat(200);
    const others = { STAGE: "dev", LONG: "", QUEUE_URL: unknown, JWT_SECRET_ARN: unknown };
    const room = 4_096 - JSON.stringify(others).length;
    expect(() => bytesOf("x".repeat(room))).not.toThrow();
    expect(() => bytesOf("x".repeat(room + 1))).toThrow("LONG: is too long");
    expect(() => bytesOf('"'.repeat(2_000))).toThrow("LONG: is too long");
    expect(() => bytesOf("é".repeat(room - 1))).toThrow("LONG: is too long");
  });
});

test("explicit variables override the others, and undefined ones are left out", () => {
  const data = { tables: { projects: { tableName: "dev-projects" } }, queues: {} } as unknown as StageResources;
  const environment = { PROJECTS_TABLE: "another", LIMIT: "5", NOTHING: undefined };
  const inputs = { id: "listProjects", uses: { tables: { projects: ["Query" as const] } } };
  expect(environmentFor(inputs, stageNamed("dev"), data)).toEqual({ STAGE: "dev", PROJECTS_TABLE: "dev-projects" });
  expect(environmentFor({ ...inputs, environment }, stageNamed("dev"), data)).toEqual({
    STAGE: "dev",
    PROJECTS_TABLE: "another",
    LIMIT: "5",
  });
});
