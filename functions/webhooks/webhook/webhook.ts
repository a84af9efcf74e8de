import * as z from "zod/mini";
import type { WebhookEventName } from "../../foundation/events/webhook-event.ts";
import { SUBSCRIPTION } from "../../foundation/manifest/events.ts";
import { present } from "../../foundation/platform/present.ts";
import { timeOrderedUuid } from "../../foundation/platform/uuid.ts";
import { rowFields, rowList } from "../../foundation/schema/import-rows.ts";
import { displayName, fields, invalidField, orRequired, overlapSeconds, uuid } from "../../foundation/schema/input.ts";
import { type WebhookFormat, webhookFormats } from "../formats/format.ts";
import type { Cidr } from "../receiver/receiver-address.ts";
import { normalizedUrl, validateReceiverUrl } from "../receiver/receiver-url.ts";
import { type SignatureScheme, signatureSchemes } from "../receiver/signing.ts";
import type { EventFilter } from "./event-filter.ts";
import { filterInput } from "./filter-input.ts";
import type { FailedAttempt, Health } from "./health.ts";
import { headersInput, type OwnHeader } from "./own-headers.ts";
import { subscriptionProblem } from "./subscribed-names.ts";

export interface Webhook {
  id: string;
  project_id: string;
  url: string;
  /** Chosen by a user; absent = it has none. */
  name?: string;
  /** Names of events, and patterns: `deploy.*`, `*`. */
  events: WebhookEventName[];
  /** Limits the deployment events; absent = it receives all that `events` lists. */
  filter?: EventFilter;
  /** When `events` or `filter` changed last; absent = never. */
  subscribed_at?: string;
  created_at: string;
  /** Of the body of requests; absent = standard. */
  format?: Exclude<WebhookFormat, "standard">;
  /** Names of the headers that a user has added. Their values are with the secrets. Absent = none. */
  header_names?: string[];
  /** `latest`: a state of a deployment is sent only while none is newer (deliveries/sending/newer-states.ts). Absent = every. */
  delivery?: "latest";
  /** How its requests are signed (webhooks/receiver/signature.ts); absent = `hmac`. */
  signatures?: SignatureScheme[];
  /** With `latest`: how long a new state waits for a newer one; absent = not. */
  settle_seconds?: number;
  /** `shadow`: its deliveries are signed and logged, and not sent. Absent = live. */
  mode?: "shadow";
  /** Time of disabling; absent = enabled. */
  disabled_at?: string;
  disabled_reason?: DisabledReason;
  /** Time at which the project was suspended; absent = it is not. Independent of `disabled_at`. */
  suspended_at?: string;
  /** Time of the first failure after the last success; absent = not failing. */
  failing_since?: string;
  /** When its owners were notified that it is failing; absent = they were not, or it is not failing. */
  failing_notified_at?: string;
  /** Due time of the latest notification that it is disabled, which may be to come; absent = there was none. */
  disabled_notified_at?: string;
  /** Earliest time of the next probe of a failing webhook (circuit-breaker.ts). */
  probe_at?: string;
  /** Id of the delivery that was the last probe; absent before the first one. */
  probed_id?: string;
  /** The failure that began `failing_since`; absent when it is not failing, or not known. */
  last_error?: FailedAttempt;
  /** Since when its deliveries use the queue of slow webhooks (functions/deliveries/sending/slow-mark.ts); absent = they do not. */
  slow_since?: string;
  /** The certification of the receiver at this URL that finished last; absent = there was none. */
  last_certification?: LastCertification;
  /** Id of the user who created it; absent = not known. */
  created_by?: string;
  /** Id of the user who changed it last; absent = unchanged, or not known. */
  updated_by?: string;
  /** Time of the last rotation of its secret; absent = never rotated. */
  secret_rotated_at?: string;
  /** Of a subscription of an assistant (webhooks/subscription/): whose it is, and when it ends. Absent = a webhook of the project. */
  subscription?: Subscription;
  /** Random id of the last change by a sender; absent when none has changed the failure state or disabled it. */
  change_id?: string;
}

