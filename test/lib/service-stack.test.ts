import { tables } from "../../functions/tables.ts";
import { workers } from "../../functions/workers.ts";
import { stageNamed } from "../../lib/stages.ts";
import { dev, only, Synthesised } from "./synthesised.ts";

const prod = new Synthesised(stageNamed("prod"));

test("the same sources make the same template", () => {
  expect(JSON.stringify(new Synthesised(stageNamed("dev")).template)).toBe(JSON.stringify(dev.template));
});

test("the stages differ in protection, not in parts", () => {
  expect(Object.keys(types(prod))).toEqual(Object.keys(types(dev)));
  expect(types(prod)).toEqual(types(dev));
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
  expect(Object.keys(dev.template.Outputs)).toHaveLength(3 + Object.keys(tables).length + invoked.length);
  expect(Object.keys(dev.template.Outputs)).toEqual(
    expect.arrayContaining(["ApiUrl", "EventsQueueUrl", "JwtSecretArn", "DeliveriesTableName"]),
  );
  expect(dev.target(dev.template.Outputs.EventsQueueUrl.Value).Properties.QueueName).toBe("dev-deployment-events");
  expect(dev.target(dev.template.Outputs.ProjectsPutMemberFunctionName.Value).id).toBe(
    dev.functionFor("projects/put-member").id,
  );
});

test("the API's address has no trailing slash", () => {
  const parts = dev.template.Outputs.ApiUrl.Value["Fn::Join"][1];
  expect(parts.at(-1)).toEqual({ Ref: only(dev.all("AWS::ApiGateway::Stage")).id });
});

test("nothing asks for the account's API Gateway logging role", () => {
  expect(dev.all("AWS::ApiGateway::Account")).toEqual([]);
});

describe("the JWT secret", () => {
  test("starts with a random value and tells the operator what to put there", () => {
    const { Description, GenerateSecretString } = only(dev.all("AWS::SecretsManager::Secret")).Properties;
    expect(Description).toMatch(/identity provider.*at least 32 bytes/s);
    expect(GenerateSecretString.PasswordLength).toBeGreaterThanOrEqual(32);
  });

  test("can be one that exists already", () => {
    const arn = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider-AbCdEf";
    const { template, stack } = new Synthesised({ ...stageNamed("dev"), jwtSecretArn: arn });
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
    settings: { authorizer: { JWT_ISSUER: "https://id.example" }, "deliveries/send": { RETRY_SCHEDULE: "1,60" } },
  });
  const variables = (file: string) => configured.functionFor(file).Properties.Environment.Variables;

  test("reach the function they are for, and no other", () => {
    expect(variables("authorizer").JWT_ISSUER).toBe("https://id.example");
    expect(variables("deliveries/send").RETRY_SCHEDULE).toBe("1,60");
    const text = JSON.stringify(configured.template);
    expect(text.match(/JWT_ISSUER|RETRY_SCHEDULE/g)).toHaveLength(2);
  });

  test("leave the rest to its defaults", () => {
    expect(variables("authorizer")).not.toHaveProperty("JWT_AUDIENCE");
  });
});

test("webhooks cannot be opened to private addresses", () => {
  expect(JSON.stringify([dev.template, prod.template])).not.toContain("WEBHOOK_ALLOW_CIDRS");
});

const stores = ["AWS::DynamoDB::GlobalTable", "AWS::SQS::Queue", "AWS::SecretsManager::Secret", "AWS::Logs::LogGroup"];

function types({ template }: Synthesised): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { Type } of Object.values<{ Type: string }>(template.Resources)) counts[Type] = (counts[Type] ?? 0) + 1;
  return counts;
}
