import type { QueueKey } from "./queues.ts";
import type { TableKey } from "./tables.ts";

/** The DynamoDB actions a function may be granted on a table, by their IAM names. A transaction needs those of its items. */
export type TableAction = "GetItem" | "BatchGetItem" | "Query" | "PutItem" | "UpdateItem" | "DeleteItem";

/** What a function needs: exact actions per table, and the queues it sends to. */
export interface Uses {
  tables?: Partial<Record<TableKey, readonly TableAction[]>>;
  sendsTo?: readonly QueueKey[];
  /** Queues to whose dead letter queue it may send what can never be processed. */
  rejectsTo?: readonly QueueKey[];
}
