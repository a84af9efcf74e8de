import * as z from "zod/mini";
import type { toRecord } from "../../functions/deliveries/feed/event-presenter.ts";
import { type FieldsOf, id, instant, text } from "./fields.ts";
import { eventNameSchema, payloadSchema } from "./payload.ts";

/** A deployment event in the feed. */
export const eventRecordSchema = z.strictObject({
  id: id("Id of the event. Equal events have equal ids. The ids of its deliveries are others."),
  event: eventNameSchema,
  deployment_id: id("The deployment that the event is about."),
  timestamp: text("Time of the event, ISO 8601 in UTC, as the pipeline wrote it.", { format: "date-time" }),
  received_at: instant("When the service received the event. May be later than the time of the event."),
  payload: payloadSchema,
} satisfies FieldsOf<ReturnType<typeof toRecord>>);
