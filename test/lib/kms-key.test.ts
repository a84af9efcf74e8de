import { type EndpointRow, endpoints } from "../../functions/manifest/endpoints.ts";
import { type WorkerRow, workers } from "../../functions/manifest/workers.ts";
import { stageNamed } from "../../lib/stages.ts";
import { everyOption } from "./every-option.ts";
import { dev, type Json, only, Synthesised } from "./synthesised.ts";

const rows: readonly (EndpointRow | WorkerRow)[] = [...endpoints, ...workers];
const keyArn = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
const own = new Synthesised({ ...stageNamed("dev"), kmsKey: keyArn });
const created = new Synthesised({ ...stageNamed("dev"), kmsKey: "create" });
const every = new Synthesised(everyOption);

test("without the option there is no key, and no function has a right on one", () => {
  expect(JSON.stringify(dev.template)).not.toMatch(/kms:|AWS::KMS/);
});

describe.each([
  ["a key that exists", own, (key: Json) => expect(key).toBe(keyArn)],
  ["a key of the stack's own", created, (key: Json) => expect(created.target(key).Type).toBe("AWS::KMS::Key")],
])("%s", (_, stack, expectKey) => {
  test("encrypts every table, queue and log group, and the secret", () => {
    const tables = stack.all("AWS::DynamoDB::Table");
    const queues = stack.all("AWS::SQS::Queue");
    const logs = stack.all("AWS::Logs::LogGroup");
    expect(tables.length * queues.length * logs.length).toBeGreaterThan(0);
    for (const { Properties } of tables) expectKey(Properties.SSESpecification.KMSMasterKeyId);
    for (const { Properties } of queues) expectKey(Properties.KmsMasterKeyId);
    for (const { Properties } of logs) expectKey(Properties.KmsKeyId);
    expectKey(only(stack.all("AWS::SecretsManager::Secret")).Properties.KmsKeyId);
  });
});

/** What each kind of use needs of the key, by AWS's documentation of each service. */
function neededBy(row: EndpointRow | WorkerRow): string[] {
  const { tables = {}, sendsTo = [], rejectsTo = [], reads = [], queries = [] } = row.uses;
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
  if (receives) needed.add("Decrypt via sqs");
  if (reads.length > 0) needed.add("Decrypt via secretsmanager");
  return [...needed].sort();
}

test.each(rows)("$file may use the key for what it reads and writes, through those services only", (row) => {
  const granted = keyStatements(own, row.file).flatMap(({ Action, Resource, Condition }) => {
    expect(Resource).toBe(keyArn);
    const service = /^(\w+)\.\*\.amazonaws\.com$/.exec(Condition.StringLike["kms:ViaService"])?.[1];
    return [Action].flat().map((action: string) => `${action.replace("kms:", "")} via ${service}`);
  });
  expect([...new Set(granted)].sort()).toEqual(neededBy(row));
});

test("a key of the stack's own turns every year and lets the logs use it", () => {
  const { EnableKeyRotation, KeyPolicy } = only(created.all("AWS::KMS::Key")).Properties;
  expect(EnableKeyRotation).toBe(true);
  const forLogs = only<Json>(
    KeyPolicy.Statement.filter((statement: Json) => JSON.stringify(statement).includes("logs.")),
  );
  expect(forLogs.Action).toEqual(expect.arrayContaining(["kms:Encrypt*", "kms:Decrypt*", "kms:GenerateDataKey*"]));
  expect(JSON.stringify(forLogs.Condition)).toContain("kms:EncryptionContext:aws:logs:arn");
});

test("a table or secret of the platform's is used with its own key", () => {
  const arnsOf = (file: string) => [...new Set(keyStatements(every, file).flatMap(({ Resource }) => Resource))];
  expect(arnsOf("projects/list")).toEqual([everyOption.projectsTable?.kmsKeyArn]);
  expect(arnsOf("auth/authorizer")).toContain(everyOption.jwt?.secretKmsKeyArn);
});

test("those who send events may encrypt them, and others may not", () => {
  const { Statement } = only(every.all("AWS::KMS::Key")).Properties.KeyPolicy;
  const senders = Statement.filter(({ Action }: Json) => String(Action) === "kms:GenerateDataKey,kms:Decrypt");
  const principals = senders.map(({ Principal }: Json) => Object.values(Principal).flat().map(String).join());
  expect(principals.sort()).toEqual(
    [
      "arn:aws:iam::444455556666:role/deployments",
      "arn:aws:iam::777788889999:root",
      "events.amazonaws.com",
      "sns.amazonaws.com",
    ].sort(),
  );
});

function keyStatements(stack: Synthesised, file: string): Json[] {
  const role = stack.target(stack.functionFor(file).Properties.Role);
  const policies = stack
    .all("AWS::IAM::Policy")
    .filter(({ Properties }) => Properties.Roles.some((reference: Json) => reference.Ref === role.id));
  const statements = policies.flatMap(({ Properties }) => Properties.PolicyDocument.Statement);
  return statements.filter(({ Action }: Json) => [Action].flat().some((action: string) => action.startsWith("kms:")));
}
