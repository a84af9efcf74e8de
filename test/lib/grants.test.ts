import { allowedCallsOf } from "../../bin/emulator/permissions.ts";
import { reservedUserIds } from "../../functions/foundation/access/identity.ts";
import { functionRows } from "../../functions/foundation/manifest/function-rows.ts";
import type { Grants, IndexKey } from "../../functions/foundation/manifest/grants-schema.ts";
import { type QueueRow, queues } from "../../functions/foundation/manifest/queues.ts";
import { type TableRow, tables } from "../../functions/foundation/manifest/tables.ts";
import { topics } from "../../functions/foundation/manifest/topics.ts";
import type { Trigger } from "../../functions/foundation/manifest/workers.ts";
import { everyOption } from "./every-option.ts";
import { dev, type Json, only, SynthesizedStack } from "./synthesized.ts";

interface Row {
  id: string;
  uses: Grants;
  trigger?: Trigger;
}

const rows: readonly Row[] = functionRows;
const every = new SynthesizedStack("everyOption");

test.each(rows)("$id may do what its row lists, as in a local run, and nothing else", ({ id, uses, trigger }) => {
  expect(dev.grants(id)).toEqual([...ownLogs, ...fromUses(uses), ...fromTrigger(trigger)].sort());
});

test("signing secrets are accessible only to the functions that create, import, rotate, delete or sign with them", () => {
  expect(functionsWith((grant) => grant.includes("webhook-secrets"))).toEqual({
    createWebhook: ["dynamodb:PutItem on table deployment-webhooks-dev-webhook-secrets"],
    "webhooks-import": [
      "dynamodb:ConditionCheckItem on table deployment-webhooks-dev-webhook-secrets",
      "dynamodb:PutItem on table deployment-webhooks-dev-webhook-secrets",
    ],
    rotateWebhookSecret: ["dynamodb:UpdateItem on table deployment-webhooks-dev-webhook-secrets"],
    deleteWebhook: ["dynamodb:DeleteItem on table deployment-webhooks-dev-webhook-secrets"],
    "attempts-send": ["dynamodb:BatchGetItem on table deployment-webhooks-dev-webhook-secrets"],
    "attempts-send-slow": ["dynamodb:BatchGetItem on table deployment-webhooks-dev-webhook-secrets"],
  });
});

test("a function that writes signing secrets without reading them cannot read them as a return value", () => {
  const senders = ["attempts-send", "attempts-send-slow"];
  for (const id of ["createWebhook", "webhooks-import", "rotateWebhookSecret", "deleteWebhook", ...senders]) {
    const onSecrets = only<Json>(
      dev.statementsOf(id).filter(({ Resource }) => JSON.stringify(Resource).includes("WebhookSecrets")),
    );
    const returnsNothing = { StringEqualsIfExists: { "dynamodb:ReturnValues": "NONE" } };
    expect([id, onSecrets.Condition]).toEqual([id, senders.includes(id) ? undefined : returnsNothing]);
  }
});

test("the API writes members that are service accounts only, and reads those that are people", () => {
  const expected = [
    ["createServiceAccount", "PutItem"],
    ["deleteServiceAccount", "DeleteItem"],
  ];
  const projects = dev.table("deployment-webhooks-dev-projects").id;
  for (const [id = "", write] of expected) {
    const onMembers = dev
      .statementsOf(id)
      .filter(({ Resource }) => [Resource].flat().some((each) => each["Fn::GetAtt"]?.[0] === projects));
    expect(onMembers.map(({ Action, Condition }) => [Action, Condition])).toEqual([
      ["dynamodb:GetItem", undefined],
      [
        `dynamodb:${write}`,
        {
          "ForAllValues:StringLike": { "dynamodb:LeadingKeys": [`${reservedUserIds.serviceAccount}*`] },
          Null: { "dynamodb:LeadingKeys": "false" },
        },
      ],
    ]);
  }
});

test("only the worker for it publishes to the topic of notifications", () => {
  expect(functionsWith((grant) => grant.startsWith("sns:"))).toEqual({
    "deliveries-publish-notifications": ["sns:Publish on topic deployment-webhooks-dev-notifications"],
  });
});

test("only the functions that verify credentials read the JWT secret", () => {
  expect(functionsWith((grant) => grant.startsWith("secretsmanager:"))).toEqual({
    "auth-authorizer": ["secretsmanager:GetSecretValue on secret JwtSecret"],
    "credentials-verify": ["secretsmanager:GetSecretValue on secret JwtSecret"],
  });
});

