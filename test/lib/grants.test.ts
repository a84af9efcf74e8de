import { endpoints } from "../../functions/endpoints.ts";
import { deadLetterName, type QueueKey, type QueueRow, queues } from "../../functions/queues.ts";
import { type TableKey, type TableRow, tables } from "../../functions/tables.ts";
import type { Uses } from "../../functions/uses.ts";
import { type Trigger, workers } from "../../functions/workers.ts";
import { dev } from "./synthesised.ts";

interface Row {
  file: string;
  uses: Uses;
  trigger?: Trigger;
}

const rows: Row[] = [...endpoints, ...workers];

test.each(rows)("$file may do what its row says and nothing else", (row) => {
  expect(dev.grants(row.file)).toEqual([...ownLogs, ...fromUses(row.uses), ...fromTrigger(row.trigger)].sort());
});

test("only the functions that make, sign with and remove signing secrets reach them", () => {
  expect(whoMay((grant) => grant.endsWith("table dev-webhook-secrets"))).toEqual({
    "webhooks/create": ["dynamodb:PutItem on table dev-webhook-secrets"],
    "webhooks/rotate-secret": ["dynamodb:UpdateItem on table dev-webhook-secrets"],
    "webhooks/delete": ["dynamodb:DeleteItem on table dev-webhook-secrets"],
    "deliveries/send": ["dynamodb:GetItem on table dev-webhook-secrets"],
  });
});

test("only the authorizer reads the JWT secret", () => {
  expect(whoMay((grant) => grant.startsWith("secretsmanager:"))).toEqual({
    authorizer: ["secretsmanager:GetSecretValue on secret JwtSecret"],
  });
});

test("no function has rights by another way than its own role", () => {
  const roles = dev.all("AWS::Lambda::Function").map(({ Properties }) => dev.target(Properties.Role).id);
  expect(new Set(roles).size).toBe(rows.length);
  expect(dev.all("AWS::IAM::Policy")).toHaveLength(rows.length);
  expect(dev.all("AWS::IAM::ManagedPolicy")).toEqual([]);
});

test.each(rows)("$file is told where the things it uses are, and nothing more", ({ file, uses, trigger }) => {
  const names = Object.keys(dev.functionFor(file).Properties.Environment?.Variables ?? {});
  const expected = [
    ...tableKeys(uses).map((key) => tables[key].env),
    ...(uses.sendsTo ?? []).map((key) => queues[key].env),
    ...(uses.rejectsTo ?? []).map((key) => queues[key].deadLetterEnv),
    ...(trigger?.kind === "authorizer" ? ["JWT_SECRET_ARN"] : []),
  ];
  expect(names.sort()).toEqual(expected.sort());
});

test("an environment variable holds the resource of its name", () => {
  const { Variables } = dev.functionFor("deliveries/fan-out").Properties.Environment;
  expect(dev.target(Variables.WEBHOOKS_TABLE).Properties.TableName).toBe("dev-webhooks");
  expect(dev.target(Variables.DELIVERIES_QUEUE_URL).Properties.QueueName).toBe("dev-deliveries");
  expect(dev.target(Variables.EVENTS_DLQ_URL).Properties.QueueName).toBe("dev-deployment-events-dlq");
});

const ownLogs = ["logs:CreateLogStream on its log group", "logs:PutLogEvents on its log group"];

function fromUses(uses: Uses): string[] {
  return [
    ...tableKeys(uses).flatMap((key) => (uses.tables?.[key] ?? []).flatMap((action) => onTable(action, tables[key]))),
    ...(uses.sendsTo ?? []).map((key) => `sqs:SendMessage on queue dev-${queues[key].name}`),
    ...(uses.rejectsTo ?? []).map((key) => `sqs:SendMessage on queue dev-${deadLetterName(queues[key])}`),
  ];
}

function onTable(action: string, { name, indexes = [] }: TableRow): string[] {
  const onIndexes = action === "Query" ? indexes.map((index) => `/index/${index.name}`) : [];
  return ["", ...onIndexes].map((path) => `dynamodb:${action} on table dev-${name}${path}`);
}

function fromTrigger(trigger: Trigger | undefined): string[] {
  switch (trigger?.kind) {
    case "authorizer":
      return ["secretsmanager:GetSecretValue on secret JwtSecret"];
    case "queue":
      return ["ReceiveMessage", "DeleteMessage", "GetQueueAttributes"].map(
        (action) => `sqs:${action} on queue dev-${rowOf(trigger.queue).name}`,
      );
    default:
      return [];
  }
}

function whoMay(what: (grant: string) => boolean): Record<string, string[]> {
  const matches = rows.map(({ file }) => [file, dev.grants(file).filter(what)] as const);
  return Object.fromEntries(matches.filter(([, grants]) => grants.length > 0));
}

const rowOf = (key: QueueKey): QueueRow => queues[key];

const tableKeys = (uses: Uses) => Object.keys(uses.tables ?? {}) as TableKey[];
