import { paginateQuery, QueryCommand, type QueryCommandInput } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";
import type { Delivery, DeliveryStatus } from "./delivery.ts";
import type { DeliveryFilters } from "./list-cursor.ts";

/* Lists deliveries of webhooks. Ids sort by the time of the event. */

/**
 * Upper bounds for a page: rows read, and read units of 4 KB (a row is up to 64 KB and more, and a query reads whole rows).
 * The queries of the last round may exceed the units by 256 (1 MB) each.
 */
const MAX_ROWS_READ = 1_000;
const MAX_READ_UNITS = 2_500;
/** The largest query, in rows. */
const MAX_CHUNK = 100;
/** Upper bound on concurrent queries after the first of each webhook. */
const PARALLEL_QUERIES = 5;

/** The attributes of a list item. Leaves out the large ones: the body and the attempts. */
const summaryProjection = {
  ProjectionExpression:
    "webhook_id, id, #event, deployment_id, #status, #test, created_at, next_attempt_at, attempt_count, #trigger, due_shard, sending_until",
  ExpressionAttributeNames: { "#event": "event", "#status": "status", "#test": "test", "#trigger": "trigger" },
};

/** Which page to read. */
interface PageQuery {
  filters: DeliveryFilters;
  limit: number;
  /** The id after which the page begins; absent = the first page. */
  after?: string | undefined;
}

/** How far one webhook was read, newest first. */
interface Scan {
  webhookId: string;
  /** The matching deliveries. */
  found: Delivery[];
  /** The id of the last row read; absent before the first query. */
  lastId?: string | undefined;
  isComplete: boolean;
  /** Rows of the next query. */
  chunk: number;
}

/**
 * Reads a page of the deliveries of some webhooks, newest first. A page may have fewer than `limit` items although more
 * follow, because the numbers of rows and bytes read are bounded. Strongly consistent.
 * @param webhookIds at most 20: each costs a query
 * @returns `lastId`: the id after which the next page begins; absent on the last page
 */
export async function listPage(
  webhookIds: string[],
  page: PageQuery,
): Promise<{ items: Delivery[]; lastId?: string | undefined }> {
  const chunk = firstChunk(page, webhookIds.length);
  const scans = webhookIds.map((webhookId): Scan => ({ webhookId, found: [], isComplete: false, chunk }));
  let [rowsLeft, unitsLeft] = [MAX_ROWS_READ, MAX_READ_UNITS];
  while (rowsLeft > 0 && unitsLeft > 0) {
    const next = scansToContinue(scans, page.limit);
    if (next.length === 0) break;
    const share = Math.max(1, Math.floor(rowsLeft / next.length));
    const reads = await Promise.all(next.map((scan) => readChunk(scan, Math.min(scan.chunk, share), page)));
    for (const { rows, units } of reads) {
      rowsLeft -= rows;
      unitsLeft -= units;
    }
  }
  return mergedPage(scans, page.limit);
}

/**
 * Returns the rows of the first query of each webhook. Without a filter, one row more than requested shows whether there is
 * a next page. Several webhooks share the page: those with more of it are read further.
 */
function firstChunk({ filters, limit }: PageQuery, webhooks: number): number {
  const { since, until, ...perRow } = filters;
  const isFiltered = Object.values(perRow).some((value) => value !== undefined);
  if (webhooks === 1) return isFiltered ? MAX_CHUNK : limit + 1;
  return isFiltered ? Math.max(10, Math.ceil(MAX_CHUNK / webhooks)) : Math.ceil((limit + 1) / webhooks) + 2;
}

const newestFirst = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? 1 : -1);
const allFound = (scans: Scan[]): Delivery[] => scans.flatMap(({ found }) => found).sort(newestFirst);

/** Returns the scans that the page waits for: those that may have deliveries newer than its last one. */
function scansToContinue(scans: Scan[], limit: number): Scan[] {
  const incomplete = scans.filter(({ isComplete }) => !isComplete);
  const notBegun = incomplete.filter(({ lastId }) => lastId === undefined);
  if (notBegun.length > 0) return notBegun;
  const oneMore = allFound(scans)[limit];
  // Those that were read least far: what is found beyond them is not on this page.
  return incomplete
    .filter(({ lastId = "" }) => oneMore === undefined || lastId > oneMore.id)
    .sort((a, b) => newestFirst({ id: a.lastId ?? "" }, { id: b.lastId ?? "" }))
    .slice(0, PARALLEL_QUERIES);
}

/**
 * Merges what was found. Leaves out what is older than a row that a scan has not reached: newer ones may follow there. The
 * next page reads it again.
 */
function mergedPage(scans: Scan[], limit: number): { items: Delivery[]; lastId?: string | undefined } {
  const reached = scans.flatMap(({ isComplete, lastId }) => (isComplete ? [] : (lastId ?? []))).sort();
  const newestReached = reached.at(-1);
  const known = allFound(scans).filter(({ id }) => newestReached === undefined || id >= newestReached);
  const items = known.slice(0, limit);
  return { items, lastId: known.length > limit ? items.at(-1)?.id : newestReached };
}

