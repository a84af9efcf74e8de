import { randomBytes } from "node:crypto";
import { Resolver } from "node:dns";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { platformPermissions } from "../../functions/foundation/access/platform-permissions.ts";
import { deploymentEventRows } from "../../functions/foundation/events/catalogue.ts";
import { DEFAULT_SCHEDULE } from "../../functions/foundation/manifest/retry-schedule.ts";
import { isIssuerUrl, issuerIdentity } from "../../functions/foundation/manifest/sign-in-rules.ts";
import { settings as functionSettings } from "../../functions/foundation/platform/env.ts";
import { SettingError } from "../../functions/foundation/platform/errors.ts";
import { importedKeyKinds } from "../../functions/identity/api-keys/imported-keys.ts";
import { hs256Key } from "../../functions/identity/authentication/hs256.ts";
import { publicKeyIssuer, requiredClaims } from "../../functions/identity/authentication/user-jwt.ts";
import { workflowIssuers } from "../../functions/identity/trusted-workflows/workflow-issuers.ts";
import { legacySignatureHeader } from "../../functions/webhooks/receiver/legacy-signature-header.ts";
import { isAllowedAddress, parseCidrs } from "../../functions/webhooks/receiver/receiver-address.ts";

/** The settings of a local run. The programs that talk to it (token, project, event, dlq, demo) read the same ones. */
export interface LocalSettings {
  /** 0 = any free port. */
  port: number;
  /** 0 = any free port. */
  sqsPort: number;
  dataDir: string;
  jwtSecret: string;
  /** Whether JWT_SECRET is set, so that the other programs need it too. False = the secret is stored in the data directory. */
  isSecretGiven: boolean;
  /** URL of an engine to use instead of the embedded one; undefined = the embedded one. */
  dynamoEndpoint: string | undefined;
  sqsEndpoint: string | undefined;
  snsEndpoint: string | undefined;
  /** Max deliveries per call of the sender. */
  deliveryBatchSize: number;
}

export const defaultPort = 3000;
export const defaultSqsPort = 3001;
export const defaultDataDir = ".local";
/** 0 = any free one. */
export const PORTS: [number, number] = [0, 65_535];
/** The sender on AWS has the largest. */
const BATCH_SIZES: [number, number] = [1, 10];
const LOOPBACK_CIDRS = "127.0.0.0/8,::1/128";

/** What help pages say about a setting, and its default. docs/configuration.md has all settings, and says more. */
export const settingHelp = {
  PORT: ["port of the API on 127.0.0.1; 0 = any free port", String(defaultPort)],
  DATA_DIR: ["folder with all data, the log `service.log` and the JWT secret, kept across restarts", defaultDataDir],
  JWT_SECRET: ["secret that signs and verifies JWTs, 32 bytes or more", "created once, kept in DATA_DIR"],
  SQS_PORT: ["port of the embedded SQS engine on 127.0.0.1; 0 = any free port", String(defaultSqsPort)],
  WEBHOOK_ALLOW_CIDRS: ["non-public ranges that webhooks may call, also by plain http; empty = none", LOOPBACK_CIDRS],
  RETRY_SCHEDULE: ["seconds between delivery attempts, at most 20", DEFAULT_SCHEDULE.join(",")],
  DELIVERY_BATCH_SIZE: ["deliveries per call of the sender, from 1 to 10", "10, as on AWS"],
  LAST_USED_RESOLUTION_SECONDS: ["minimum time between two updates of a key's `last_used_at`", "60"],
  EVENTS: ["events that the pipeline may send besides the built-in ones, as JSON or the path of a file", "none"],
  OIDC_ISSUERS: ["CI systems whose workflows may call the API, as JSON", "none"],
  AWS_ENDPOINT_URL_DYNAMODB: ["URL of a DynamoDB engine, such as DynamoDB Local", "the embedded engine"],
  AWS_ENDPOINT_URL_SQS: ["URL of an SQS engine, such as LocalStack", "the embedded engine"],
  AWS_ENDPOINT_URL_SNS: ["URL of an SNS engine, such as LocalStack", "the embedded engine"],
} as const;