test("only the functions that receive imported keys read their pepper, and only in a stage with the option", () => {
  const { secretArn, kmsKeyArn } = everyOption.importedKeysPepper ?? {};
  const readers = rows.filter(({ id }) => JSON.stringify(every.statementsOf(id)).includes(String(secretArn)));
  expect(readers.map(({ id }) => id).sort()).toEqual(["auth-authorizer", "credentials-verify", "revokeCredentials"]);
  for (const { id } of readers) {
    const grants = every
      .statementsOf(id)
      .flatMap(({ Action, Resource, Condition }) =>
        [Resource].flat().map((resource) => [Action, resource, JSON.stringify(Condition)]),
      );
    expect(grants).toContainEqual(["secretsmanager:GetSecretValue", secretArn, undefined]);
    const viaSecretsManager = '{"StringLike":{"kms:ViaService":"secretsmanager.*.amazonaws.com"}}';
    expect(grants).toContainEqual(["kms:Decrypt", kmsKeyArn, viaSecretsManager]);
  }
  expect(JSON.stringify(dev.template)).not.toContain("IMPORTED_KEYS");
});

test("only the fan-out sends to a dead-letter queue, and only to that of the events", () => {
  expect(functionsWith((grant) => grant.endsWith("-dlq"))).toEqual({
    "deliveries-fan-out": ["sqs:SendMessage on queue deployment-webhooks-dev-deployment-events-dlq"],
  });
});

test("no function sends to the events queue", () => {
  const senders = functionsWith(
    (grant) => grant === "sqs:SendMessage on queue deployment-webhooks-dev-deployment-events",
  );
  expect(senders).toEqual({});
});

test("each function that uses the table of API keys has only the actions it needs", () => {
  expect(functionsWith((grant) => grant.endsWith("on table deployment-webhooks-dev-api-keys"))).toEqual({
    "auth-authorizer": [
      "dynamodb:GetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:UpdateItem on table deployment-webhooks-dev-api-keys",
    ],
    "credentials-verify": [
      "dynamodb:GetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:UpdateItem on table deployment-webhooks-dev-api-keys",
    ],
    createApiKey: ["dynamodb:PutItem on table deployment-webhooks-dev-api-keys"],
    "api-keys-provision": ["dynamodb:PutItem on table deployment-webhooks-dev-api-keys"],
    "api-keys-import": [
      "dynamodb:BatchGetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:PutItem on table deployment-webhooks-dev-api-keys",
    ],
    listApiKeys: ["dynamodb:BatchGetItem on table deployment-webhooks-dev-api-keys"],
    deleteApiKey: [
      "dynamodb:DeleteItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:GetItem on table deployment-webhooks-dev-api-keys",
    ],
    "api-keys-revoke-all": [
      "dynamodb:BatchGetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:DeleteItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:GetItem on table deployment-webhooks-dev-api-keys",
    ],
    "deliveries-publish-notifications": ["dynamodb:GetItem on table deployment-webhooks-dev-api-keys"],
    getCurrentCredential: ["dynamodb:GetItem on table deployment-webhooks-dev-api-keys"],
    updateApiKey: [
      "dynamodb:GetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:UpdateItem on table deployment-webhooks-dev-api-keys",
    ],
    rollApiKey: [
      "dynamodb:DeleteItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:GetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:PutItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:UpdateItem on table deployment-webhooks-dev-api-keys",
    ],
    revokeCredentials: [
      "dynamodb:BatchGetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:DeleteItem on table deployment-webhooks-dev-api-keys",
    ],
    createServiceAccountApiKey: ["dynamodb:PutItem on table deployment-webhooks-dev-api-keys"],
    listServiceAccountApiKeys: ["dynamodb:BatchGetItem on table deployment-webhooks-dev-api-keys"],
    updateServiceAccountApiKey: [
      "dynamodb:GetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:UpdateItem on table deployment-webhooks-dev-api-keys",
    ],
    rollServiceAccountApiKey: [
      "dynamodb:DeleteItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:GetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:PutItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:UpdateItem on table deployment-webhooks-dev-api-keys",
    ],
    deleteServiceAccountApiKey: [
      "dynamodb:DeleteItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:GetItem on table deployment-webhooks-dev-api-keys",
    ],
    deleteServiceAccount: [
      "dynamodb:BatchGetItem on table deployment-webhooks-dev-api-keys",
      "dynamodb:DeleteItem on table deployment-webhooks-dev-api-keys",
    ],
  });
});

test("only the functions that the platform invokes, and those of service accounts, change members", () => {
  expect(
    functionsWith((grant) => /(Put|Update|Delete)Item on table deployment-webhooks-dev-projects$/.test(grant)),
  ).toEqual({
    "projects-upsert-member": ["dynamodb:UpdateItem on table deployment-webhooks-dev-projects"],
    "projects-remove-member": ["dynamodb:DeleteItem on table deployment-webhooks-dev-projects"],
    "projects-sync-members": [
      "dynamodb:DeleteItem on table deployment-webhooks-dev-projects",
      "dynamodb:UpdateItem on table deployment-webhooks-dev-projects",
    ],
    createServiceAccount: ["dynamodb:PutItem on table deployment-webhooks-dev-projects"],
    deleteServiceAccount: ["dynamodb:DeleteItem on table deployment-webhooks-dev-projects"],
  });
});

