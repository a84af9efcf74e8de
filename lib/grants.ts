import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import {
  type Grants,
  type IndexKey,
  readActions,
  type TableAction,
} from "../functions/foundation/manifest/grants-schema.ts";
import type { QueueKey } from "../functions/foundation/manifest/queues.ts";
import { type TableKey, type TableRow, tables as tableRows } from "../functions/foundation/manifest/tables.ts";
import type { Queues } from "./queues.ts";
import type { Tables } from "./tables.ts";
import type { Topics } from "./topics.ts";

/** The tables, queues and topics of a stage, to which the `uses` of a row refers. */
export interface StageResources {
  tables: Tables;
  queues: Queues;
  topics: Topics;
}

/** The fields of a row from which the grants of its function are derived. */
export interface FunctionRow {
  id: string;
  uses: Grants;
}

/** Returns the files of the functions whose row grants an action on a table or one of its indexes, sorted. */
export function idsGranted(key: TableKey, action: string, rows: readonly FunctionRow[]): string[] {
  const isGranted = ({ tables = {}, queries = [] }: Grants) =>
    tables[key]?.some((granted) => granted === action) ||
    (action === "Query" && queries.some((index) => indexOf(index).table === key));
  return rows.flatMap(({ id, uses }) => (isGranted(uses) ? [id] : [])).sort();
}

/** Returns the tables that a function uses, directly or through an index. */
export function tablesOf({ tables = {}, queries = [] }: Grants): TableKey[] {
  return [...new Set([...tableKeys(tables), ...queries.map((index) => indexOf(index).table)])];
}

/**
 * Returns the IAM statements that allow exactly the actions in `uses` on exactly these resources, without those for tables
 * of secrets. They are part of the role: a policy of its own would be one more resource per function. The permission to read
 * the JWT secret is granted in jwt-secret.ts.
 */
export function statementsFor(uses: Grants, data: StageResources): PolicyStatement[] {
  const { queries = [], sendsTo = [], rejectsTo = [], publishesTo = [] } = uses;
  return [
    ...tableStatements(uses, data, isOrdinary),
    ...queries.map((index) => allow(["dynamodb:Query"], [indexArn(index, data)])),
    ...sendsTo.map((key) => allow(["sqs:SendMessage"], [data.queues[key].queue.queueArn])),
    ...rejectsTo.map((key) => allow(["sqs:SendMessage"], [data.queues[key].deadLetters.queueArn])),
    ...publishesTo.map((key) => allow(["sns:Publish"], [data.topics[key].topic.topicArn])),
  ];
}

/** Returns the IAM statements that allow exactly the actions in `uses` on tables of secrets. */
export const secretStatementsFor = (uses: Grants, data: StageResources): PolicyStatement[] =>
  tableStatements(uses, data, isSecretTable);

/** Returns the statement that the event source mapping of a function needs to consume a queue. */
export function statementForConsuming(key: QueueKey, data: StageResources): PolicyStatement {
  const actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
  return allow(actions, [data.queues[key].queue.queueArn]);
}

const isSecretTable = (key: TableKey): boolean => (tableRows[key] as TableRow).isSecret ?? false;
const isOrdinary = (key: TableKey): boolean => !isSecretTable(key);

const tableStatements = (
  { tables: used = {}, writesOnly = {} }: Grants,
  data: StageResources,
  isIncluded: (key: TableKey) => boolean,
): PolicyStatement[] =>
  tableKeys(used)
    .filter(isIncluded)
    .flatMap((key) => {
      const { tableArn } = data.tables[key];
      const actions = used[key] ?? [];
      const beginning = writesOnly[key];
      if (beginning === undefined) return [tableStatement(key, actions, tableArn)];
      const [reads, writes] = [actions.filter(isRead), actions.filter((action) => !isRead(action))];
      return [tableStatement(key, reads, tableArn), writeStatement(beginning, writes, tableArn)];
    });

const isRead = (action: TableAction): boolean => readActions.includes(action);

/**
 * Returns the statement for writes of items whose partition key has this beginning. `ForAllValues` alone is true for a request
 * without partition keys, so the key must be present.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
 */
const writeStatement = (beginning: string, writes: readonly TableAction[], tableArn: string): PolicyStatement =>
  new PolicyStatement({
    actions: writes.map((action) => `dynamodb:${action}`),
    resources: [tableArn],
    conditions: {
      "ForAllValues:StringLike": { "dynamodb:LeadingKeys": [`${beginning}*`] },
      Null: { "dynamodb:LeadingKeys": "false" },
    },
  });

export function allow(actions: string[], resources: string[]): PolicyStatement {
  return new PolicyStatement({ actions, resources });
}

/**
 * Returns the statement for one table. A function that may write to a table of secrets but not read it must not get an
 * item as the return value of a write (ReturnValues), hence the condition. IAM has no key for
 * ReturnValuesOnConditionCheckFailure: a local run denies it (bin/emulator/permissions.ts), so that no store uses it.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
 */
function tableStatement(key: TableKey, actions: readonly TableAction[], tableArn: string): PolicyStatement {
  const { isSecret }: TableRow = tableRows[key];
  const isWriteOnly = isSecret && !actions.some(isRead);
  return new PolicyStatement({
    actions: actions.map((action) => `dynamodb:${action}`),
    resources: [tableArn],
    ...(isWriteOnly && { conditions: { StringEqualsIfExists: { "dynamodb:ReturnValues": "NONE" } } }),
  });
}

function indexArn(index: IndexKey, data: StageResources): string {
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