export interface Subscription {
  user_id: string;
  /** Hash of the secret of the API key that made or refreshed it last; absent = the user was signed in. */
  key_hash?: string;
  expires_at: string;
  /** SHA-256 of its secret, to see another one in a refresh without reading the secret. */
  secret_hash: string;
}

export interface LastCertification {
  id: string;
  finished_at: string;
  /** Whether the receiver passed all checks. */
  passed: boolean;
}

/** `gone`: the receiver responded with 410. `failing`: no success for days. `manual`: disabled by a user or the operator. */
export type DisabledReason = "gone" | "failing" | "manual";

/** Why a webhook sends nothing. `shadow`: it is enabled, and in shadow mode. */
export type StopReason = DisabledReason | "shadow";

export const MAX_WEBHOOKS_PER_PROJECT = 20;

const eventList = z.pipe(
  z
    .array(
      z.string(orRequired("must be the name of an event")).check(
        z.superRefine((listed, context) => {
          const message = subscriptionProblem(listed);
          if (message !== undefined) context.addIssue({ code: "custom", message });
        }),
        z.meta({ pattern: SUBSCRIPTION.source }),
      ),
      orRequired("must be an array of event names"),
    )
    .check(z.minLength(1, "must name at least one event"), z.maxLength(100, "must not repeat events")),
  // Duplicates are accepted and removed.
  z.transform((names: WebhookEventName[]) => [...new Set(names)]),
);

/** The output is the URL as it is requested, so that responses show where deliveries go. */
export const receiverUrl = (allowed: Cidr[]) =>
  z.pipe(
    z.string(orRequired("must be a string")).check(
      z.superRefine((text, context) => {
        const message = validateReceiverUrl(text, allowed);
        if (message !== undefined) context.addIssue({ code: "custom", message });
      }),
    ),
    z.transform(normalizedUrl),
  );

export const webhookModes = ["live", "shadow"] as const;
const signatureList = z.pipe(
  z
    .array(z.enum(signatureSchemes, `must be one of ${signatureSchemes.join(", ")}`), orRequired("must be an array"))
    .check(z.minLength(1, "must name at least one"), z.maxLength(100, "must not repeat any")),
  // Duplicates are accepted and removed.
  z.transform((chosen: SignatureScheme[]) => signatureSchemes.filter((scheme) => chosen.includes(scheme))),
);
const deliveryModes = ["every", "latest"] as const;
const MAX_SETTLE_SECONDS = 60;
const settleRule = `must be a whole number of seconds from 0 to ${MAX_SETTLE_SECONDS}`;

/** The fields of a webhook that a user can change. Null removes one. */
const changeable = (allowed: Cidr[]) => ({
  url: z.optional(receiverUrl(allowed)),
  name: z.optional(z.nullable(displayName)),
  events: z.optional(eventList),
  filter: z.optional(z.nullable(filterInput)),
  enabled: z.optional(z.boolean("must be true or false")),
  mode: z.optional(z.enum(webhookModes, "must be live or shadow")),
  format: z.optional(z.enum(webhookFormats, `must be one of ${webhookFormats.join(", ")}`)),
  headers: z.optional(z.nullable(headersInput)),
  signatures: z.optional(signatureList),
  delivery: z.optional(z.enum(deliveryModes, "must be every or latest")),
  settle_seconds: z.optional(
    z.int(settleRule).check(z.minimum(0, settleRule), z.maximum(MAX_SETTLE_SECONDS, settleRule)),
  ),
});

/** Those of a new one. */
const creatable = (allowed: Cidr[]) => ({
  ...changeable(allowed),
  url: receiverUrl(allowed),
  name: z.optional(displayName),
  events: eventList,
  headers: z.optional(headersInput),
});

/** @param allowed private address ranges that the operator allowed for local use */
export const webhookInput = (allowed: Cidr[]) => {
  const { enabled, ...given } = creatable(allowed);
  return fields(given);
};
export type WebhookInput = z.infer<ReturnType<typeof webhookInput>>;

