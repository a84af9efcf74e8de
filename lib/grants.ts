import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { type QueueKey, queues as queueRows } from "../functions/queues.ts";
import { type TableKey, type TableRow, tables as tableRows } from "../functions/tables.ts";
import type { TableAction, Uses } from "../functions/uses.ts";
import type { Queues } from "./queues.ts";
import type { Tables } from "./tables.ts";

/** What a row's `uses` may name. */
export interface Data {
  tables: Tables;
  queues: Queues;
}

/** The environment variables that tell a function where the tables and queues it uses are, and no others. */
export function environmentFor(
  { tables = {}, sendsTo = [], rejectsTo = [] }: Uses,
  data: Data,
): Record<string, string> {
  return Object.fromEntries([
    ...tableKeys(tables).map((key) => [tableRows[key].env, data.tables[key].tableName]),
    ...sendsTo.map((key) => [queueRows[key].env, data.queues[key].queue.queueUrl]),
    ...rejectsTo.map((key) => [queueRows[key].deadLetterEnv, data.queues[key].deadLetters.queueUrl]),
  ]);
}

/** The rights that a function needs for what it uses: these actions on these resources, and no others. */
export function statementsFor({ tables = {}, sendsTo = [], rejectsTo = [] }: Uses, data: Data): PolicyStatement[] {
  return [
    ...tableKeys(tables).flatMap((key) => tableStatements(key, tables[key] ?? [], data.tables[key].tableArn)),
    ...sendsTo.map((key) => mayCall(["sqs:SendMessage"], [data.queues[key].queue.queueArn])),
    ...rejectsTo.map((key) => mayCall(["sqs:SendMessage"], [data.queues[key].deadLetters.queueArn])),
  ];
}

/** What Lambda needs to read a queue on a function's behalf. */
export function statementForReading(key: QueueKey, data: Data): PolicyStatement {
  const actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
  return mayCall(actions, [data.queues[key].queue.queueArn]);
}

export function mayCall(actions: string[], resources: string[]): PolicyStatement {
  return new PolicyStatement({ actions, resources });
}

/** A right on a table does not reach its indexes, and of the actions we grant only a query can use one. */
function tableStatements(key: TableKey, actions: readonly TableAction[], tableArn: string): PolicyStatement[] {
  const { indexes = [] }: TableRow = tableRows[key];
  const indexArns = indexes.map((index) => `${tableArn}/index/${index.name}`);
  const onTable = mayCall(
    actions.map((action) => `dynamodb:${action}`),
    [tableArn],
  );
  if (indexArns.length === 0 || !actions.includes("Query")) return [onTable];
  return [onTable, mayCall(["dynamodb:Query"], indexArns)];
}

function tableKeys(used: NonNullable<Uses["tables"]>): TableKey[] {
  return Object.keys(used) as TableKey[];
}
