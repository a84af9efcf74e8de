import { GetCommand, paginateQuery, QueryCommand, type QueryCommandInput, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { TableKey } from "../manifest/tables.ts";
import { batchGet, ConditionsFailedError, dynamo, isConditionFailed, type TransactItem, transact } from "./aws.ts";
import { tableName } from "./env.ts";
import { allOf, changing, isAtMost, type Part, selecting, when } from "./expression.ts";
import { allEnded, inBatches } from "./parallel.ts";

/* Reads and writes of items that several stores make in the same way. All reads are strongly consistent. */

export interface ItemKey {
  TableName: string;
  Key: Record<string, unknown>;
}

/** Returns an item; undefined when it does not exist. */
export async function readItem<Item = Record<string, unknown>>(key: ItemKey): Promise<Item | undefined> {
  const { Item } = await dynamo().send(new GetCommand({ ...key, ConsistentRead: true }));
  return Item as Item | undefined;
}

/** Keys of one request to DynamoDB. */
const MAX_BATCH = 100;

/** Returns the items with these keys, in no defined order. @param isConsistent false = eventually consistent, at half the units */
export async function readMany<Item>(
  table: TableKey,
  keys: Record<string, unknown>[],
  isConsistent = true,
): Promise<Item[]> {
  const name = tableName(table);
  const batches = inBatches(keys, MAX_BATCH).map((batch) => batchGet({ [name]: batch }, isConsistent));
  return (await allEnded(batches)).flatMap((found) => found[name] ?? []) as Item[];
}

/** Returns the items of a partition, which must fit into one page of 1 MB: their number is limited. */
export async function readItems<Item = Record<string, unknown>>(
  table: TableKey,
  key: Part,
  options: Pick<QueryCommandInput, "Limit" | "ProjectionExpression"> = {},
): Promise<Item[]> {
  const { Items = [] } = await dynamo().send(
    new QueryCommand({ TableName: tableName(table), ConsistentRead: true, ...selecting(key), ...options }),
  );
  return Items as Item[];
}

/** Reads the items of a partition page by page. */
export async function* pagesOf<Item>(
  table: TableKey,
  key: Part,
  {
    attributes,
    ...options
  }: Pick<QueryCommandInput, "Limit" | "IndexName" | "ConsistentRead"> & { attributes?: readonly string[] } = {},
): AsyncGenerator<Item[], void, void> {
  const selected = selecting(key, attributes && { attributes });
  const query = { TableName: tableName(table), ConsistentRead: true, ...selected, ...options };
  for await (const { Items = [] } of paginateQuery({ client: dynamo() }, query)) yield Items as Item[];
}

/** Returns the items of a partition, whatever their number. */
export async function readAllItems<Item>(table: TableKey, key: Part): Promise<Item[]> {
  const items: Item[] = [];
  for await (const page of pagesOf<Item>(table, key)) items.push(...page);
  return items;
}

/** Updates an item. @returns false when the condition of the change was not true */
export async function updateIf(
  key: ItemKey,
  change: ReturnType<typeof changing>,
  options: { abortSignal?: AbortSignal } = {},
): Promise<boolean> {
  try {
    await dynamo().send(new UpdateCommand({ ...key, ...change }), options);
    return true;
  } catch (error) {
    if (isConditionFailed(error)) return false;
    throw error;
  }
}

/** Writes all items or none. @returns false when a condition was not true */
export async function transactIf(items: Record<string, TransactItem>): Promise<boolean> {
  try {
    await transact(items);
    return true;
  } catch (error) {
    if (error instanceof ConditionsFailedError) return false;
    throw error;
  }
}

/** Joins the writes of several changes for one transaction. Their names get the index of the change. */
export const joined = (changes: Record<string, TransactItem>[]): Record<string, TransactItem> =>
  Object.fromEntries(
    changes.flatMap((writes, index) => Object.entries(writes).map(([name, item]) => [`${name} ${index}`, item])),
  );

/** Sort key of the item that counts the others of its partition. It sorts before all ids. */
export const COUNTER = "#count";

export interface Counter {
  key: ItemKey;
  attribute: string;
}

interface CountUp extends Counter {
  /** Maximum number of items. */
  limit: number;
  /** Items that are written; absent = 1. */
  count?: number;
  /** Further changes of the item that counts, and a further condition. */
  set?: Record<string, unknown>;
  when?: Part;
}

/** Returns the write that counts more items, never more than the limit, for the transaction that writes them. */
export function countUp({ key, attribute, limit, count = 1, set = {}, when: condition }: CountUp): TransactItem {
  const hasRoom = when`(${isAtMost(attribute, limit - count)})`;
  const change = changing({ set, add: { [attribute]: count }, when: allOf(condition, hasRoom) });
  return { Update: { ...key, ...change, ReturnValuesOnConditionCheckFailure: "ALL_OLD" } };
}

interface CountedInsert extends CountUp {
  /** Returns the error for a counter whose condition is not true. */
  onFull(error: ConditionsFailedError): Error;
}

/**
 * Writes items, one of which is counted: never more than the limit, also under concurrent inserts.
 * @throws ConditionsFailedError when the condition of another item failed
 */
export async function insertCounted(
  { onFull, ...counter }: CountedInsert,
  items: Record<string, TransactItem>,
): Promise<void> {
  try {
    await transact({ counter: countUp(counter), ...items });
  } catch (error) {
    if (error instanceof ConditionsFailedError && error.items.includes("counter")) throw onFull(error);
    throw error;
  }
}

/** Returns the write that counts fewer items, for the transaction that deletes them. */
export const countDown = ({ key, attribute }: Counter, count = 1): TransactItem => ({
  Update: { ...key, ...changing({ add: { [attribute]: -count } }) },
});
