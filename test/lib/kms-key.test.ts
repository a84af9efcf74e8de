import type { EndpointRow } from "../../functions/foundation/manifest/endpoints.ts";
import { functionRows } from "../../functions/foundation/manifest/function-rows.ts";
import type { WorkerRow } from "../../functions/foundation/manifest/workers.ts";
import { dev, type Json, only, SynthesizedStack } from "./synthesized.ts";

const keyArn = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
const existing = new SynthesizedStack("otherForms");
const created = new SynthesizedStack("prodWithKey");
const every = new SynthesizedStack("everyOption");

test("without the option there is no key, no function has a permission on one, and SNS encrypts the notifications with its own", () => {
  expect(JSON.stringify(dev.template)).not.toMatch(/kms:|AWS::KMS/);
  const keys = dev.all("AWS::SNS::Topic").map(({ Properties }) => [Properties.TopicName, Properties.KmsMasterKeyId]);
  expect(keys).toContainEqual(["deployment-webhooks-dev-notifications", "alias/aws/sns"]);
});

describe.each([
  ["an existing key", existing, (key: Json) => expect(key).toBe(keyArn)],
  ["a key of the stack", created, (key: Json) => expect(created.target(key).Type).toBe("AWS::KMS::Key")],
])("%s", (_, stack, expectKey) => {
  test("encrypts every table, queue and log group, the secret and the topic of notifications", () => {
    const tables = stack.all("AWS::DynamoDB::Table");
    const queues = stack.all("AWS::SQS::Queue");
    const logs = stack.all("AWS::Logs::LogGroup");
    expect(tables.length * queues.length * logs.length).toBeGreaterThan(0);
    for (const { Properties } of tables) expectKey(Properties.SSESpecification.KMSMasterKeyId);
    for (const { Properties } of queues) expectKey(Properties.KmsMasterKeyId);
    for (const { Properties } of logs) expectKey(Properties.KmsKeyId);
    const [topic] = stack.all("AWS::SNS::Topic").filter(({ Properties }) => Properties.TopicName !== undefined);
    expectKey(topic?.Properties.KmsMasterKeyId);
    const secrets = stack.all("AWS::SecretsManager::Secret");
    expect(secrets).toHaveLength(2);
    for (const { Properties } of secrets) expectKey(Properties.KmsKeyId);
  });
});

/** Returns the permissions on the key that a function needs, by the documentation of each AWS service. */
function neededBy(row: EndpointRow | WorkerRow): string[] {
  const { tables = {}, sendsTo = [], rejectsTo = [], publishesTo = [], reads = [], queries = [] } = row.uses;
  const actions = Object.values(tables).flat();
  const writes = actions.some((action) => ["PutItem", "UpdateItem", "DeleteItem"].includes(action));
  const receives = "trigger" in row && row.trigger.kind === "queue";
  const needed = new Set<string>();
  if (actions.length + queries.length > 0)
    for (const action of ["Decrypt", "DescribeKey"]) needed.add(`${action} via dynamodb`);
  if (writes) {
    for (const action of ["Encrypt", "GenerateDataKey", "ReEncryptFrom", "ReEncryptTo"])
      needed.add(`${action} via dynamodb`);
  }
  if (sendsTo.length + rejectsTo.length > 0)
    for (const action of ["Decrypt", "GenerateDataKey"]) needed.add(`${action} via sqs`);
  // https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
  if (publishesTo.length > 0) for (const action of ["Decrypt", "GenerateDataKey"]) needed.add(`${action} via sns`);
  if (receives) needed.add("Decrypt via sqs");
  if (reads.length > 0) needed.add("Decrypt via secretsmanager");
  return [...needed].sort();
}

test.each(functionRows)("$id may use the key for what it reads and writes, only through those services", (row) => {
  const granted = keyStatements(existing, row.id).flatMap(({ Action, Resource, Condition }) => {
    expect(Resource).toBe(keyArn);
    const service = /^(\w+)\.\*\.amazonaws\.com$/.exec(Condition.StringLike["kms:ViaService"])?.[1];
    return [Action].flat().map((action: string) => `${action.replace("kms:", "")} via ${service}`);
  });
  expect([...new Set(granted)].sort()).toEqual(neededBy(row));
});

test("a key of the stack is rotated every year, and only the logs of this account may use it", () => {
  const { EnableKeyRotation, KeyPolicy } = only(created.all("AWS::KMS::Key")).Properties;
  expect(EnableKeyRotation).toBe(true);
  const forLogs = only<Json>(
    KeyPolicy.Statement.filter((statement: Json) => JSON.stringify(statement).includes("logs.")),
  );
  expect(forLogs.Action).toEqual(
    ["Decrypt", "Describe", "Encrypt", "GenerateDataKey", "ReEncrypt"].map((name) => `kms:${name}*`),
  );
  const arn = forLogs.Condition.ArnLike["kms:EncryptionContext:aws:logs:arn"];
  expect(JSON.stringify(arn)).toMatch(/:logs:.*AWS::AccountId.*:log-group:\*/);
});

test("an existing table or secret is used with its own key", () => {
  const arnsOf = (id: string) => [...new Set(keyStatements(every, id).flatMap(({ Resource }) => Resource))];
  // The stack's own key is for the table of trusted workflows, which the function reads too.
  expect(arnsOf("listProjects")).toEqual([
    "arn:aws:kms:eu-west-1:111122223333:key/1111bbbb-12ab-34cd-56ef-1234567890ab",
    { "Fn::GetAtt": [expect.stringMatching(/^Key/), "Arn"] },
  ]);
  expect(arnsOf("auth-authorizer")).toContain(
    "arn:aws:kms:eu-west-1:111122223333:key/0000aaaa-12ab-34cd-56ef-1234567890ab",
  );
});

test("only event producers may encrypt messages with the key, a service only for the rule or the topic", () => {
  const { Statement } = only(every.all("AWS::KMS::Key")).Properties.KeyPolicy;
  const senders = Statement.filter(({ Action }: Json) => String(Action) === "kms:Decrypt,kms:GenerateDataKey");
  expect(senders.map(({ Principal, Condition }: Json) => [...Object.values(Principal), Condition?.ArnEquals])).toEqual([
    [["arn:aws:iam::444455556666:role/deployments", "arn:aws:iam::777788889999:root"], undefined],
    ["events.amazonaws.com", { "aws:SourceArn": "arn:aws:events:eu-west-1:111122223333:rule/deployments" }],
    ["sns.amazonaws.com", { "aws:SourceArn": "arn:aws:sns:eu-west-1:111122223333:deployments" }],
  ]);
});

function keyStatements(stack: SynthesizedStack, id: string): Json[] {
  return stack
    .statementsOf(id)
    .filter(({ Action }) => [Action].flat().some((action: string) => action.startsWith("kms:")));
}