/** A change of a webhook: at least one field. */
export const webhookPatch = (allowed: Cidr[]) => {
  const names = new Intl.ListFormat("en-GB", { type: "disjunction" }).format(Object.keys(stored));
  return fields(changeable(allowed)).check(
    z.refine((changes) => Object.keys(changes).length > 0, `must contain ${names}`),
  );
};
export type WebhookPatch = z.infer<ReturnType<typeof webhookPatch>>;

export const importInput = fields({ webhooks: rowList, dry_run: z.optional(z.boolean("must be true or false")) });

/** The secret of an imported webhook: any text that a receiver can hold, because it has it already. */
const existingSecret = z.string(orRequired("must be a string")).check(
  z.refine((text) => text.isWellFormed(), "must be valid Unicode"),
  // `trim` also finds a byte order mark.
  z.refine((text) => text.trim() === text, "must not begin or end with a space, a line break or a byte order mark"),
  z.refine((text) => !/\p{Cc}/u.test(text), "must not contain control characters"),
  z.refine((text) => !text.startsWith("v1,whsec_"), "must be given without v1, in front: whsec_ and what follows it"),
  z.refine((text) => Buffer.byteLength(text) >= 16 && Buffer.byteLength(text) <= 256, "must have 16 to 256 bytes"),
);

/** A row of an import. @param allowed as for `webhookInput` */
export const importedWebhookInput = (allowed: Cidr[]) =>
  rowFields({ ...creatable(allowed), project_id: uuid, secret: existingSecret });
export type ImportedWebhook = z.infer<ReturnType<typeof importedWebhookInput>>;

/** `overlap_seconds`: time for which the replaced secret stays valid beside the new one. Default: a day. */
export const rotationInput = fields({ overlap_seconds: overlapSeconds });

const SECRET_BYTES = 32;

/** Number of random bytes for one webhook: 32 for its secret, 16 for its id. */
export const WEBHOOK_RANDOM_BYTES = SECRET_BYTES + 16;

/** Attributes of a webhook, null = it has none. One with the name of the field must be among them. */
type Attributes<Field> = { [Name in keyof Webhook]?: Webhook[Name] | null } & {
  [Name in Field & keyof Webhook]: Webhook[Name] | null | undefined;
};

/**
 * How each field of a change is stored. Create, change, import and responses follow from it, so that no field is accepted and
 * then forgotten: a new one does not compile without its row.
 * @param at time of the change in ISO 8601
 * @param before the webhook that is changed; absent for a new one
 */
const stored = {
  url: ({ url = "", headers }, _at, before) => {
    // Their values may be credentials, which the caller must not receive at a URL of its own.
    if (before?.header_names && headers === undefined && !isSameOrigin(url, before.url)) {
      throw invalidField("headers", "must be given again, or be null: the URL is of another host, scheme or port");
    }
    return { url };
  },
  name: ({ name }) => ({ name }),
  events: ({ events }, at, before) => ({ events, ...(before && { subscribed_at: at }) }),
  filter: ({ filter }, at, before) => ({ filter, ...(before && { subscribed_at: at }) }),
  enabled({ enabled }, at, before) {
    const { disabled_at = at, disabled_reason = "manual" } = before ?? {};
    return enabled ? { disabled_at: null, disabled_reason: null } : { disabled_at, disabled_reason };
  },
  mode: ({ mode }) => ({ mode: mode === "shadow" ? mode : null }),
  format: ({ format }) => ({ format: format === "standard" ? null : format }),
  headers: ({ headers }) => ({ header_names: headers?.map(([name]) => name) ?? null }),
  signatures: ({ signatures }) => ({ signatures: String(signatures) === "hmac" ? null : signatures }),
  delivery: ({ delivery }) => (delivery === "latest" ? { delivery } : { delivery: null, settle_seconds: null }),
  settle_seconds: ({ settle_seconds = 0, delivery }, _at, before) => {
    if (settle_seconds > 0 && (delivery ?? before?.delivery) !== "latest") {
      throw invalidField("settle_seconds", 'needs "delivery": "latest"');
    }
    return { settle_seconds: settle_seconds === 0 ? null : settle_seconds };
  },
} satisfies {
  [Field in keyof WebhookPatch]-?: (given: WebhookPatch, at: string, before?: Webhook) => Attributes<Field>;
};

