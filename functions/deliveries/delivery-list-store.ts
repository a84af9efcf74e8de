import { paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { LimitedQuery, MeteredReads } from "../access/metered-reads-store.ts";
import { dynamo } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { allEnded } from "../platform/parallel.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";
import type { Delivery, DeliveryStatus } from "./delivery.ts";
import type { DeliveryFilters } from "./list-cursor.ts";

/* Lists deliveries of webhooks. Ids sort by the time of the event. */

/** Upper bound on the rows read for a page. The read units are bounded by the meter: a query reads whole rows, of up to 270 KB. */
const MAX_ROWS_READ = 1_000;
/** The largest query, in rows. */
const MAX_CHUNK = 100;
/** The largest first query of each of several webhooks, in rows: before it, the size of the rows is not known. */
const MAX_FIRST_CHUNK = 5;
/** Upper bound on concurrent queries. */
const PARALLEL_QUERIES = 5;

/** The attributes of a list item. Leaves out the large ones: the body and the attempts. */
const summaryProjection = {
  ProjectionExpression:
    "webhook_id, id, #event, deployment_id, #status, #test, created_at, next_attempt_at, attempt_count, #trigger",
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
 * Reads a page of the deliveries of some webhooks, newest first. A page may have fewer than `limit` items, also none,
 * although more follow, because what it reads is bounded. It merges the lists of the webhooks: an index by project would be
 * another write per delivery. Eventually consistent, at half the units: a change of the last
 * second may be missing.
 * @param webhookIds at most 20: of each at least one row is read
 * @returns `lastId`: the id after which the next page begins; absent on the last page
 */
export async function listPage(
  reads: MeteredReads,
  webhookIds: string[],
  page: PageQuery,
): Promise<{ items: Delivery[]; lastId?: string | undefined }> {
  const chunk = firstChunk(page, webhookIds.length);
  const scans = webhookIds.map((webhookId): Scan => ({ webhookId, found: [], isComplete: false, chunk }));
  for (let rowsLeft = MAX_ROWS_READ; rowsLeft > 0; ) {
    const parallel = Math.min(PARALLEL_QUERIES, Math.max(1, reads.rowsLeft));
    const next = scansToContinue(scans, page.limit, parallel);
    const notBegun = scans.filter(({ isComplete, lastId }) => !isComplete && lastId === undefined).length;
    if (next.length === 0 || (notBegun === 0 && reads.rowsLeft < 1)) break;
    const share = Math.max(1, Math.floor(rowsLeft / next.length));
    const sharers = Math.max(next.length, notBegun);
    const read = (scan: Scan) => readChunk(reads, scan, { limit: Math.min(scan.chunk, share), sharers }, page);
    const counts = await allEnded(next.map(read));
    rowsLeft -= counts.reduce((sum, count) => sum + count, 0);
  }
  return mergedPage(scans, page.limit);
}

/**
 * Returns the rows of the first query of each webhook. Without a filter, one row more than requested shows whether there is
 * a next page. Several webhooks share the page: those with more of it are read further.
 */
function firstChunk({ filters, limit }: PageQuery, webhooks: number): number {
  const wanted = isFiltered(filters) ? MAX_CHUNK : limit + 1;
  return webhooks === 1 ? wanted : Math.min(MAX_FIRST_CHUNK, Math.ceil(wanted / webhooks) + 2);
}

/** Returns whether rows are read that are not on the page. */
const isFiltered = ({ since, until, ...perRow }: DeliveryFilters): boolean =>
  Object.values(perRow).some((value) => value !== undefined);

const newestFirst = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? 1 : -1);
const allFound = (scans: Scan[]): Delivery[] => scans.flatMap(({ found }) => found).sort(newestFirst);

/** Returns the scans that the page waits for: those that may have deliveries newer than its last one. */
function scansToContinue(scans: Scan[], limit: number, parallel: number): Scan[] {
  const incomplete = scans.filter(({ isComplete }) => !isComplete);
  const notBegun = incomplete.filter(({ lastId }) => lastId === undefined);
  if (notBegun.length > 0) return notBegun.slice(0, parallel);
  const oneMore = allFound(scans)[limit];
  // Those that were read least far: what is found beyond them is not on this page.
  return incomplete
    .filter(({ lastId = "" }) => oneMore === undefined || lastId > oneMore.id)
    .sort((a, b) => newestFirst({ id: a.lastId ?? "" }, { id: b.lastId ?? "" }))
    .slice(0, parallel);
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

/** Reads the next rows of a webhook into its scan. @returns the number of rows read */
async function readChunk(
  reads: MeteredReads,
  scan: Scan,
  { limit, sharers }: { limit: number; sharers: number },
  page: PageQuery,
): Promise<number> {
  const { webhookId, found, lastId = page.after } = scan;
  const query = {
    ...queryOf(webhookId, page.filters),
    Limit: isFiltered(page.filters) ? limit : Math.min(limit, page.limit + 1 - found.length),
    ...(lastId !== undefined && { ExclusiveStartKey: { webhook_id: webhookId, id: lastId } }),
  };
  const { Items = [], ScannedCount = Items.length, LastEvaluatedKey } = await reads.query(query, sharers);
  const { error_code } = page.filters;
  const rows = Items as Delivery[];
  found.push(...rows.filter((row) => error_code === undefined || lastErrorOf(row) === error_code));
  scan.lastId = LastEvaluatedKey?.id;
  scan.isComplete = LastEvaluatedKey === undefined;
  scan.chunk = Math.min(scan.chunk * 2, MAX_CHUNK);
  return ScannedCount;
}

const lastErrorOf = ({ attempts = [] }: Delivery) => attempts.at(-1)?.error_code;

function queryOf(webhookId: string, filters: DeliveryFilters): Omit<LimitedQuery, "Limit"> {
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
  readUnits: number;
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
      ReturnConsumedCapacity: "TOTAL",
    },
  );
  for await (const { Items = [], LastEvaluatedKey, ConsumedCapacity } of pages) {
    // Test deliveries are never recovered: their data is a sample.
    const found = (Items as Delivery[]).filter(({ status, test }) => statuses.includes(status) && !test);
    yield {
      found,
      rowsRead: Items.length,
      readUnits: ConsumedCapacity?.CapacityUnits ?? 0,
      lastId: LastEvaluatedKey?.id,
    };
  }
}
