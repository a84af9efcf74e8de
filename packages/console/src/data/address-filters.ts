import type { DeliveryErrorCode, DeliveryStatus, EventName, WebhookEventName } from "../../../client/src/client.ts";
import { deliveryErrorCodes, deliveryStatuses, eventNames, webhookEventNames } from "../../../client/src/values.ts";
import type { Query } from "./route.ts";

/* The filters of lists, as an address contains them. They have the names and the values of the API's query parameters. */

export interface EventFilters {
  event?: EventName;
  deployment_id?: string;
}

export interface DeliveryFilters {
  event?: WebhookEventName;
  deployment_id?: string;
  status?: DeliveryStatus;
  error_code?: DeliveryErrorCode;
  /** Start of the period in which the deliveries were created, ISO 8601 in UTC. */
  since?: string;
  /** End of the period, ISO 8601 in UTC. */
  until?: string;
}

/** Reads the filters of a list of deliveries. A value that the API would reject is left out. */
export function deliveryFiltersOf(query: Query): DeliveryFilters {
  return defined({
    status: oneOf(deliveryStatuses, query.status),
    event: oneOf(webhookEventNames, query.event),
    deployment_id: idOf(query.deployment_id),
    error_code: oneOf(deliveryErrorCodes, query.error_code),
    since: instantOf(query.since),
    until: instantOf(query.until),
  });
}

/** Reads the filters of the list of deployment events. A value that the API would reject is left out. */
export function eventFiltersOf(query: Query): EventFilters {
  return defined({ event: oneOf(eventNames, query.event), deployment_id: idOf(query.deployment_id) });
}

/** Returns the id in a text that a user typed or pasted; undefined if it is not a UUID. */
export function idOf(text = ""): string | undefined {
  const id = text.trim().toLowerCase();
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id) ? id : undefined;
}

const oneOf = <Value extends string>(values: readonly Value[], text: string | undefined) =>
  values.find((value) => value === text);

/** Only a time with a time zone: another one would mean another period for each reader of the address. */
function instantOf(text = ""): string | undefined {
  const isInstant = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text));
  return isInstant ? new Date(text).toISOString() : undefined;
}

type Defined<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };

/** Leaves out the fields that are undefined. */
function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<Fields>;
}
