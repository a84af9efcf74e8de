import { Annotations, Match } from "aws-cdk-lib/assertions";
import { type EndpointRow, endpoints } from "../../functions/manifest/endpoints.ts";
import { tables } from "../../functions/manifest/tables.ts";
import { type WorkerRow, workers } from "../../functions/manifest/workers.ts";
import { stageNamed } from "../../lib/stages.ts";
import { dev, only, Synthesised } from "./synthesised.ts";

const rows: readonly (EndpointRow | WorkerRow)[] = [...endpoints, ...workers];
const prod = new Synthesised(stageNamed("prod"));

test("the same sources make the same template", () => {
  expect(JSON.stringify(new Synthesised(stageNamed("dev")).template)).toBe(JSON.stringify(dev.template));
});

test("the stages differ in protection and in how they are deployed, not in parts", () => {
  const gradually = ["AWS::Lambda::Alias", "AWS::Lambda::Version"];
  const parts = Object.entries(types(prod)).filter(
    ([type]) => !/CodeDeploy|IAM|CloudWatch/.test(type) && !gradually.includes(type),
  );
  expect(Object.fromEntries(parts)).toEqual(
    Object.fromEntries(Object.entries(types(dev)).filter(([type]) => !/IAM|CloudWatch/.test(type))),
  );
});

test("prod cannot be deleted by mistake, and what it stored stays", () => {
  expect(prod.stack.terminationProtection).toBe(true);
  expect(dev.stack.terminationProtection).toBe(false);
  for (const type of stores) {
    for (const { DeletionPolicy } of prod.all(type)) expect(DeletionPolicy).toBe("Retain");
    for (const { DeletionPolicy } of dev.all(type)) expect(DeletionPolicy).toBe("Delete");
  }
});

test("the outputs say what operators and the rest of the platform need", () => {
  const invoked = workers.filter((row) => row.trigger.kind === "invoke");
  expect(Object.keys(dev.template.Outputs)).toHaveLength(5 + Object.keys(tables).length + invoked.length);
  expect(Object.keys(dev.template.Outputs)).toEqual(
    expect.arrayContaining([
      "ApiUrl",
      "EventsQueueUrl",
      "JwtSecretArn",
      "AlarmTopicArn",
      "DashboardUrl",
      "DeliveriesTableName",
    ]),
  );
  expect(dev.target(dev.template.Outputs.EventsQueueUrl.Value).Properties.QueueName).toBe("dev-deployment-events");
  expect(dev.target(dev.template.Outputs.ProjectsUpsertMemberFunctionName.Value).id).toBe(
    dev.functionFor("projects/upsert-member").id,
  );
});

test("the API's address has no trailing slash", () => {
  const parts = dev.template.Outputs.ApiUrl.Value["Fn::Join"][1];
  expect(parts.at(-1)).toEqual({ Ref: only(dev.all("AWS::ApiGateway::Stage")).id });
});

describe("the JWT secret", () => {
  test("starts with a random value and tells the operator what to put there", () => {
    const { Description, GenerateSecretString } = only(dev.all("AWS::SecretsManager::Secret")).Properties;
    expect(Description).toMatch(/identity provider.*at least 32 bytes/s);
    expect(GenerateSecretString.PasswordLength).toBeGreaterThanOrEqual(32);
  });

  test("can be one that exists already", () => {
    const arn = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider-AbCdEf";
    const { template, stack } = new Synthesised({ ...stageNamed("dev"), jwt: { secretArn: arn } });
    expect(JSON.stringify(template)).not.toContain("AWS::SecretsManager::Secret");
    expect(template.Outputs.JwtSecretArn.Value).toBe(arn);
    const statements = Object.values<{ Properties: { PolicyDocument?: { Statement: unknown[] } } }>(
      template.Resources,
    ).flatMap(({ Properties }) => Properties.PolicyDocument?.Statement ?? []);
    const onSecret = statements.filter((statement) => JSON.stringify(statement).includes(arn));
    expect(onSecret).toEqual([{ Effect: "Allow", Action: "secretsmanager:GetSecretValue", Resource: arn }]);
    expect(stack.terminationProtection).toBe(false);
  });
});

describe("settings of a stage", () => {
  const configured = new Synthesised({
    ...stageNamed("dev"),
    jwt: { issuer: "https://id.example" },
    deliveries: { retrySchedule: [1, 60] },
  });
  const variables = (file: string) => configured.functionFor(file).Properties.Environment.Variables;

  test("reach the functions they are for, and no others", () => {
    expect(variables("auth/authorizer").JWT_ISSUER).toBe("https://id.example");
    expect(variables("auth/authorizer")).not.toHaveProperty("RETRY_SCHEDULE");
    for (const { file, uses } of rows) {
      const ofDeliveries = "deliveries" in (uses.tables ?? {}) ? "1,60" : undefined;
      expect([file, variables(file).RETRY_SCHEDULE]).toEqual([file, ofDeliveries]);
      if (file !== "auth/authorizer") expect(variables(file)).not.toHaveProperty("JWT_ISSUER");
    }
  });

  test("leave the rest to its defaults", () => {
    expect(variables("auth/authorizer")).not.toHaveProperty("JWT_AUDIENCE");
  });
});

test("a new authorizer is deployed with the API, which would go on calling the old one", () => {
  const deploymentOf = (stack: Synthesised) => only(stack.all("AWS::ApiGateway::Deployment")).id;
  const byAlias = new Synthesised({ ...stageNamed("dev"), deploysGradually: true });
  expect(deploymentOf(byAlias)).not.toBe(deploymentOf(dev));
});

test("a stage that keeps data warns when its alarms reach nobody", () => {
  const warnings = (stack: Synthesised) =>
    Annotations.fromStack(stack.stack).findWarning("*", Match.stringLikeRegexp("reach nobody"));
  expect(warnings(prod)).toHaveLength(1);
  expect(warnings(new Synthesised({ ...stageNamed("prod"), alarmEmail: "ops@example.com" }))).toEqual([]);
  expect(warnings(dev)).toEqual([]);
});

test("Lambda's own lines are those about trouble", () => {
  for (const { Properties } of dev.all("AWS::Lambda::Function")) {
    expect(Properties.LoggingConfig.SystemLogLevel).toBe("WARN");
  }
});

test("webhooks cannot be opened to private addresses", () => {
  expect(JSON.stringify([dev.template, prod.template])).not.toContain("WEBHOOK_ALLOW_CIDRS");
});

const stores = ["AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::SecretsManager::Secret", "AWS::Logs::LogGroup"];

function types({ template }: Synthesised): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { Type } of Object.values<{ Type: string }>(template.Resources)) counts[Type] = (counts[Type] ?? 0) + 1;
  return counts;
}
