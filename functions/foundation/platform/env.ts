import { readFileSync } from "node:fs";
import { type QueueKey, queues } from "../manifest/queues.ts";
import { type TableKey, tables } from "../manifest/tables.ts";
import { type TopicKey, topics } from "../manifest/topics.ts";
import { SettingError } from "./errors.ts";

/*
 * The only module that reads environment variables. A variable is read when its value is needed, not at import time.
 */

/** @param reason why it is needed, after the message */
function required(name: string, reason = ""): string {
  const value = optional(name);
  if (value === undefined) throw new SettingError(`${name} is not set${reason}`);
  return value;
}

let unchanging: NodeJS.ProcessEnv | undefined;

/**
 * Returns the environment. That of a Lambda never changes, so it is copied: nine reads of `process.env`, as for a JWT, take an
 * eighth of the authorizer's time.
 * https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
 */
function environment(): NodeJS.ProcessEnv {
  if (unchanging === undefined && process.env.AWS_LAMBDA_FUNCTION_NAME) unchanging = { ...process.env };
  return unchanging ?? process.env;
}

function optional(name: string): string | undefined {
  return environment()[name] || undefined;
}

/** @throws SettingError when the text is not a comma-separated list of whole seconds */
function secondsList(name: string, text: string): number[] {
  return text.split(",").map((part) => wholeSeconds(name, part));
}

function wholeSeconds(name: string, text: string): number {
  if (!/^\s*\d{1,9}\s*$/.test(text)) {
    throw new SettingError(`${name} accepts whole seconds, 0 or more, not "${text}"`);
  }
  return Number(text);
}

function seconds(name: string, fallback: number): number {
  const text = optional(name);
  return text === undefined ? fallback : wholeSeconds(name, text);
}

/** @throws SettingError when the text is neither true nor false */
function optionalFlag(name: string): boolean | undefined {
  const text = optional(name);
  if (text === undefined) return undefined;
  if (text !== "true" && text !== "false") throw new SettingError(`${name} must be true or false, not "${text}"`);
  return text === "true";
}

const contents = new Map<string, string>();

/** Reads the file of a setting once. @throws SettingError when it cannot be read */
function contentOf(name: string, path: string): string {
  try {
    const content = contents.get(path) ?? readFileSync(path, "utf8");
    contents.set(path, content);
    return content;
  } catch (error) {
    throw new SettingError(`${name} cannot be read: ${(error as Error).message}`);
  }
}

const flag = (name: string): boolean => optionalFlag(name) ?? false;

export const tableName = (table: TableKey): string => required(tables[table].env);
export const queueUrl = (queue: QueueKey): string => required(queues[queue].env);
export const topicArn = (topic: TopicKey): string => required(topics[topic].env);
export const deadLetterUrl = (queue: QueueKey): string => required(queues[queue].deadLetterEnv);

const DEFAULT_LAST_USED_RESOLUTION_SECONDS = 60;
/** Longer than a carried delivery takes from fan-out to the record of its attempt, with slow calls to AWS. */
const DEFAULT_DUPLICATE_SECONDS = 75;
/** A delivery row stores all attempts, and a DynamoDB item has at most 400 KB. */
const MAX_RETRIES = 20;
const DEFAULT_JWT_MAX_LIFETIME_SECONDS = 3600;
const DEFAULT_JWT_CLOCK_SKEW_SECONDS = 60;
const DEFAULT_DISABLE_AFTER_SECONDS = 5 * 24 * 3600;

const GITHUB_SCANNER_KEYS = "https://api.github.com/meta/public_keys/secret_scanning";