test("no function may scan a table, administer resources or use other services", () => {
  const actions = rows.flatMap(({ id }) => dev.grants(id)).map((grant) => grant.split(" on ")[0]);
  expect([...new Set(actions)].sort()).toEqual([
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "secretsmanager:GetSecretValue",
    "sns:Publish",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
    "sqs:SendMessage",
  ]);
});

test("no permission of a function contains a wildcard", () => {
  const statements = rows.flatMap(({ id }) => dev.statementsOf(id));
  expect(statements.length).toBeGreaterThan(rows.length);
  // A condition narrows, so its wildcard does not matter.
  const granted = statements.map(({ Action, Resource }) => ({ Action, Resource }));
  expect(JSON.stringify(granted)).not.toContain("*");
  for (const statement of statements) {
    expect(statement.Effect).toBe("Allow");
    expect(statement).not.toHaveProperty("NotAction");
    expect(statement).not.toHaveProperty("NotResource");
  }
});

test("each function has its own role, and permissions only through it", () => {
  const functions = rows.map(({ id }) => dev.functionFor(id));
  const roles = functions.map(({ Properties }) => dev.target(Properties.Role));
  expect(new Set(roles.map(({ id }) => id)).size).toBe(rows.length);
  for (const { Properties } of roles) {
    expect(Properties).not.toHaveProperty("ManagedPolicyArns");
  }
  expect(dev.all("AWS::IAM::ManagedPolicy")).toEqual([]);
});

test.each(rows)("$id gets the locations of the resources it uses, and no others", ({ id, uses }) => {
  const names = Object.keys(dev.functionFor(id).Properties.Environment?.Variables ?? {});
  const locations = names.filter((name) => locationVariables.includes(name));
  expect(locations.sort()).toEqual(variablesOf(uses).sort());
  // The other variables are settings, not locations.
  expect(names.filter((name) => /_(TABLE|URL|ARN)$/.test(name)).sort()).toEqual(locations);
});

test("an environment variable refers to the resource of its name", () => {
  const { Variables } = dev.functionFor("deliveries-fan-out").Properties.Environment;
  expect(dev.target(Variables.WEBHOOKS_TABLE).Properties.TableName).toBe("deployment-webhooks-dev-webhooks");
  expect(dev.target(Variables.DELIVERIES_QUEUE_URL).Properties.QueueName).toBe("deployment-webhooks-dev-deliveries");
  expect(dev.target(Variables.EVENTS_DLQ_URL).Properties.QueueName).toBe(
    "deployment-webhooks-dev-deployment-events-dlq",
  );
});

const ownLogs = ["logs:CreateLogStream on its log group", "logs:PutLogEvents on its log group"];

const tableRows: Record<string, TableRow> = tables;
const queueRows: Record<string, QueueRow> = queues;
const tableOf = (key: string) => tableRows[key] as TableRow;
const queueOf = (key: string) => queueRows[key] as QueueRow;
const partsOf = (index: IndexKey) => index.split("/") as [table: string, index: string];

const fromUses = (uses: Grants) =>
  [...allowedCallsOf(uses)].map((call) => call.replace(/ (table|queue|topic) /, " $1 deployment-webhooks-dev-"));

/** Permissions that the event source mapping of a consumer needs. */
function fromTrigger(trigger: Trigger | undefined): string[] {
  if (trigger?.kind !== "queue") return [];
  const actions = ["ReceiveMessage", "DeleteMessage", "GetQueueAttributes"];
  return actions.map((action) => `sqs:${action} on queue deployment-webhooks-dev-${queueOf(trigger.queue).name}`);
}

/** All variables that contain the location of a resource. */
const locationVariables = [
  ...Object.values(tableRows).map(({ env }) => env),
  ...Object.values(queueRows).flatMap(({ env, deadLetterEnv }) => [env, deadLetterEnv]),
  ...Object.values(topics).map(({ env }) => env),
  "JWT_SECRET_ARN",
];

function variablesOf({
  tables = {},
  queries = [],
  sendsTo = [],
  rejectsTo = [],
  publishesTo = [],
  reads = [],
}: Grants): string[] {
  const tableKeys = new Set([...Object.keys(tables), ...queries.map(partsOf).map(([table]) => table)]);
  return [
    ...[...tableKeys].map((key) => tableOf(key).env),
    ...sendsTo.map((key) => queueOf(key).env),
    ...rejectsTo.map((key) => queueOf(key).deadLetterEnv),
    ...publishesTo.map((key) => topics[key].env),
    ...reads.map(() => "JWT_SECRET_ARN"),
  ];
}

function functionsWith(matches: (grant: string) => boolean): Record<string, string[]> {
  const entries = rows.map(({ id }) => [id, dev.grants(id).filter(matches)] as const);
  return Object.fromEntries(entries.filter(([, grants]) => grants.length > 0));
}