/** Reads the next rows of a webhook into its scan. */
async function readChunk(scan: Scan, limit: number, page: PageQuery): Promise<{ rows: number; units: number }> {
  const { webhookId, lastId = page.after } = scan;
  const {
    Items = [],
    ScannedCount = Items.length,
    LastEvaluatedKey,
    ConsumedCapacity,
  } = await dynamo().send(
    new QueryCommand({
      ...queryOf(webhookId, page.filters),
      Limit: limit,
      ...(lastId !== undefined && { ExclusiveStartKey: { webhook_id: webhookId, id: lastId } }),
    }),
  );
  const { error_code } = page.filters;
  const rows = Items as Delivery[];
  scan.found.push(...rows.filter((row) => error_code === undefined || lastErrorOf(row) === error_code));
  scan.lastId = LastEvaluatedKey?.id;
  scan.isComplete = LastEvaluatedKey === undefined;
  scan.chunk = Math.min(scan.chunk * 2, MAX_CHUNK);
  return { rows: ScannedCount, units: ConsumedCapacity?.CapacityUnits ?? 0 };
}

const lastErrorOf = ({ attempts = [] }: Delivery) => attempts.at(-1)?.error_code;

function queryOf(webhookId: string, filters: DeliveryFilters): QueryCommandInput {
  const { event, status, deployment_id, error_code, since, until } = filters;
  const conditions = [
    event !== undefined && "#event = :event",
    status !== undefined && "#status = :status",
    deployment_id !== undefined && "deployment_id = :deployment",
    // An expression cannot name the last attempt. The attempts are read of rows only that may match.
    error_code !== undefined && "#status <> :succeeded AND attempt_count > :none",
  ].filter((each) => each !== false);
  const { ProjectionExpression, ExpressionAttributeNames } = summaryProjection;
  return {
    TableName: tableName("deliveries"),
    ConsistentRead: true,
    ScanIndexForward: false,
    KeyConditionExpression: "webhook_id = :webhook AND id BETWEEN :first AND :end",
    ...(conditions.length > 0 && { FilterExpression: conditions.join(" AND ") }),
    ProjectionExpression: error_code === undefined ? ProjectionExpression : `${ProjectionExpression}, attempts`,
    ExpressionAttributeNames,
    ExpressionAttributeValues: {
      ":webhook": webhookId,
      ":first": since === undefined ? FIRST_PREFIX : idPrefixOf(since),
      ":end": until === undefined ? END_PREFIX : idPrefixOf(until),
      ...(event !== undefined && { ":event": event }),
      ...(status !== undefined && { ":status": status }),
      ...(deployment_id !== undefined && { ":deployment": deployment_id }),
      ...(error_code !== undefined && { ":succeeded": "succeeded", ":none": 0 }),
    },
    ReturnConsumedCapacity: "TOTAL",
  };
}

/** Before and after all ids. */
const FIRST_PREFIX = "0";
const END_PREFIX = "g";

/** Returns the part of an id that has the time: before all ids of that millisecond, and after those of the one before. */
const idPrefixOf = (time: Date): string =>
  timeOrderedUuid(Math.max(0, time.getTime()), new Uint8Array(16)).slice(0, 13);

/** Where a scan begins. */
export interface ScanRange {
  /** Time of the earliest event. */
  since: Date;
  /** The id after which to begin, if it is later than `since`. */
  after?: string | undefined;
}

/** The rows of one query, in the order of their events. */
interface ScannedPage {
  /** The deliveries that were looked for. */
  found: Delivery[];
  rowsRead: number;
  /** Id of the last row read; absent when the query has reached the newest delivery. */
  lastId?: string | undefined;
}

/**
 * Yields pages of the deliveries with one of these statuses whose event is not before `since`, oldest first. Leaves out
 * test deliveries.
 */
export async function* findByStatus(
  webhookId: string,
  { since, after }: ScanRange,
  statuses: readonly DeliveryStatus[],
): AsyncGenerator<ScannedPage, void, void> {
  // The smallest possible id of that millisecond.
  const first = timeOrderedUuid(Math.max(0, since.getTime()), new Uint8Array(16));
  const isContinued = after !== undefined && after >= first;
  const pages = paginateQuery(
    { client: dynamo(), pageSize: 500 },
    {
      TableName: tableName("deliveries"),
      ConsistentRead: true,
      KeyConditionExpression: `webhook_id = :webhook AND id ${isContinued ? ">" : ">="} :start`,
      ExpressionAttributeValues: { ":webhook": webhookId, ":start": isContinued ? after : first },
      ...summaryProjection,
    },
  );
  for await (const { Items = [], LastEvaluatedKey } of pages) {
    // Test deliveries are never recovered: their data is a sample.
    const found = (Items as Delivery[]).filter(({ status, test }) => statuses.includes(status) && !test);
    yield { found, rowsRead: Items.length, lastId: LastEvaluatedKey?.id };
  }
}
