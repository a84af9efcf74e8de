import { randomBytes } from "node:crypto";
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
import { isIPv4, isIPv6 } from "node:net";
import { dirname, join } from "node:path";
import { platformPermissions } from "../../functions/foundation/access/platform-permissions.ts";
import { issuerIdentity } from "../../functions/foundation/manifest/sign-in-rules.ts";
import { settings as functionSettings } from "../../functions/foundation/platform/env.ts";
import { SettingError } from "../../functions/foundation/platform/errors.ts";
import { importedKeyKinds } from "../../functions/identity/api-keys/imported-keys.ts";
import { hs256Key } from "../../functions/identity/authentication/hs256.ts";
import { publicKeyIssuer, requiredClaims } from "../../functions/identity/authentication/user-jwt.ts";
import { workflowIssuers } from "../../functions/identity/trusted-workflows/workflow-issuers.ts";
import { legacySignatureHeader } from "../../functions/webhooks/receiver/legacy-signature-header.ts";
import { isAllowedAddress, parseCidrs } from "../../functions/webhooks/receiver/receiver-address.ts";
import { settingRows as rows } from "../../lib/settings.ts";

/** The settings of a local run. The programs that talk to it (token, project, event, replay, dlq, demo) read the same ones. */
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

/** The rows of a help page for some of the settings. */
export const settingRows = (...names: (keyof typeof rows)[]) =>
  names.map((name) => ({ name, about: `${rows[name].about} (default: ${rows[name].fallback})`.replaceAll("`", "") }));

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
    deliveryBatchSize: readNumber("DELIVERY_BATCH_SIZE", env.DELIVERY_BATCH_SIZE, 1, BATCH_SIZES),
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
  if (importedKeyKinds().some(({ hash }) => hash === "hmac-sha256")) functionSettings.importedKeysPepper();
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

function checkDnsServer(text: string): void {
  const { v6, v4, port = "53" } = /^(?:\[(?<v6>.+)\]|(?<v4>[^:]+))(?::(?<port>\d{1,5}))?$/.exec(text)?.groups ?? {};
  const isAddress = v4 === undefined ? isIPv6(v6 ?? text) : isIPv4(v4);
  if (isAddress && Number(port) >= 1 && Number(port) <= 65_535) return;
  throw new SettingError(
    `DNS_SERVERS must hold addresses such as 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353, not "${text}".`,
  );
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
    createFolder(path);
    accessSync(path, constants.W_OK | constants.X_OK);
    return path;
  } catch (error) {
    throw unusableDataDir(path, error);
  }
}

/** With its parents. (Node's own `recursive` never returns where the file system creates no folders, as in /proc.) */
function createFolder(path: string): void {
  if (existsSync(path) && statSync(path).isDirectory()) return;
  const parent = dirname(path);
  if (!existsSync(parent)) createFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it a moment ago.
    const isThere = (error as NodeJS.ErrnoException).code === "EEXIST" && statSync(path).isDirectory();
    if (!isThere) throw error;
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

const reasonsByErrorCode: Record<string, string> = {
  EEXIST: "a file with that name is in the way",
  ENOTDIR: "a part of the path is a file, not a folder",
  EACCES: "you have no permission to write there",
  EPERM: "you have no permission to write there",
  EROFS: "the file system is read-only",
  ENOENT: "folders cannot be created there",
  ENOSPC: "the disk is full",
};

/** @param error what the file system reported */
export function unusableDataDir(path: string, error: unknown): SettingError {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const reason = reasonsByErrorCode[code] ?? message;
  return new SettingError(
    `The data directory ${path} cannot be used: ${reason} (${code}). Set DATA_DIR to a folder that you can write to.`,
  );
}

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
