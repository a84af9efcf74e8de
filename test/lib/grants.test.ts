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

const secretVariables = { jwtSecret: "JWT_SECRET_ARN", signatureSecret: "SIGNATURE_SECRET_ARN" };

/** All variables that contain the location of a resource. */
const locationVariables = [
  ...Object.values(tableRows).map(({ env }) => env),
  ...Object.values(queueRows).flatMap(({ env, deadLetterEnv }) => [env, deadLetterEnv]),
  ...Object.values(topics).map(({ env }) => env),
  ...Object.values(secretVariables),
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
    ...reads.map((key) => secretVariables[key]),
  ];
}
