import { randomBytes, randomUUID } from "node:crypto";
import {
  FEED_CURSOR_PATTERN,
  type FeedPosition,
  feedCursor,
  feedStart,
  markOf,
  readFeedCursor,
  SETTLING_MS,
  withReturned,
} from "../../../../functions/deliveries/feed/feed-position.ts";
import { workerRows } from "../../../../functions/foundation/manifest/workers.ts";

const now = Date.parse("2026-11-21T04:04:29.027Z");
const marks = (count: number) => Array.from({ length: count }, () => markOf(randomUUID()));

test.each<[string, FeedPosition]>([
  ["the start", feedStart],
  ["a time", { since: now, returned: [] }],
  ["a place within a pass", { since: 0, pass: { startedAt: now, lastId: randomUUID() }, returned: [] }],
  ["events that were returned", { since: now, returned: marks(720) }],
  ["all of it", { since: now, pass: { startedAt: now, lastId: randomUUID() }, returned: marks(3) }],
])("the cursor of a position with %s reads as the same position", (_, position) => {
  const cursor = feedCursor(position);
  expect(cursor).toMatch(new RegExp(FEED_CURSOR_PATTERN));
  expect(readFeedCursor(cursor)).toEqual(position);
});

test("a position keeps the last 720 marks, each once", () => {
  const [first = "", ...others] = marks(720);
  const [added = ""] = marks(1);
  const { returned } = withReturned({ since: now, returned: [first, ...others] }, [others[0] ?? "", added]);
  expect(returned).toEqual([...others, added]);
});

test.each([
  ["a UUID", randomUUID()],
  ["too short", Buffer.alloc(27).toString("base64url")],
  ["with half a mark", Buffer.alloc(31).toString("base64url")],
  ["with an id outside a pass", Buffer.concat([Buffer.alloc(12), randomBytes(16)]).toString("base64url")],
  ["with other base64", `${feedCursor({ since: now, returned: [] }).slice(0, -1)}_`],
])("a cursor that is %s is rejected", (_, text) => {
  expect(readFeedCursor(text)).toBeUndefined();
});

test("a pass goes back by more than the timeout of the function that stores events", () => {
  const fanOut = workerRows.find(({ id }) => id === "deliveries-fan-out");
  expect(SETTLING_MS).toBeGreaterThanOrEqual(1_000 * ((fanOut?.timeoutSeconds ?? Number.NaN) + 5));
});
