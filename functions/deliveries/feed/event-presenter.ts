import * as z from "zod/mini";
import { deploymentEventRows } from "../../foundation/events/catalogue.ts";
import { parseJsonExactly } from "../../foundation/events/deployment-event.ts";
import { eventName } from "../../foundation/events/event-name-input.ts";
import { canonicalUuid } from "../../foundation/platform/uuid.ts";
import { fields, uuid } from "../../foundation/schema/input.ts";
import { page, pageFields } from "../../foundation/schema/page.ts";
import type { FeedEvent } from "./event-feed-store.ts";
import { eventIdOfRow, FEED_CURSOR_PATTERN, readFeedCursor } from "./feed-position.ts";

/* The API representation of deployment events, and the query parameters of the feed. */

const payloadShape = z.looseObject({ timestamp: z.string() });

/** Converts a stored event to a record of the feed. The payload is the one that receivers get. */
export function toRecord(row: FeedEvent) {
  const { event, deployment_id, received_at, body } = row;
  const payload = parseJsonExactly(body);
  const { timestamp } = payloadShape.parse(payload);
  return { id: eventIdOfRow(row), event, deployment_id, timestamp, received_at, payload };
}

const feedOrders = ["newest", "oldest"] as const;

const AFTER_RULE = "must come from the Link header of a page with the same order";
const isFeedCursor = (text: string) => new RegExp(FEED_CURSOR_PATTERN).test(text) && readFeedCursor(text) !== undefined;
const isCursorOf = (order: (typeof feedOrders)[number] | undefined, after: string) =>
  order === "oldest" ? isFeedCursor(after) : canonicalUuid(after) === after;

/** Query parameters of the feed. */
export const feedQuery = page(
  fields({
    order: z.optional(z.enum(feedOrders, `must be ${feedOrders.join(" or ")}`)),
    event: z.optional(eventName(() => [...deploymentEventRows().keys()])),
    deployment_id: z.optional(uuid),
    after: z.optional(z.string()),
    limit: pageFields.limit,
  }).check(
    z.refine(({ order, after }) => after === undefined || isCursorOf(order, after), {
      path: ["after"],
      error: AFTER_RULE,
    }),
  ),
);
