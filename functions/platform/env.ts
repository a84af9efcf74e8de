import { type QueueKey, queues } from "../manifest/queues.ts";
import { type TableKey, tables } from "../manifest/tables.ts";
import { SettingError } from "./errors.ts";

/*
 * The one place that reads environment variables, and only when a value is asked for: importing a handler needs none.
 */

function required(name: string): string {
  const value = optional(name);
  if (value === undefined) throw new SettingError(`${name} is not set`);
  return value;
}

function optional(name: string): string | undefined {
  return process.env[name] || undefined;
}

/** @throws SettingError when the text is not a list of whole seconds */
function secondsList(name: string, text: string): number[] {
  return text.split(",").map((part) => wholeSeconds(name, part));
}

function wholeSeconds(name: string, text: string): number {
  if (!/^\s*\d{1,9}\s*$/.test(text)) {
    throw new SettingError(`${name} takes whole seconds of zero or more, not "${text}"`);
  }
  return Number(text);
}

function seconds(name: string, fallback: number): number {
  const text = optional(name);
  return text === undefined ? fallback : wholeSeconds(name, text);
}

export const tableName = (table: TableKey): string => required(tables[table].env);
export const queueUrl = (queue: QueueKey): string => required(queues[queue].env);
export const deadLetterUrl = (queue: QueueKey): string => required(queues[queue].deadLetterEnv);

const DEFAULT_LAST_USED_RESOLUTION_SECONDS = 60;
/** Longer than the queue usually takes and one attempt can last. */
const DEFAULT_DELIVERY_GRACE_SECONDS = 120;
/** All attempts of a delivery are kept in its row, whose size is bounded. */
const MAX_RETRIES = 20;
const DEFAULT_JWT_MAX_LIFETIME_SECONDS = 3600;
const DEFAULT_JWT_CLOCK_SKEW_SECONDS = 60;
const DEFAULT_DISABLE_AFTER_SECONDS = 5 * 24 * 3600;

export const settings = {
  /** Name of the stage, which tells the metrics of one from those of another. */
  stage: () => optional("STAGE") ?? "local",
  /** How old `last_used_at` may get while a key is in use. */
  lastUsedResolutionSeconds: () => seconds("LAST_USED_RESOLUTION_SECONDS", DEFAULT_LAST_USED_RESOLUTION_SECONDS),
  /** Waits between the attempts of a delivery, in seconds; undefined = the default schedule. */
  retrySchedule(): number[] | undefined {
    const text = optional("RETRY_SCHEDULE");
    const schedule = text === undefined ? undefined : secondsList("RETRY_SCHEDULE", text);
    if (schedule && schedule.length > MAX_RETRIES) {
      throw new SettingError(`RETRY_SCHEDULE takes ${MAX_RETRIES} waits at most, not ${schedule.length}`);
    }
    return schedule;
  },
  /** How long a delivery that was handed to the queue may stay silent before the sweep hands it over again. */
  deliveryGraceSeconds: () => seconds("DELIVERY_GRACE_SECONDS", DEFAULT_DELIVERY_GRACE_SECONDS),
  /** How long a webhook may go without a success while attempts fail, before it is disabled. */
  disableAfterSeconds: () => seconds("DISABLE_AFTER_SECONDS", DEFAULT_DISABLE_AFTER_SECONDS),
  /** Address ranges that webhooks may reach although they are not public. For local use only. */
  webhookAllowCidrs(): string[] {
    return (optional("WEBHOOK_ALLOW_CIDRS") ?? "").split(",").flatMap((part) => part.trim() || []);
  },
  /** Origins of the web pages that may call the API. */
  corsOrigins: () => (optional("CORS_ORIGINS") ?? "").split(",").flatMap((part) => part.trim() || []),
  jwtSecret: () => optional("JWT_SECRET"),
  jwtSecretArn: () => optional("JWT_SECRET_ARN"),
  jwtIssuer: () => optional("JWT_ISSUER"),
  jwtAudience: () => optional("JWT_AUDIENCE"),
  /** Longest time from a JWT's issue to its expiry. */
  jwtMaxLifetimeSeconds: () => seconds("JWT_MAX_LIFETIME_SECONDS", DEFAULT_JWT_MAX_LIFETIME_SECONDS),
  /** How far the identity provider's clock and ours may be apart. */
  jwtClockSkewSeconds: () => seconds("JWT_CLOCK_SKEW_SECONDS", DEFAULT_JWT_CLOCK_SKEW_SECONDS),
  /** An issuer whose public keys verify tokens; undefined when none is configured. */
  jwks(): { issuer: string; uri: string; audience: string | null } | undefined {
    const issuer = optional("JWKS_ISSUER");
    if (issuer === undefined) return undefined;
    const uri = optional("JWKS_URI") ?? `${issuer.replace(/\/$/, "")}/.well-known/jwks.json`;
    if (!/^https:\/\//.test(uri) || !URL.canParse(uri)) {
      throw new SettingError(`JWKS_URI, or else JWKS_ISSUER, must be an https URL: "${uri}" is none`);
    }
    return { issuer, uri, audience: optional("JWKS_AUDIENCE") ?? null };
  },
};
