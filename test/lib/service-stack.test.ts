import recommended from "aws-cdk-lib/recommended-feature-flags.json" with { type: "json" };
import cdkJson from "../../cdk.json" with { type: "json" };
import { dev, type Json, only, SynthesizedStack } from "./synthesized.ts";

const prod = new SynthesizedStack("prod");
const every = new SynthesizedStack("everyOption");

test("the same sources synthesize the same template", () => {
  const { template } = new SynthesizedStack("devWithBucket");
  const own = Object.entries<Json>(template.Resources).filter(([, { Type }]) => Type !== "AWS::S3::Bucket");
  expect(JSON.stringify({ ...template, Resources: Object.fromEntries(own) })).toBe(JSON.stringify(dev.template));
});

test("the stages have the same resources, except for gradual deployments and the firewall", () => {
  const gradual = ["AWS::Lambda::Alias", "AWS::Lambda::Version"];
  const ofProd = Object.entries(countsByType(prod)).filter(
    ([type]) => !/CodeDeploy|IAM|CloudWatch|WAFv2/.test(type) && !gradual.includes(type),
  );
  expect(Object.fromEntries(ofProd)).toEqual(
    Object.fromEntries(Object.entries(countsByType(dev)).filter(([type]) => !/IAM|CloudWatch/.test(type))),
  );
});

test("a stack with every option stays well below the 500 resources that CloudFormation accepts", () => {
  // docs/decisions.md says what is next when this is reached.
  expect(Object.keys(every.template.Resources).length).toBeLessThanOrEqual(405);
});

test.each([
  ["dev", dev],
  ["prod", prod],
  ["with every option", every],
])("no resource of the stack %s depends on itself, which CloudFormation would reject", (_name, { template }) => {
  const needs = new Map(Object.entries<Json>(template.Resources).map(([id, resource]) => [id, referencesOf(resource)]));
  // Removes, round by round, the resources that need none of those that are left.
  for (let before = -1; before !== needs.size; ) {
    before = needs.size;
    for (const [id, ids] of needs) if (ids.every((needed) => !needs.has(needed))) needs.delete(id);
  }
  expect([...needs.keys()]).toEqual([]);
});