const isSameOrigin = (one: string, other: string): boolean => new URL(one).origin === new URL(other).origin;

/** Returns the attributes that these fields set and remove. A field that is not given does neither. */
export function attributesOf(given: WebhookPatch, ...context: [at: string, before?: Webhook]) {
  const rows = Object.entries(stored).filter(([field]) => given[field as keyof WebhookPatch] !== undefined);
  const all = rows.flatMap(([, attributes]) => Object.entries(attributes(given, ...context)));
  return {
    set: Object.fromEntries(all.filter(([, value]) => value !== null)) as Partial<Webhook>,
    remove: [...new Set(all.flatMap(([name, value]) => (value === null ? name : [])))],
  };
}

/** A webhook that is not stored yet. */
export interface NewWebhook {
  webhook: Webhook;
  secret: string;
  /** Absent = none. */
  headers?: OwnHeader[];
}

/**
 * Creates a webhook of a project and its signing secret.
 * @param input of a user, or the row of an import
 * @param random `WEBHOOK_RANDOM_BYTES` bytes
 */
export function createWebhook(
  input: WebhookInput & Pick<WebhookPatch, "enabled">,
  project_id: string,
  now: Date,
  random: Buffer,
): NewWebhook {
  const { url, events, headers } = input;
  const id = timeOrderedUuid(now.getTime(), random.subarray(SECRET_BYTES));
  const created_at = now.toISOString();
  const webhook = { id, project_id, url, events, ...attributesOf(input, created_at).set, created_at };
  return { webhook, secret: generateSecret(random), ...(headers && { headers }) };
}

/**
 * Creates a signing secret of 256 random bits. 64 hexadecimal characters are also valid base64, so the same secret
 * works for both signature schemes: as text for `X-Service-Signature`, base64-decoded for Standard Webhooks.
 */
export const generateSecret = (random: Buffer): string => `whsec_${random.subarray(0, SECRET_BYTES).toString("hex")}`;

/** Returns the fields of a webhook that only some have, which are stored under their own name. */
export function optionalFields(webhook: Webhook) {
  const { url, events, enabled, headers, ...optional } = stored;
  return present(webhook, [...(Object.keys(optional) as (keyof typeof optional)[]), "header_names"]);
}

/**
 * Returns the fields of a webhook in a list. `suspended_at` is present only while the project is suspended,
 * `last_certification` only after one.
 */
export const toListItem = (webhook: Webhook, health: Health) => ({ ...listed(webhook), health });

/** Returns the fields of one webhook in detail. */
export const toDetail = (webhook: Webhook, health: Health) => ({ ...detailed(webhook), health });

/** Returns the fields of a webhook whose secret was replaced, including the new one. */
export const toRotated = (webhook: Webhook, secret: string) => ({ ...detailed(webhook), secret });

function listed(webhook: Webhook) {
  const { id, project_id, url, events, created_at, disabled_at, disabled_reason = null, subscription } = webhook;
  const enabled = disabled_at === undefined;
  const fields = { id, project_id, url, events, created_at, enabled, disabled_reason };
  return {
    ...fields,
    ...optionalFields(webhook),
    ...present(webhook, ["suspended_at", "last_certification"]),
    ...(subscription && { subscription: { user_id: subscription.user_id, expires_at: subscription.expires_at } }),
  };
}

/** The three fields of history are never in lists. Here they are always present: a parameter would be more than it saves. */
function detailed(webhook: Webhook) {
  const { disabled_at = null, created_by = null, updated_by = null, secret_rotated_at = null } = webhook;
  return { ...listed(webhook), disabled_at, created_by, updated_by, secret_rotated_at };
}

/** Returns the fields of a new webhook, including its secret. */
export function toCreated(webhook: Webhook, secret: string) {
  const { id, project_id, url, events, created_at } = webhook;
  return { id, project_id, url, ...optionalFields(webhook), secret, events, created_at };
}
