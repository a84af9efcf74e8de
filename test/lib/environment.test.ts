import { type EndpointRow, endpoints } from "../../functions/manifest/endpoints.ts";
import { type WorkerRow, workers } from "../../functions/manifest/workers.ts";
import { environmentFor } from "../../lib/environment.ts";
import type { StageResources } from "../../lib/grants.ts";
import { stageNamed } from "../../lib/stages.ts";
import { dev, SynthesizedStack } from "./synthesized.ts";

const rows: readonly (EndpointRow | WorkerRow)[] = [...endpoints, ...workers];
const every = new SynthesizedStack("everyOption");
const variablesOf = (stack: SynthesizedStack, file: string): Record<string, unknown> =>
  stack.functionFor(file).Properties.Environment.Variables;

const credentialSettings = {
  JWT_ISSUER: "https://id.example.com",
  JWT_AUDIENCE: "platform",
  JWT_MAX_LIFETIME_SECONDS: "1800",
  JWT_CLOCK_SKEW_SECONDS: "10",
  JWT_REQUIRES_ISSUED_AT: "true",
  JWKS_ISSUER: "https://sso.example.com/",
  JWKS_URI: "https://sso.example.com/keys",
  JWKS_AUDIENCE: "platform",
  JWKS_SHARES_USERS: "true",
  LAST_USED_RESOLUTION_SECONDS: "300",
};
const deliverySettings = { RETRY_SCHEDULE: "1,60,3600", DELIVERY_GRACE_SECONDS: "300", DISABLE_AFTER_SECONDS: "86400" };
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
const usersOfWorkflows = ["auth/authorizer", "trusted-workflows/create"];
/** The functions that read or write deliveries. */
const usersOfDeliveries = [
  "attempts/send",
  "attempts/send-slow",
  "certifications/create",
  "certifications/get",
  "deliveries/fan-out",
  "deliveries/get",
  "deliveries/get-stats",
  "deliveries/list",
  "deliveries/list-of-project",
  "deliveries/publish-notifications",
  "deliveries/recover",
  "deliveries/redeliver",
  "deliveries/replay",
  "deliveries/send-test-delivery",
  "deliveries/sweep",
  "webhooks/get",
  "webhooks/list",
  "webhooks/update",
];

test.each(rows)("$file gets the options of the stage that it reads, and no others", ({ file }) => {
  const names = Object.keys({ ...credentialSettings, ...deliverySettings, ...workflowSettings });
  const settings = Object.entries(variablesOf(every, file)).filter(([name]) => names.includes(name));
  expect(Object.fromEntries(settings)).toEqual({
    ...(file === "auth/authorizer" && credentialSettings),
    ...(usersOfDeliveries.includes(file) && deliverySettings),
    ...(usersOfWorkflows.includes(file) && workflowSettings),
  });
});

test.each(rows)("$file gets no setting for an option that the stage does not have", ({ file }) => {
  const locations = /_(TABLE|URL|ARN)$/;
  const others = Object.entries(variablesOf(dev, file)).filter(([name]) => !locations.test(name));
  expect(Object.fromEntries(others)).toEqual({ STAGE: "dev" });
});

test("no function on AWS allows webhooks to private addresses", () => {
  for (const stack of [dev, every]) expect(JSON.stringify(stack.template)).not.toContain("WEBHOOK_ALLOW_CIDRS");
});

test("explicit variables override the others, and undefined ones are left out", () => {
  const data = { tables: { projects: { tableName: "dev-projects" } }, queues: {} } as unknown as StageResources;
  const environment = { PROJECTS_TABLE: "another", LIMIT: "5", NOTHING: undefined };
  const inputs = { file: "projects/list", uses: { tables: { projects: ["Query" as const] } } };
  expect(environmentFor(inputs, stageNamed("dev"), data)).toEqual({ STAGE: "dev", PROJECTS_TABLE: "dev-projects" });
  expect(environmentFor({ ...inputs, environment }, stageNamed("dev"), data)).toEqual({
    STAGE: "dev",
    PROJECTS_TABLE: "another",
    LIMIT: "5",
  });
});
