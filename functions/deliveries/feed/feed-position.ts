import { uuidOfHex } from "../../foundation/platform/uuid.ts";

/*
 * Where a reader of the feed is. An event may be stored after a later one: it was late, its message was received again,
 * or two functions wrote at the same time. So a reader who continues after the last event seen would miss it. The feed
 * is therefore read in passes. A pass returns, in order of time, what was stored since a short time before the pass
 * before it began, without what is known to have been returned already.
 */

/**
 * How long before the begin of a pass an event may have got its `stored_at`, and still not be visible to the pass: the
 * timeout of the function that stores it, and 5 seconds by which two clocks may differ.
 */
export const SETTLING_MS = 35_000;

/**
 * An event that is stored later than this after its time is late. A pass reads the events whose time is at most this
 * long before what it looks for. A late event has a copy, which sorts by the time at which it was stored.
 */
export const LATE_MS = 15 * 60_000;

/**
 * Upper bound on the ids in a position: those of 20 events a second for the time that a pass goes back. With more, events are
 * returned again. The cursor has eight characters for each, 5,800 at most; API Gateway accepts 10,240 for URL and headers.
 */
const MAX_RETURNED = 720;

/** A position in the feed, oldest first. */
export interface FeedPosition {
  /** The pass looks for events that were stored at this time or later, in milliseconds since the epoch; 0 = all. */
  since: number;
  /** Present within a pass: when it began, and the id after which it continues. */
  pass?: { startedAt: number; lastId: string } | undefined;
  /** The marks of events that the pass may find although they were returned already. */
  returned: string[];
}

/** The position of a reader who has seen nothing. */
export const feedStart: FeedPosition = { since: 0, returned: [] };

/** Returns what identifies an event in a position: the last 12 hex digits of its id, which come from a hash. */
export const markOf = (id: string): string => id.slice(-12);

/** Returns the id of the event: that of the row, unless the row is the copy of a late event. */
export const eventIdOfRow = ({ id, copy_of }: { id: string; copy_of?: string }): string => copy_of ?? id;

/** Returns the time since which the pass after one that began at `startedAt` looks for events. */
export const nextSince = (startedAt: number): number => Math.max(0, startedAt - SETTLING_MS);

/** Returns the position with further events known to be returned. The oldest marks are left out. */
export const withReturned = (position: FeedPosition, marks: string[]): FeedPosition => ({
  ...position,
  returned: [...new Set([...position.returned, ...marks])].slice(-MAX_RETURNED),
});

const TIME_BYTES = 6;
const ID_BYTES = 16;
const MARK_BYTES = 6;
const HEAD_BYTES = 2 * TIME_BYTES + ID_BYTES;
const NO_ID = "00000000-0000-0000-0000-000000000000";

/** The bytes of the head and of the marks in base64url. Longer than a UUID, so that one is not taken for the other. */
export const FEED_CURSOR_PATTERN = "^[A-Za-z0-9_-]{38,5800}$";

/** Returns the cursor of a position. Clients must not rely on what it contains. */
export function feedCursor({ since, pass, returned }: FeedPosition): string {
  const times = Buffer.alloc(2 * TIME_BYTES);
  times.writeUIntBE(since, 0, TIME_BYTES);
  times.writeUIntBE(pass?.startedAt ?? 0, TIME_BYTES, TIME_BYTES);
  const hex = [pass?.lastId ?? NO_ID, ...returned].join("").replaceAll("-", "");
  return Buffer.concat([times, Buffer.from(hex, "hex")]).toString("base64url");
}

/**
 * Reads a cursor. It needs no signature: a caller who invents one skips only events that they may read anyway.
 * @returns undefined when the text is not a cursor
 */
export function readFeedCursor(cursor: string): FeedPosition | undefined {
  const bytes = Buffer.from(cursor, "base64url");
  if (bytes.length < HEAD_BYTES || (bytes.length - HEAD_BYTES) % MARK_BYTES !== 0) return undefined;
  const startedAt = bytes.readUIntBE(TIME_BYTES, TIME_BYTES);
  const lastId = uuidOfHex(bytes.toString("hex", 2 * TIME_BYTES, HEAD_BYTES));
  const position: FeedPosition = {
    since: bytes.readUIntBE(0, TIME_BYTES),
    ...(startedAt > 0 && { pass: { startedAt, lastId } }),
    returned: bytes.toString("hex", HEAD_BYTES).match(/.{12}/g) ?? [],
  };
  return feedCursor(position) === cursor ? position : undefined;
}
