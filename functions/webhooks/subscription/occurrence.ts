import type { FormattedEvent } from "../formats/message.ts";

/** What an assistant accepts. */
const MAX_BYTES = 256 * 1024;

/**
 * Returns the body that an assistant gets: an event of MCP. Its `eventId` is the `webhook-id` of the request, because
 * clients compare them, and stays in a repetition. What the pipeline wrote is in `details`, apart from what this
 * service says.
 */
export function occurrence({
  deliveryId,
  event,
  project_id,
  deployment_id,
  timestamp,
  sequence,
  data,
}: FormattedEvent): string {
  const bodyWith = (details: object) =>
    JSON.stringify({
      eventId: deliveryId,
      name: event,
      timestamp,
      data: { project_id, deployment_id, sequence, details },
      // Nothing is replayed: a delivery is retried for more than a day, and then in the log of the webhook.
      cursor: null,
    });
  const body = bodyWith(data);
  return Buffer.byteLength(body) <= MAX_BYTES ? body : bodyWith({});
}
