import type { QueueKey } from "./queues.ts";
import type { TableKey, tables } from "./tables.ts";
import type { TopicKey } from "./topics.ts";

/**
 * The DynamoDB actions that can be granted on a table, by their IAM names. A transaction needs the actions of its
 * items. `Scan` is left out on purpose: it reads a whole table.
 */
export type TableAction =
  | "GetItem"
  | "BatchGetItem"
  | "Query"
  | "PutItem"
  | "UpdateItem"
  | "DeleteItem"
  | "ConditionCheckItem";

export const readActions: readonly TableAction[] = ["GetItem", "BatchGetItem", "Query"];

/** A table key and the name of one of its indexes: `deliveries/due`. */
export type IndexKey = { [Key in TableKey]: `${Key}/${IndexName<(typeof tables)[Key]>}` }[TableKey];

type IndexName<Row> = Row extends { indexes: readonly { name: infer Name extends string }[] } ? Name : never;

/** The key of a secret in Secrets Manager. */
export type SecretKey = "jwtSecret" | "signatureSecret";

/**
 * Options of a stage that a function gets in its environment. Those of deliveries go to all that use their table. With
 * `importedKeysPepper` the function may read the secret too, in a stage that has the option.
 */
export type SettingKey =
  | "credentials"
  | "workflowIssuers"
  | "permissions"
  | "importedKeys"
  | "importedKeysPepper"
  | "secretScanning"
  | "legacySignatureHeader"
  | "events";

/**
 * The AWS permissions of a function: exactly the actions that it calls. IAM enforces them on AWS, and a local run
 * rejects calls that are not listed here.
 */
export interface Grants {
  tables?: Partial<Record<TableKey, readonly TableAction[]>>;
  /** Beginnings of the partition keys that the function may write, by table; absent = any. What it reads is not limited. */
  writesOnly?: Partial<Record<TableKey, string>>;
  /** Indexes that the function queries. A permission on a table does not include its indexes, and vice versa. */
  queries?: readonly IndexKey[];
  /** Queues that the function sends messages to. */
  sendsTo?: readonly QueueKey[];
  /** Queues whose dead-letter queue the function sends invalid messages to. */
  rejectsTo?: readonly QueueKey[];
  /** Topics that the function publishes to. */
  publishesTo?: readonly TopicKey[];
  /** Secrets that the function reads. */
  reads?: readonly SecretKey[];
}
