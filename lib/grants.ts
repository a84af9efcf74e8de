import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { type Grants, type IndexKey, readActions, type TableAction } from "../functions/manifest/grants-schema.ts";
import { type QueueKey, queues as queueRows } from "../functions/manifest/queues.ts";
import { type TableKey, type TableRow, tables as tableRows } from "../functions/manifest/tables.ts";
import type { Queues } from "./queues.ts";
import type { Tables } from "./tables.ts";

/** What a row's `uses` may name. */
export interface Data {
  tables: Tables;
  queues: Queues;
}

/** The environment variables that tell a function where the tables and queues it uses are, and no others. */
export function environmentFor(uses: Grants, data: Data): Record<string, string> {
  const { sendsTo = [], rejectsTo = [] } = uses;
  return Object.fromEntries([
    ...tablesOf(uses).map((key) => [tableRows[key].env, data.tables[key].tableName]),
    ...sendsTo.map((key) => [queueRows[key].env, data.queues[key].queue.queueUrl]),
    ...rejectsTo.map((key) => [queueRows[key].deadLetterEnv, data.queues[key].deadLetters.queueUrl]),
  ]);
}

/** The tables that a function reaches, itself or an index of it. */
export function tablesOf({ tables = {}, queries = [] }: Grants): TableKey[] {
  return [...new Set([...tableKeys(tables), ...queries.map((index) => indexOf(index).table)])];
}

/**
 * The rights that a function needs for what it uses: these actions on these resources, and no others. The right to read a
 * secret comes with the secret (jwt-secret.ts).
 */
export function statementsFor(uses: Grants, data: Data): PolicyStatement[] {
  const { tables = {}, queries = [], sendsTo = [], rejectsTo = [] } = uses;
  return [
    ...tableKeys(tables).map((key) => tableStatement(key, tables[key] ?? [], data.tables[key].tableArn)),
    ...queries.map((index) => allow(["dynamodb:Query"], [indexArn(index, data)])),
    ...sendsTo.map((key) => allow(["sqs:SendMessage"], [data.queues[key].queue.queueArn])),
    ...rejectsTo.map((key) => allow(["sqs:SendMessage"], [data.queues[key].deadLetters.queueArn])),
  ];
}

/** What Lambda needs to read a queue on a function's behalf. */
export function statementForReading(key: QueueKey, data: Data): PolicyStatement {
  const actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
  return allow(actions, [data.queues[key].queue.queueArn]);
}

export function allow(actions: string[], resources: string[]): PolicyStatement {
  return new PolicyStatement({ actions, resources });
}

/**
 * Who may write secrets but not read them must not get them as what a write returns.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
 */
function tableStatement(key: TableKey, actions: readonly TableAction[], tableArn: string): PolicyStatement {
  const { isSecret }: TableRow = tableRows[key];
  const isBlind = isSecret && !actions.some((action) => readActions.includes(action));
  return new PolicyStatement({
    actions: actions.map((action) => `dynamodb:${action}`),
    resources: [tableArn],
    ...(isBlind && { conditions: { StringEqualsIfExists: { "dynamodb:ReturnValues": "NONE" } } }),
  });
}

function indexArn(index: IndexKey, data: Data): string {
  const { table, name } = indexOf(index);
  return `${data.tables[table].tableArn}/index/${name}`;
}

function indexOf(index: IndexKey): { table: TableKey; name: string } {
  const [table, name] = index.split("/") as [TableKey, string];
  return { table, name };
}

function tableKeys(used: NonNullable<Grants["tables"]>): TableKey[] {
  return Object.keys(used) as TableKey[];
}
