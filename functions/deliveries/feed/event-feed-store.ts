import type { LimitedQuery, MeteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { allOf, type Part, selecting, when } from "../../foundation/platform/expression.ts";
import { firstIdAt } from "../../foundation/platform/uuid.ts";
import type { StoredEvent } from "./event-store.ts";
import {
  eventIdOfRow,
  type FeedPosition,
  feedCursor,
  feedStart,
  LATE_MS,
  markOf,
  nextSince,
  readFeedCursor,
  withReturned,
} from "./feed-position.ts";

/* Reads the feed: the deployment events of a project. */

/** Upper bound on the rows read for one page. The read units, and with them the bytes, are bounded by the meter. */
const MAX_ROWS_READ = 1_000;

/** A row of the feed. */
export type FeedEvent = Pick<
  StoredEvent,
  "id" | "event" | "deployment_id" | "body" | "received_at" | "stored_at" | "copy_of"
>;

export interface FeedPage {
  items: FeedEvent[];
  /** The `after` of the next page; absent on the last one. A page may be empty although more follow. */
  next?: string | undefined;
  /** The `after` with which to follow the feed from here, oldest first; absent when this page does not end or begin. */
  follow?: string | undefined;
}

interface Filters {
  event?: string | undefined;
  deployment_id?: string | undefined;
}

/** Which page to read. */
interface FeedQuery extends Filters {
  limit: number;
  /** The `next` or `follow` of an earlier page; absent = the first page. */
  after?: string | undefined;
}

/** Reads a page of a project's events, newest first. */
export async function newestPage(
  reads: MeteredReads,
  projectId: string,
  { limit, after, ...filters }: FeedQuery,
  now: Date,
): Promise<FeedPage> {
  const range = after === undefined ? undefined : when`id < ${after}`;
  const { rows, lastId } = await readRows(reads, projectId, { range, isForward: false, limit, filters });
  const isFirst = after === undefined;
  return { items: rows, next: lastId, follow: isFirst ? feedCursor(nextPass(now.getTime(), rows)) : undefined };
}

/**
 * Reads a page of a project's events, oldest first. Each event is returned at least once to a reader who follows the
 * cursors, however late it was stored.
 */
export async function oldestPage(
  reads: MeteredReads,
  projectId: string,
  { limit, after, ...filters }: FeedQuery,
  now: Date,
): Promise<FeedPage> {
  const position = (after === undefined ? undefined : readFeedCursor(after)) ?? feedStart;
  const startedAt = position.pass?.startedAt ?? now.getTime();
  const { rows, lastId, found } = await readRows(reads, projectId, {
    range: when`id > ${position.pass?.lastId ?? firstIdOf(position)}`,
    isForward: true,
    limit,
    filters,
    position,
  });
  const later = nextPass(startedAt, found);
  const isWholePass = position.pass === undefined && lastId === undefined;
  const known = isWholePass ? later : withReturned({ ...later, returned: position.returned }, later.returned);
  if (lastId === undefined) return { items: rows, follow: feedCursor(known) };
  const pass = { startedAt, lastId };
  return { items: rows, next: feedCursor({ since: position.since, pass, returned: known.returned }) };
}

/** Returns an id before those of all events, except the late ones, that were stored at `since` or later. */
const firstIdOf = ({ since }: FeedPosition): string => firstIdAt(since - LATE_MS);

/** Returns where the pass begins that follows a pass or a page which has found these rows. */
function nextPass(startedAt: number, found: FeedEvent[]): FeedPosition {
  const since = nextSince(startedAt);
  const recent = found.filter(({ stored_at }) => stored_at === undefined || Date.parse(stored_at) >= since);
  return withReturned({ since, returned: [] }, recent.map(eventIdOfRow).map(markOf));
}

interface Read {
  /** Of the ids; undefined = all. */
  range: Part | undefined;
  isForward: boolean;
  limit: number;
  filters: Filters;
  /** Only what a reader at this position has not seen. Absent = all events, without the copies of late ones. */
  position?: FeedPosition;
}

interface RowsRead {
  rows: FeedEvent[];
  /** Those of `rows`, and those that were returned before. */
  found: FeedEvent[];
  /** The id after which to continue; undefined = nothing follows. */
  lastId?: string | undefined;
}

/** Reads the matching rows, strongly consistent, up to a page or to the upper bounds. */
async function readRows(reads: MeteredReads, projectId: string, read: Read): Promise<RowsRead> {
  const { limit, position } = read;
  const isNew = newTo(position);
  const query = queryOf(projectId, read);
  const rows: FeedEvent[] = [];
  const found: FeedEvent[] = [];
  let rowsRead = 0;
  let startKey: Record<string, unknown> | undefined;
  for (;;) {
    const Limit = isFiltered(read) ? MAX_ROWS_READ - rowsRead : limit + 1 - rows.length;
    const {
      Items = [],
      ScannedCount,
      LastEvaluatedKey,
    } = await reads.query({
      ...query,
      Limit,
      ExclusiveStartKey: startKey,
    });
    for (const row of Items as FeedEvent[]) {
      const isShown = isNew(row);
      if (isShown && rows.length === limit) return { rows, found, lastId: rows.at(-1)?.id };
      found.push(row);
      if (!isShown) continue;
      rows.push(row);
    }
    rowsRead += ScannedCount ?? Items.length;
    startKey = LastEvaluatedKey;
    if (startKey === undefined) return { rows, found };
    const isBoundReached = rowsRead >= MAX_ROWS_READ || reads.rowsLeft < 1;
    if (isBoundReached) return { rows, found, lastId: String(startKey.id) };
  }
}

/** Returns whether rows are read that are not on the page. Without, one more row than requested shows whether there is a next page. */
const isFiltered = ({ filters, position }: Read): boolean =>
  position !== undefined || Object.values(filters).some((value) => value !== undefined);

/** Returns whether a row is shown to a reader at a position. */
function newTo(position: FeedPosition | undefined): (row: FeedEvent) => boolean {
  if (position === undefined) return () => true;
  const returned = new Set(position.returned);
  const firstId = firstIdOf(position);
  // The pass finds the late event itself, too, if its id is not before those that the pass reads.
  const isFoundTwice = ({ copy_of }: FeedEvent) => copy_of !== undefined && copy_of > firstId;
  return (row) => !isFoundTwice(row) && !returned.has(markOf(eventIdOfRow(row)));
}

function queryOf(projectId: string, { range, isForward, filters, position }: Read): Omit<LimitedQuery, "Limit"> {
  const { event, deployment_id } = filters;
  const since = position && new Date(position.since).toISOString();
  const filter = allOf(
    event !== undefined && when`#event = ${event}`,
    deployment_id !== undefined && when`deployment_id = ${deployment_id}`,
    // Rows of earlier versions have no `stored_at`.
    since === undefined
      ? when`attribute_not_exists(copy_of)`
      : when`(stored_at >= ${since} OR attribute_not_exists(stored_at))`,
  );
  const attributes = ["id", "event", "deployment_id", "body", "received_at", "stored_at", "copy_of"];
  return {
    TableName: tableName("events"),
    ConsistentRead: true,
    ScanIndexForward: isForward,
    ...selecting(allOf(when`project_id = ${projectId}`, range), { filter, attributes }),
  };
}
