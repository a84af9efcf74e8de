import type { QueueKey } from "./queues.ts";
import type { TableKey, tables } from "./tables.ts";

/**
 * The DynamoDB actions a function may be granted on a table, by their IAM names. A transaction needs those of its items.
 * `Scan` is not among them: it would read a whole table.
 */
export type TableAction = "GetItem" | "BatchGetItem" | "Query" | "PutItem" | "UpdateItem" | "DeleteItem";

export const readActions: readonly TableAction[] = ["GetItem", "BatchGetItem", "Query"];

/** An index by its table and its name: `deliveries/due`. */
export type IndexKey = { [Key in TableKey]: `${Key}/${IndexName<(typeof tables)[Key]>}` }[TableKey];

type IndexName<Row> = Row extends { indexes: readonly { name: infer Name extends string }[] } ? Name : never;

/** The secrets in Secrets Manager. */
export type SecretKey = "jwtSecret";

/**
 * What a function calls, and so all that it may: exact actions per table, and the indexes, queues and secrets it works with. A
 * local run refuses what is not listed, as IAM does on AWS.
 */
export interface Grants {
  tables?: Partial<Record<TableKey, readonly TableAction[]>>;
  /** Indexes it queries. A right on a table does not reach them, nor the other way round. */
  queries?: readonly IndexKey[];
  sendsTo?: readonly QueueKey[];
  /** Queues to whose dead letter queue it may send what can never be processed. */
  rejectsTo?: readonly QueueKey[];
  reads?: readonly SecretKey[];
}
