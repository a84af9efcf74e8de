import { eventRow, isFinal } from "../../foundation/events/catalogue.ts";
import { parseJsonExactly, sequenceOf } from "../../foundation/events/deployment-event.ts";
import { type Formatted, formatted } from "../../webhooks/formats/format.ts";
import type { FormattedEvent } from "../../webhooks/formats/message.ts";
import { occurrence } from "../../webhooks/subscription/occurrence.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import type { Delivery } from "../line/delivery.ts";

/** What a request carries, besides its signatures. */
export interface DeliveryContent extends Partial<Formatted> {
  body: string;
  sequence: string;
}

/**
 * Returns body and content type of a delivery in the format of its webhook. The stored body is the standard one: a
 * webhook that gets another format while deliveries wait gets them in that format. Each attempt has the same bytes
 * until then.
 */
export function contentOf(
  { id, event, body, test = false }: Pick<Delivery, "id" | "event" | "body" | "test">,
  { format, subscription }: Pick<Webhook, "format" | "subscription">,
): DeliveryContent {
  const { tone = "neutral" } = eventRow(event) ?? {};
  const sequence = String(sequenceOf(id, isFinal(event)));
  if (format === undefined && subscription === undefined) return { body, sequence };
  const fields = parseJsonExactly(body) as Pick<FormattedEvent, "project_id" | "deployment_id" | "timestamp" | "data">;
  const all = { ...fields, deliveryId: id, event, tone, sequence, isTest: test };
  if (format === undefined) return { body: occurrence(all), sequence };
  return { ...formatted(format, all), sequence };
}