/** The rows of a help page for some of the settings. */
export const settingRows = (...names: (keyof typeof settingHelp)[]) =>
  names.map((name) => {
    const [about, fallback] = settingHelp[name];
    return { name, about: `${about.replaceAll("`", "")} (default: ${fallback})` };
  });

/** @throws SettingError that names the setting that cannot be used, and why */
export function readSettings(env = process.env): LocalSettings {
  const dataDir = usableDir(env.DATA_DIR || defaultDataDir);
  const settings = {
    port: readNumber("PORT", env.PORT, defaultPort, PORTS),
    sqsPort: readNumber("SQS_PORT", env.SQS_PORT, defaultSqsPort, PORTS),
    dataDir,
    jwtSecret: env.JWT_SECRET || storedSecret(dataDir),
    isSecretGiven: Boolean(env.JWT_SECRET),
    dynamoEndpoint: readEndpoint("AWS_ENDPOINT_URL_DYNAMODB", env.AWS_ENDPOINT_URL_DYNAMODB),
    sqsEndpoint: readEndpoint("AWS_ENDPOINT_URL_SQS", env.AWS_ENDPOINT_URL_SQS),
    snsEndpoint: readEndpoint("AWS_ENDPOINT_URL_SNS", env.AWS_ENDPOINT_URL_SNS),
    deliveryBatchSize: readNumber("DELIVERY_BATCH_SIZE", env.DELIVERY_BATCH_SIZE, 10, BATCH_SIZES),
  };
  hs256Key(settings.jwtSecret, "JWT_SECRET");
  return settings;
}

/** Sets the environment variables of the functions whose local default differs from the default on AWS. */
export function setFunctionDefaults({ jwtSecret }: Pick<LocalSettings, "jwtSecret">): void {
  // An empty value is a value here: it means that no private address is allowed, as on AWS.
  process.env.WEBHOOK_ALLOW_CIDRS ??= LOOPBACK_CIDRS;
  const defaults = {
    JWT_SECRET: jwtSecret,
    SIGNATURE_SECRET: jwtSecret,
    // The engines on this machine respond at once: only the request itself takes time.
    DUPLICATE_SECONDS: "30",
    // The embedded engines accept any credentials, but the SDK requires some.
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  };
  for (const [name, value] of Object.entries(defaults)) process.env[name] ||= value;
  // Read each once, so that a mistake stops the start and not the first delivery.
  parseCidrs(functionSettings.webhookAllowCidrs());
  functionSettings.retrySchedule();
  functionSettings.lastUsedResolutionSeconds();
  functionSettings.duplicateSeconds();
  functionSettings.disableAfterSeconds();
  functionSettings.jwtMaxLifetimeSeconds();
  functionSettings.jwtClockSkewSeconds();
  functionSettings.jwtRequiresIssuedAt();
  requiredClaims();
  checkJwks();
  checkWorkflowIssuers();
  platformPermissions();
  legacySignatureHeader();
  deploymentEventRows();
  if (importedKeyKinds().some(({ hash }) => hash === "hmac-sha256")) functionSettings.importedKeysPepper();
  checkScannerKeys(functionSettings.secretScanningKeysUrl());
  for (const server of functionSettings.dnsServers()) checkDnsServer(server);
  for (const origin of functionSettings.corsOrigins()) checkOrigin(origin);
}

/** Returns whether webhooks may call a receiver on this machine. @param allowedCidrs value of WEBHOOK_ALLOW_CIDRS */
export function allowsLocalReceivers(allowedCidrs: string[]): boolean {
  return isAllowedAddress("127.0.0.1", parseCidrs(allowedCidrs));
}

function checkJwks(): void {
  if (publicKeyIssuer() !== undefined || !process.env.JWKS_URI) return;
  throw new SettingError("JWKS_URI has no effect without JWKS_ISSUER. Set JWKS_ISSUER to the issuer of the tokens.");
}

/** The issuer in a token decides whether it is one of a user or of a workflow. */
function checkWorkflowIssuers(): void {
  const ofUsers = [functionSettings.jwksIssuer(), functionSettings.jwtIssuer()].map(issuerIdentity);
  const shared = workflowIssuers().find(({ issuer }) => ofUsers.includes(issuerIdentity(issuer)));
  if (shared === undefined) return;
  throw new SettingError(
    `OIDC_ISSUERS and JWKS_ISSUER or JWT_ISSUER both name ${shared.issuer}. Tokens of one issuer are for users or for workflows.`,
  );
}

function checkScannerKeys(url: string): void {
  if (isIssuerUrl(url, true)) return;
  throw new SettingError(`SECRET_SCANNING_KEYS_URL must be an https URL, or http on this machine, not "${url}".`);
}

function checkDnsServer(text: string): void {
  try {
    new Resolver().setServers([text]);
  } catch {
    throw new SettingError(
      `DNS_SERVERS must hold addresses such as 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353, not "${text}".`,
    );
  }
}

function checkOrigin(text: string): void {
  if (URL.canParse(text) && new URL(text).origin === text) return;
  throw new SettingError(
    `CORS_ORIGINS must hold origins such as http://localhost:5173, without a path, not "${text}".`,
  );
}

/** @param range the accepted whole numbers, both ends included */
export function readNumber(name: string, text: string | undefined, fallback: number, range: [number, number]): number {
  if (!text) return fallback;
  const [min, max] = range;
  const number = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new SettingError(`${name} must be a whole number from ${min} to ${max}, not "${text}".`);
}

function readEndpoint(name: string, text: string | undefined): string | undefined {
  if (!text) return undefined;
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new SettingError(`${name} must be an http(s) URL, not "${text}".`);
  }
  return text.replace(/\/+$/, "");
}

