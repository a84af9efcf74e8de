import { setTimeout as sleep } from "node:timers/promises";
import { GetQueueAttributesCommand, SendMessageBatchCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import {
  BatchGetCommand,
  DeleteCommand,
  ExecuteStatementCommand,
  GetCommand,
  QueryCommand,
  ScanCommand,
  TransactGetCommand,
  TransactWriteCommand,
  type TransactWriteCommandInput,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { invoke } from "../../../bin/emulator/lambda.ts";
import { AccessDenied, EnvNotGranted } from "../../../bin/emulator/permissions.ts";
import { enqueue } from "../../../functions/deliveries/line/delivery-queue.ts";
import { type QueueKey, queues } from "../../../functions/foundation/manifest/queues.ts";
import { type TableKey, tables } from "../../../functions/foundation/manifest/tables.ts";
import { batchGet, dynamo, isOutage, secretVersions, sqs } from "../../../functions/foundation/platform/aws.ts";
import { deadLetterUrl, queueUrl, settings, tableName } from "../../../functions/foundation/platform/env.ts";
import { logSink } from "../../../functions/foundation/platform/log.ts";
import { handler as listProjects } from "../../../functions/identity/members/list.ts";
import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { freshResources } from "../../support/resources.ts";
import { startSecretsManager } from "../../support/secrets-manager.ts";

const secretArn = "arn:aws:secretsmanager:us-east-1:000000000000:secret:jwt-AbCdEf";
let secrets: Awaited<ReturnType<typeof startSecretsManager>>;
/** Names and URLs of the resources, which are read outside of any function. */
const locations = { tables: {}, queues: {}, deadLetters: {} } as {
  tables: Record<TableKey, string>;
  queues: Record<QueueKey, string>;
  deadLetters: Record<QueueKey, string>;
};

beforeAll(async () => {
  await freshResources();
  logSink.write = () => {};
  process.env.JWT_SECRET_ARN = secretArn;
  secrets = await startSecretsManager(secretArn, "x".repeat(32));
  for (const key of Object.keys(tables) as TableKey[]) locations.tables[key] = tableName(key);
  for (const key of Object.keys(queues) as QueueKey[]) {
    locations.queues[key] = queueUrl(key);
    locations.deadLetters[key] = deadLetterUrl(key);
  }
});
afterEach(restoreAws);
afterAll(() => secrets.stop());

/** Runs code as the function of this file. */
const as = <Result>(file: string, run: () => Promise<Result>): Promise<Result> =>
  invoke(run, {}, { functionName: file, timeoutSeconds: 5 }) as Promise<Result>;

const webhook = { project_id: "p", id: "w" };
const key = { key_hash: "h" };
const byPartition = (name: string, value: string | number) => ({
  KeyConditionExpression: `${name} = :value`,
  ExpressionAttributeValues: { ":value": value },
});
const getProject = () =>
  dynamo().send(new GetCommand({ TableName: locations.tables.projects, Key: { user_id: "u", project_id: "p" } }));
const getSecret = () =>
  dynamo().send(new GetCommand({ TableName: locations.tables.webhookSecrets, Key: { webhook_id: "w" } }));
const readSecrets = () => batchGet({ [locations.tables.webhookSecrets]: [{ webhook_id: "w" }] });
const newSecret = () => ({
  TableName: locations.tables.webhookSecrets,
  Key: { webhook_id: "w" },
  UpdateExpression: "SET #current = :new",
  ExpressionAttributeNames: { "#current": "current" },
  ExpressionAttributeValues: { ":new": "whsec" },
});
const rotateAndReturn = () => dynamo().send(new UpdateCommand({ ...newSecret(), ReturnValues: "ALL_OLD" }));
const onFailure = {
  ConditionExpression: "attribute_not_exists(webhook_id)",
  ReturnValuesOnConditionCheckFailure: "ALL_OLD",
} as const;
const failAndReturn = () => dynamo().send(new UpdateCommand({ ...newSecret(), ...onFailure }));
const transact = (...TransactItems: NonNullable<TransactWriteCommandInput["TransactItems"]>) =>
  dynamo().send(new TransactWriteCommand({ TransactItems }));
const failAndReturnInTransaction = () => transact({ Update: { ...newSecret(), ...onFailure } });
const queryBacklog = (IndexName?: string) =>
  dynamo().send(
    new QueryCommand({
      TableName: locations.tables.backlog,
      IndexName,
      ...(IndexName ? byPartition("due_shard", 1) : byPartition("line", "w")),
    }),
  );
const insertWebhook = () =>
  transact(
    { Put: { TableName: locations.tables.webhooks, Item: webhook } },
    { Put: { TableName: locations.tables.webhookSecrets, Item: { webhook_id: "w" } } },
  );
const removeWebhook = () =>
  transact(
    { Delete: { TableName: locations.tables.webhooks, Key: webhook } },
    { Delete: { TableName: locations.tables.webhookSecrets, Key: { webhook_id: "w" } } },
  );
const memberOf = (user_id: string) => ({ user_id, project_id: "p" });
const addMember = (userId: string) => () =>
  transact({ Put: { TableName: locations.tables.projects, Item: memberOf(userId) } });
const removeMember = (userId: string) => () =>
  dynamo().send(new DeleteCommand({ TableName: locations.tables.projects, Key: memberOf(userId) }));
const ConditionExpression = "attribute_not_exists(id)";
const checkWebhook = () =>
  transact({ ConditionCheck: { TableName: locations.tables.webhooks, Key: webhook, ConditionExpression } });
const getInTransaction = () =>
  dynamo().send(
    new TransactGetCommand({ TransactItems: [{ Get: { TableName: locations.tables.webhooks, Key: webhook } }] }),
  );
const getKeys = () =>
  dynamo().send(new BatchGetCommand({ RequestItems: { [locations.tables.apiKeys]: { Keys: [key] } } }));
const scanKeys = () => dynamo().send(new ScanCommand({ TableName: locations.tables.apiKeys }));
const selectKeys = () =>
  dynamo().send(new ExecuteStatementCommand({ Statement: `SELECT * FROM "${locations.tables.apiKeys}"` }));
const send = (QueueUrl: string) => sqs().send(new SendMessageCommand({ QueueUrl, MessageBody: "x" }));
const sendBatch = (QueueUrl: string) =>
  sqs().send(new SendMessageBatchCommand({ QueueUrl, Entries: [{ Id: "0", MessageBody: "x" }] }));

// test/grants.test.ts has every call that a row grants; these are allowed by a rule of their own.
test.each<[file: string, what: string, call: () => Promise<unknown>]>([
  ["createServiceAccount", "add a service account to a project", addMember("service-account:1")],
  ["createServiceAccount", "read a member who is a person", getProject],
  ["deleteServiceAccount", "remove a service account from a project", removeMember("service-account:1")],
  ["projects-remove-member", "remove a person from a project", removeMember("u")],
  ["deleteWebhook", "write a transaction of items that it may delete", removeWebhook],
  ["auth-authorizer", "read a secret", () => secretVersions(secretArn)],
])("%s may %s", async (file, _what, call) => {
  await expect(as(file, call)).resolves.toBeDefined();
});

const queueAttributes = () => sqs().send(new GetQueueAttributesCommand({ QueueUrl: locations.queues.deliveries }));
const getOfSecrets = "dynamodb:GetItem on resource: table webhook-secrets";

test.each<[file: string, what: string, call: () => Promise<unknown>, denied: string]>([
  ["getWebhook", "read another table", getSecret, getOfSecrets],
  ["rotateWebhookSecret", "let a write return the old secret", rotateAndReturn, getOfSecrets],
  ["rotateWebhookSecret", "let a write that fails return the secret", failAndReturn, getOfSecrets],
  ["rotateWebhookSecret", "let a transaction that fails return it", failAndReturnInTransaction, getOfSecrets],
  [
    "createServiceAccount",
    "add a person",
    addMember("u-service-account:1"),
    "dynamodb:PutItem on resource: table projects",
  ],
  ["deleteServiceAccount", "remove a person", removeMember("u"), "dynamodb:DeleteItem on resource: table projects"],
  ["listProjects", "call another action", getProject, "dynamodb:GetItem on resource: table projects"],
  [
    "deliveries-sweep",
    "query the table of an index",
    () => queryBacklog(),
    "dynamodb:Query on resource: table backlog",
  ],
  ["listWebhooks", "query an index", () => queryBacklog("due"), "dynamodb:Query on resource: table backlog/index/due"],
  ["createWebhook", "delete what it may put", removeWebhook, "dynamodb:DeleteItem on resource: table webhooks"],
  ["getDelivery", "check an item", checkWebhook, "dynamodb:ConditionCheckItem on resource: table webhooks"],
  ["listWebhooks", "read in a transaction", getInTransaction, "dynamodb:GetItem on resource: table webhooks"],
  ["auth-authorizer", "read a batch", getKeys, "dynamodb:BatchGetItem on resource: table api-keys"],
  ["listApiKeys", "scan", scanKeys, "dynamodb:Scan on resource: table api-keys"],
  ["listApiKeys", "run a PartiQL statement", selectKeys, "dynamodb:ExecuteStatement on resource: *"],
  [
    "attempts-send",
    "send to another queue",
    () => send(locations.queues.events),
    "sqs:SendMessage on resource: queue deployment-events",
  ],
  [
    "deliveries-fan-out",
    "send to another dead-letter queue",
    () => sendBatch(locations.deadLetters.deliveries),
    "sqs:SendMessage on resource: queue deliveries-dlq",
  ],
  ["attempts-send", "read attributes", queueAttributes, "sqs:GetQueueAttributes on resource: queue deliveries"],
  [
    "attempts-send",
    "read a secret",
    () => secretVersions(secretArn),
    "secretsmanager:GetSecretValue on resource: secret JwtSecret",
  ],
  ["no/such-row", "read a table", getProject, "dynamodb:GetItem on resource: table projects"],
])("%s may not %s", async (file, _what, call, denied) => {
  const error = (await as(file, call).catch((caught: unknown) => caught)) as Error;
  expect(error.name).toBe("AccessDeniedException");
  expect(error.message.startsWith(`User: ${file} is not authorized to perform: ${denied} because`)).toBe(true);
});

test("a transaction with one item that is not granted writes nothing", async () => {
  await removeWebhook();
  await expect(as("deliveries-fan-out", insertWebhook)).rejects.toThrow(AccessDenied);
  const { Item } = await dynamo().send(new GetCommand({ TableName: locations.tables.webhooks, Key: webhook }));
  expect(Item).toBeUndefined();
});

test("a denied call is neither sent nor retried, and does not count as an outage", async () => {
  await as("getWebhook", getProject);
  let sent = 0;
  interceptDynamo(async (_call, proceed) => {
    sent += 1;
    return proceed();
  });
  const error = await as("getWebhook", getSecret).catch((caught: unknown) => caught);
  expect([sent, isOutage(error)]).toEqual([0, false]);
});

test("a function that handles a denied call fails all the same", async () => {
  const ignoresDenial = async () => {
    await getSecret().catch(() => {});
    return "done";
  };
  await expect(as("getWebhook", ignoresDenial)).rejects.toThrow("dynamodb:GetItem on resource: table webhook-secrets");
});

test("functions that run at the same time have their own rights, with the same clients", async () => {
  const after = (ms: number, call: () => Promise<unknown>) => async () => {
    await sleep(ms);
    return call();
  };
  const outcomes = await Promise.allSettled([
    as("attempts-send", after(20, readSecrets)),
    as("deliveries-sweep", after(10, getSecret)),
    as(
      "deliveries-sweep",
      after(30, () => send(locations.queues.slowDeliveries)),
    ),
    after(15, getSecret)(),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
});

test("code that outlives its function keeps the rights of that function", async () => {
  const later: Promise<unknown>[] = [];
  const runLater = (call: () => Promise<unknown>) => {
    later.push(
      new Promise((resolve) => {
        setTimeout(() => resolve(call().catch((error: Error) => error.name)), 20);
      }),
    );
  };
  await as("getWebhook", async () => {
    runLater(getProject);
    runLater(getSecret);
  });
  expect(await Promise.all(later)).toEqual([
    expect.objectContaining({ $metadata: expect.anything() }),
    "AccessDeniedException",
  ]);
});

test("a handler that runs under another row fails, although it handles errors itself", async () => {
  const event = {
    headers: {},
    requestContext: {
      requestId: "r",
      authorizer: { userId: "u", authType: "jwt" },
      domainName: "api",
      path: "/",
      identity: {},
    },
  } as never;
  const listAs = (file: string) => as(file, () => listProjects(event, {} as never));
  await expect(listAs("listProjects")).resolves.toMatchObject({ statusCode: 200 });
  await expect(listAs("projects-upsert-member")).rejects.toThrow("dynamodb:Query on resource: table projects");
  await expect(listAs("deliveries-sweep")).rejects.toThrow("deliveries-sweep reads PROJECTS_TABLE");
  const call = { kind: "work" as const, project_id: "p", webhook_id: "w" };
  await expect(as("deliveries-sweep", () => enqueue([call]))).resolves.toEqual([]);
  await expect(as("listProjects", () => enqueue([call]))).rejects.toThrow(
    "listProjects reads SLOW_DELIVERIES_QUEUE_URL",
  );
});

test("a function sees only the variables of the resources that its row grants", async () => {
  const visible = async () => ({
    backlog: process.env.BACKLOG_TABLE,
    webhooks: process.env.WEBHOOKS_TABLE,
    queue: process.env.SLOW_DELIVERIES_QUEUE_URL,
    deadLetters: process.env.EVENTS_DLQ_URL,
    secret: settings.jwtSecretArn(),
  });
  const all = await visible();
  expect(Object.values(all)).not.toContain(undefined);
  const seen: Record<string, unknown> = {};
  const look = (file: string) =>
    as(file, async () => {
      seen[file] = await visible();
    });
  await expect(look("deliveries-sweep")).rejects.toThrow(EnvNotGranted);
  await expect(look("deliveries-fan-out")).rejects.toThrow("deliveries-fan-out reads JWT_SECRET_ARN");
  expect(seen).toEqual({
    "deliveries-sweep": { backlog: all.backlog, queue: all.queue },
    "deliveries-fan-out": { ...all, secret: undefined },
  });
  expect(await visible()).toEqual(all);
  await expect(as("deliveries-sweep", async () => tableName("webhookSecrets"))).rejects.toThrow(
    "WEBHOOK_SECRETS_TABLE is not set",
  );
});

test("a variable that a function sets is visible outside of it, until it is deleted", async () => {
  await as("getWebhook", async () => {
    process.env.NEW_VARIABLE = "1";
  });
  expect(process.env.NEW_VARIABLE).toBe("1");
  delete process.env.NEW_VARIABLE;
  expect("NEW_VARIABLE" in process.env).toBe(false);
});
