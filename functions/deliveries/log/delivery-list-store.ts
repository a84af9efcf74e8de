import { paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { LimitedQuery, MeteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { dynamo } from "../../foundation/platform/aws.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { allOf, selecting, when } from "../../foundation/platform/expression.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { firstIdAt, idAfter } from "../../foundation/platform/uuid.ts";
import type { Delivery, DeliveryStatus } from "../line/delivery.ts";
import type { DeliveryFilters, ListPosition } from "./list-cursor.ts";

/* Lists deliveries of webhooks. Ids sort by the time of the event. */

/** Upper bound on the rows read for a page. The read units are bounded by the meter: a query reads whole rows. */
const MAX_ROWS_READ = 1_000;
/** The largest query, in rows. */
const MAX_CHUNK = 100;
/** Read units of the largest row: 256 KB of payload and 16 KB of attempts. */
const MAX_ROW_UNITS = 34;
/** Webhooks whose first row is read at the same time: a request has not reserved these rows (foundation/budgets/metered-reads-store.ts). */
const PARALLEL_QUERIES = 3;

/**
 * The attributes of a list item: not the body, up to 256 KB. All attempts are read, because an expression cannot name the
 * last one. That costs nothing: a query pays for whole rows.
 */
const summaryAttributes = [
  ...["webhook_id", "id", "event", "deployment_id", "status", "test", "created_at", "next_attempt_at"],
  ...["attempt_count", "attempts", "trigger", "superseded_by"],
];

/** Which page to read. */
interface PageQuery {
  filters: DeliveryFilters;
  limit: number;
  /** Where the page begins; absent = at the newest delivery. */
  position?: ListPosition | undefined;
}

/** How far one webhook was read, newest first. */
interface Scan {
  webhookId: string;
  /** The matching deliveries. */
  found: Delivery[];
  /** The id after which to read on, which may be known from the page before; absent = not known whether it has any row. */
  lastId?: string | undefined;
  isComplete: boolean;
  /** Rows of the next query. */
  chunk: number;
}

const hasBegun = ({ isComplete, lastId }: Scan): boolean => isComplete || lastId !== undefined;

/**
 * Reads a page of the deliveries of some webhooks, newest first. A page may have fewer than `limit` items, also none,
 * although more follow, because what it reads is bounded. It merges the lists of the webhooks: an index by project would be
 * another write per delivery. Eventually consistent, at half the units: a change of the last
 * second may be missing.
 * @param webhookIds at most 20: nothing can be shown before one row of each is read, which may take three pages
 * @returns `next`: where the next page begins; absent on the last page
 */
export async function listPage(
  reads: MeteredReads,
  webhookIds: string[],
  page: PageQuery,
): Promise<{ items: Delivery[]; next?: ListPosition | undefined }> {
  const wanted = isFiltered(page.filters) ? MAX_CHUNK : page.limit + 1;
  const chunk = Math.ceil(wanted / webhookIds.length);
  const scans = webhookIds.map(
    (webhookId): Scan => ({
      webhookId,
      found: [],
      lastId: page.position?.reached?.[webhookId],
      isComplete: false,
      chunk,
    }),
  );
  if (scans.length > 1) await readFirstRows(reads, scans, page);
  let rowsLeft = MAX_ROWS_READ;
  for (;;) {
    const scan = scanToContinue(scans, page.limit);
    if (scan === undefined) return mergedPage(scans, page);
    const isCut = rowsLeft <= 0 || reads.rowsLeft < 1 || (scans.length > 1 && !hasBegun(scan));
    if (isCut) return mergedPage(scans, page, true);
    const share = Math.max(1, Math.floor(reads.rowsLeft / scans.length));
    rowsLeft -= await readChunk(reads, scan, Math.min(scan.chunk, share, rowsLeft), page);
    scan.chunk = Math.min(scan.chunk * 2, MAX_CHUNK);
  }
}

/** Reads the newest row of each webhook, as far as the largest rows would fit into the page. */
async function readFirstRows(reads: MeteredReads, scans: Scan[], page: PageQuery): Promise<void> {
  for (;;) {
    const parallel = Math.min(PARALLEL_QUERIES, Math.floor(reads.unitsLeft / MAX_ROW_UNITS));
    const next = scans.filter((scan) => !hasBegun(scan)).slice(0, parallel);
    if (next.length === 0) return;
    await allEnded(next.map((scan) => readChunk(reads, scan, 1, page)));
  }
}

/** Returns whether rows are read that are not on the page. */
const isFiltered = ({ since, until, ...perRow }: DeliveryFilters): boolean =>
  Object.values(perRow).some((value) => value !== undefined);

const newestFirst = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? 1 : -1);
const allFound = (scans: Scan[]): Delivery[] => scans.flatMap(({ found }) => found).sort(newestFirst);

/**
 * Returns the scan that was read least far, if the page waits for it: what is found beyond it is not on this page.
 * @returns undefined = the page is full, or nothing follows
 */
function scanToContinue(scans: Scan[], limit: number): Scan | undefined {
  const oneMore = allFound(scans)[limit];
  return scans
    .filter(({ isComplete, lastId = END_PREFIX }) => !isComplete && (oneMore === undefined || lastId > oneMore.id))
    .sort((a, b) => newestFirst({ id: a.lastId ?? END_PREFIX }, { id: b.lastId ?? END_PREFIX }))[0];
}

/**
 * Merges what was found. Leaves out what is older than a row that a scan has not reached: newer ones may follow there. The
 * next page reads it again.
 * @param isCut the page ends before it is full: the next one of several webhooks knows how far each was read
 */
function mergedPage(scans: Scan[], { limit, position }: PageQuery, isCut = false) {
  const incomplete = scans.filter(({ isComplete }) => !isComplete);
  const newestReached = incomplete
    .map(({ lastId = END_PREFIX }) => lastId)
    .sort()
    .at(-1);
  const known = allFound(scans).filter(({ id }) => newestReached === undefined || id >= newestReached);
  const items = known.slice(0, limit);
  const after = known.length > limit ? items.at(-1)?.id : newestReached;
  if (after === undefined) return { items };
  if (!isCut || scans.length === 1) return { items, next: { after } };
  const isOnPage = new Set(items);
  const reached = scans.flatMap(({ webhookId, found, isComplete, lastId }) => {
    const left = found.find((delivery) => !isOnPage.has(delivery));
    if (left) return [[webhookId, idAfter(left.id)] as const];
    return isComplete || lastId === undefined ? [] : [[webhookId, lastId] as const];
  });
  // Without a row of each webhook nothing is on the page, and those without one begin where this page began.
  const next = after === END_PREFIX ? position?.after : after;
  return { items, next: { after: next, reached: Object.fromEntries(reached) } };
}

/** Reads the next rows of a webhook into its scan. @returns the number of rows read */
async function readChunk(reads: MeteredReads, scan: Scan, limit: number, page: PageQuery): Promise<number> {
  const { webhookId, found, lastId = page.position?.after } = scan;
  const query = {
    ...queryOf(webhookId, page.filters),
    Limit: isFiltered(page.filters) ? limit : Math.min(limit, page.limit + 1 - found.length),
    ...(lastId !== undefined && { ExclusiveStartKey: { webhook_id: webhookId, id: lastId } }),
  };
  const { Items = [], ScannedCount = Items.length, LastEvaluatedKey } = await reads.query(query);
  const { error_code } = page.filters;
  const rows = Items as Delivery[];
  found.push(...rows.filter((row) => error_code === undefined || lastErrorOf(row) === error_code));
  scan.lastId = LastEvaluatedKey?.id;
  scan.isComplete = LastEvaluatedKey === undefined;
  return ScannedCount;
}

const lastErrorOf = ({ attempts = [] }: Delivery) => attempts.at(-1)?.error_code;

function queryOf(webhookId: string, filters: DeliveryFilters): Omit<LimitedQuery, "Limit"> {
  const { event, status, deployment_id, error_code, since, until } = filters;
  const first = since === undefined ? FIRST_PREFIX : idPrefixOf(since);
  const end = until === undefined ? END_PREFIX : idPrefixOf(until);
  const filter = allOf(
    event !== undefined && when`#event = ${event}`,
    status !== undefined && when`#status = ${status}`,
    deployment_id !== undefined && when`deployment_id = ${deployment_id}`,
    // Fewer rows to return. The last attempt is compared after the query.
    error_code !== undefined && when`#status <> ${"succeeded"} AND attempt_count > ${0}`,
  );
  return {
    TableName: tableName("deliveries"),
    ScanIndexForward: false,
    ...selecting(when`webhook_id = ${webhookId} AND id BETWEEN ${first} AND ${end}`, {
      filter,
      attributes: summaryAttributes,
    }),
  };
}

/** Before and after all ids. */
const FIRST_PREFIX = "0";
const END_PREFIX = "g";

/** Returns the part of an id that has the time: before all ids of that millisecond, and after those of the one before. */
const idPrefixOf = (time: Date): string => firstIdAt(time.getTime()).slice(0, 13);

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

/** The most rows of a page. */
export const SCANNED_ROWS = 500;

/**
 * Yields pages of the deliveries with one of these statuses whose event is not before `since`, oldest first. Leaves out
 * test deliveries.
 */
export async function* findByStatus(
  webhookId: string,
  { since, after }: ScanRange,
  statuses: readonly DeliveryStatus[],
): AsyncGenerator<ScannedPage, void, void> {
  const first = firstIdAt(since.getTime());
  const start = after !== undefined && after >= first ? when`id > ${after}` : when`id >= ${first}`;
  const pages = paginateQuery(
    { client: dynamo(), pageSize: SCANNED_ROWS },
    {
      TableName: tableName("deliveries"),
      ConsistentRead: true,
      ...selecting(when`webhook_id = ${webhookId} AND ${start}`),
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