export const settings = {
  /** Name of the stage: the dimension that separates the metrics of stages. */
  stage: () => optional("STAGE") ?? "local",
  /** Whether this is a local run or a test. Every function on AWS has the name of its stage. */
  isLocal: () => optional("STAGE") === undefined,
  /** Version of the running function. */
  functionVersion: () => optional("AWS_LAMBDA_FUNCTION_VERSION") ?? "local",
  /** Minimum time between two writes of `last_used_at` of a key. */
  lastUsedResolutionSeconds: () => seconds("LAST_USED_RESOLUTION_SECONDS", DEFAULT_LAST_USED_RESOLUTION_SECONDS),
  /** Delays between the attempts of a delivery, in seconds; undefined = the default schedule. */
  retrySchedule(): number[] | undefined {
    const text = optional("RETRY_SCHEDULE");
    const schedule = text === undefined ? undefined : secondsList("RETRY_SCHEDULE", text);
    if (schedule && schedule.length > MAX_RETRIES) {
      throw new SettingError(`RETRY_SCHEDULE must have at most ${MAX_RETRIES} delays, not ${schedule.length}`);
    }
    return schedule;
  },
  /** How long the row of a delivery waits whose event was received before: the message that carries it usually ends it. */
  duplicateSeconds: () => seconds("DUPLICATE_SECONDS", DEFAULT_DUPLICATE_SECONDS),
  /** Time without a success after which a failing webhook is disabled. */
  disableAfterSeconds: () => seconds("DISABLE_AFTER_SECONDS", DEFAULT_DISABLE_AFTER_SECONDS),
  /** Private address ranges that webhooks may reach. For local use only. */
  webhookAllowCidrs(): string[] {
    return (optional("WEBHOOK_ALLOW_CIDRS") ?? "").split(",").flatMap((part) => part.trim() || []);
  },
  /**
   * DNS servers that resolve the host names of receivers, as `192.0.2.1:53`; empty for those of the operating system.
   */
  dnsServers: () => (optional("DNS_SERVERS") ?? "").split(",").flatMap((part) => part.trim() || []),
  /** Address of the API, for the functions that call or name it; undefined in a local run before it listens. */
  apiUrl: () => optional("API_ADDRESS") ?? (settings.isLocal() ? undefined : required("API_ADDRESS")),
  /** Address of the page of the console on which a person confirms a sign-in; undefined = the stage has no console. */
  consoleUrl(): string | undefined {
    const local = settings.isLocal() ? optional("API_ADDRESS") : undefined;
    const console = optional("CONSOLE_ADDRESS") ?? (local && `${local}/console/`);
    return console && `${console}#/sign-in`;
  },
  /** Origins of the web pages that may call the API (CORS); empty = none. */
  corsOrigins: () => (optional("CORS_ORIGINS") ?? "").split(",").flatMap((part) => part.trim() || []),
  jwtSecret: () => optional("JWT_SECRET"),
  jwtSecretArn: () => optional("JWT_SECRET_ARN"),
  jwtIssuer: () => optional("JWT_ISSUER"),
  jwtAudience: () => optional("JWT_AUDIENCE"),
  /** Maximum time between issue and expiry of a JWT. */
  jwtMaxLifetimeSeconds: () => seconds("JWT_MAX_LIFETIME_SECONDS", DEFAULT_JWT_MAX_LIFETIME_SECONDS),
  /** Accepted difference between the clocks of the identity provider and of this service. */
  jwtClockSkewSeconds: () => seconds("JWT_CLOCK_SKEW_SECONDS", DEFAULT_JWT_CLOCK_SKEW_SECONDS),
  /** Whether a JWT without the claim `iat` is rejected. */
  jwtRequiresIssuedAt: () => flag("JWT_REQUIRES_ISSUED_AT"),
  /** Whether the stage keeps its data. */
  keepsData: () => flag("KEEPS_DATA"),
  /** The claims that a sign-in token must have, as JSON (identity/authentication/user-jwt.ts); undefined = none. */
  jwtRequiredClaims: () => optional("JWT_REQUIRED_CLAIMS"),
  /** The issuer whose public keys verify tokens (identity/authentication/user-jwt.ts); undefined = none. */
  jwksIssuer: () => optional("JWKS_ISSUER"),
  jwksUri: () => optional("JWKS_URI"),
  jwksAudience: () => optional("JWKS_AUDIENCE"),
  jwksAudienceClaim: () => optional("JWKS_AUDIENCE_CLAIM"),
  jwksSharesUsers: () => optionalFlag("JWKS_SHARES_USERS"),
  /** The signature header of an earlier service, as JSON (webhooks/receiver/legacy-signature-header.ts); undefined = none. */
  legacySignatureHeader: () => optional("LEGACY_SIGNATURE_HEADER"),
  /**
   * The events that a stage adds, as JSON (foundation/events/catalogue.ts); undefined = none. On AWS the variable has the path of a
   * file, because the environment of a function has at most 4 KB.
   */
  events(): string | undefined {
    const text = optional("EVENTS");
    return text?.startsWith("/") ? contentOf("EVENTS", text) : text;
  },
  /** The permissions that the platform adds, as JSON (foundation/access/platform-permissions.ts); undefined = none. */
  permissions: () => optional("PERMISSIONS"),
  /** The kinds of keys of an earlier service, as JSON (identity/api-keys/imported-keys.ts); undefined = none. */
  importedKeys: () => optional("IMPORTED_KEYS"),
  /** The pepper of keys that an earlier service hashed with HMAC-SHA256, and the secret in Secrets Manager that holds it on AWS. */
  importedKeysPepper: () =>
    required("IMPORTED_KEYS_PEPPER", ". IMPORTED_KEYS has keys with the hash hmac-sha256, which need it"),
  importedKeysPepperArn: () => optional("IMPORTED_KEYS_PEPPER_ARN"),
  /** The secret from which the keys of projects follow (webhooks/receiver/project-key.ts), and its ARN on AWS. */
  signatureSecret: () => required("SIGNATURE_SECRET"),
  signatureSecretArn: () => optional("SIGNATURE_SECRET_ARN"),
  /** Address of the public keys of the scanner that may report leaked keys (identity/api-keys/scanner-keys.ts). */
  secretScanningKeysUrl: () => optional("SECRET_SCANNING_KEYS_URL") ?? GITHUB_SCANNER_KEYS,
  /** The issuers of CI systems whose workflows may call the API, as JSON (workflow-issuers.ts); undefined = none. */
  oidcIssuers: () => optional("OIDC_ISSUERS"),
};