/** Creates the data directory unless it exists. */
function usableDir(path: string): string {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.W_OK | constants.X_OK);
    return path;
  } catch (error) {
    throw unusableDataDir(path, error);
  }
}

/** What a service stores in its data directory, which may hold other files too. */
const OWN_FILES = /^(jwt-secret|running\.json|service\.log|dynamodb\.sqlite.*|sqs)$/;

/**
 * Lets only their owner read the files that a service has stored in its data directory, and those that this process and its
 * engines will create, whatever the umask.
 */
export function protectFiles(dataDir: string): void {
  process.umask(0o077);
  for (const name of readdirSync(dataDir).filter((name) => OWN_FILES.test(name))) protect(join(dataDir, name));
}

function protect(path: string): void {
  const isFolder = statSync(path).isDirectory();
  chmodSync(path, isFolder ? 0o700 : 0o600);
  if (isFolder) for (const name of readdirSync(path)) protect(join(path, name));
}

/** @param error what the file system reported */
export const unusableDataDir = (path: string, error: unknown): SettingError =>
  new SettingError(
    `The data directory ${path} cannot be used: ${(error as Error).message}. Set DATA_DIR to a folder that you can write to.`,
  );

/** Returns the secret that signs local JWTs. Created once and kept, so that tokens stay valid across restarts. */
function storedSecret(dataDir: string): string {
  const path = join(dataDir, "jwt-secret");
  try {
    if (!existsSync(path)) createSecret(path);
    const secret = readFileSync(path, "utf8");
    if (secret.length >= 32) return secret;
  } catch (error) {
    throw unusableDataDir(dataDir, error);
  }
  throw new SettingError(`${path} does not hold a usable secret. Delete the file; the next start creates a new one.`);
}

/** Creates the file whole or not at all, even if the process is killed. Of two processes that create it, the first wins. */
function createSecret(path: string): void {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, randomBytes(32).toString("hex"), { mode: 0o600 });
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(draft);
  }
}