/** Returns the logical ids that the definition of a resource contains. */
function referencesOf(resource: Json): string[] {
  const ids = JSON.stringify(resource).matchAll(/"(?:Ref|Fn::GetAtt)":\[?"(\w+)"|\$\{(\w+)/g);
  return [...[...ids].map(([, id, inText]) => id ?? inText ?? ""), ...[resource.DependsOn ?? []].flat()];
}

test("each stage is deployed with the bootstrap roles of its qualifier", () => {
  const qualifierOf = ({ template }: SynthesizedStack) =>
    template.Parameters.BootstrapVersion.Default.match(/^\/cdk-bootstrap\/(\w+)\/version$/)?.[1];
  expect([dev, prod].map(qualifierOf)).toEqual(["hooksdev", "hooksprod"]);
});

test("a stack has a description, and its resources are tagged with service and stage", () => {
  expect(prod.template.Description).toBe("API keys and deployment webhooks, stage prod");
  expect(prod.synthesis.tags).toEqual({ service: "deployment-webhooks", stage: "prod" });
});

test("a stage with env is deployed to its account and region only, another one to those of the credentials", () => {
  expect(every.synthesis.environment).toBe("aws://111122223333/eu-west-1");
  expect(prod.synthesis.environment).toBe("aws://unknown-account/unknown-region");
});

// A flag that is turned on later changes the hash of every version, and Lambda publishes the same code only once.
test("every feature flag that this version of the CDK recommends has a value in cdk.json, so that none changes later", () => {
  expect(Object.keys(recommended).filter((flag) => !(flag in cdkJson.context))).toEqual([]);
});

test("prod has termination protection, and its data is retained", () => {
  expect(prod.synthesis.hasTerminationProtection).toBe(true);
  expect(dev.synthesis.hasTerminationProtection).toBe(false);
  for (const type of storeTypes) {
    // Tables stay even when the operation that created them is rolled back.
    const policy = type === "AWS::DynamoDB::Table" ? "Retain" : "RetainExceptOnCreate";
    const policiesOf = (stack: SynthesizedStack) =>
      new Set(stack.all(type).map(({ DeletionPolicy }) => DeletionPolicy));
    expect({ type, prod: [...policiesOf(prod)], dev: [...policiesOf(dev)] }).toEqual({
      type,
      prod: [policy],
      dev: ["Delete"],
    });
  }
});

test("the outputs are those that operators and the rest of the platform use", () => {
  expect(Object.keys(dev.outputs).sort()).toEqual([
    "AlarmTopicArn",
    "ApiKeysImportFunctionName",
    "ApiKeysProvisionFunctionName",
    "ApiKeysRevokeAllFunctionName",
    "ApiKeysTableName",
    "ApiUrl",
    "AuditEventsTableName",
    "BacklogTableName",
    "CredentialsRevocationsFunctionName",
    "CredentialsVerifyFunctionName",
    "DashboardUrl",
    "DeliveriesReplayFunctionName",
    "DeliveriesTableName",
    "EventsQueueUrl",
    "EventsTableName",
    "IdempotencyKeysTableName",
    "JwtSecretArn",
    "MemberVersionsTableName",
    "NotificationsTableName",
    "NotificationsTopicArn",
    "ProjectsRemoveMemberFunctionName",
    "ProjectsSuspendFunctionName",
    "ProjectsSyncMembersFunctionName",
    "ProjectsTableName",
    "ProjectsUpsertMemberFunctionName",
    "RequestBudgetsTableName",
    "RevocationsTableName",
    "ServiceAccountsTableName",
    "SignatureSecretArn",
    "TrustedWorkflowsTableName",
    "UserApiKeysTableName",
    "WebhookSecretsTableName",
    "WebhooksImportFunctionName",
    "WebhooksTableName",
  ]);
  expect(dev.target(dev.outputs.EventsQueueUrl.Value).Properties.QueueName).toBe(
    "deployment-webhooks-dev-deployment-events",
  );
  expect(dev.target(dev.outputs.NotificationsTopicArn.Value).Properties.TopicName).toBe(
    "deployment-webhooks-dev-notifications",
  );
  expect(dev.target(dev.outputs.ProjectsUpsertMemberFunctionName.Value).id).toBe(
    dev.functionFor("projects-upsert-member").id,
  );
});

describe("the JWT secret", () => {
  test("starts with a random value and describes what the operator must store", () => {
    const { Description, GenerateSecretString } = only(
      dev.all("AWS::SecretsManager::Secret").filter(({ id }) => id.startsWith("Jwt")),
    ).Properties;
    expect(Description).toMatch(/identity provider.*at least 32 bytes/s);
    expect(GenerateSecretString).toEqual({ PasswordLength: 64, ExcludeCharacters: "\"'`" });
  });

  test("can be an existing one, which only the functions that verify credentials read", () => {
    const arn = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider-AbCdEf";
    expect(every.all("AWS::SecretsManager::Secret").map(({ id }) => id)).toEqual([
      expect.stringMatching(/^SignatureSecret/),
    ]);
    expect(every.outputs.JwtSecretArn.Value).toBe(arn);
    const reads = ["auth-authorizer", "credentials-verify"].flatMap((id) =>
      every.statementsOf(id).filter((statement) => JSON.stringify(statement).includes(arn)),
    );
    const read = { Effect: "Allow", Action: "secretsmanager:GetSecretValue", Resource: expect.arrayContaining([arn]) };
    expect(reads).toEqual([read, read]);
    const statements = every.allStatements();
    expect(statements.filter((statement) => JSON.stringify(statement).includes(arn))).toEqual([read, read]);
  });
});

test("a stage causes warnings with the example of an issuer, and without an alarm email if it keeps data", () => {
  expect(prod.synthesis.warnings).toEqual([
    expect.stringMatching(/^No one can sign in: jwt\.issuer is an example\. Set jwt\.issuer and jwt\.audience in/),
    expect.stringMatching(/^No one receives the alarms of this stage\. Set alarmEmail in lib\/stages\.ts/),
  ]);
  expect(every.synthesis.warnings.filter((text) => text.startsWith("No one receives"))).toEqual([]);
  expect(dev.synthesis.warnings).toEqual([]);
});

const storeTypes = ["AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::SecretsManager::Secret", "AWS::Logs::LogGroup"];

function countsByType({ template }: SynthesizedStack): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { Type } of Object.values<{ Type: string }>(template.Resources)) counts[Type] = (counts[Type] ?? 0) + 1;
  return counts;
}
