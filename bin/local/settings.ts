import { randomBytes } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { hs256Key } from "../../functions/auth/hs256.ts";
import { settings as functionSettings } from "../../functions/platform/env.ts";
import { SettingError } from "../../functions/platform/errors.ts";
import { parseCidrs } from "../../functions/receivers/receiver-address.ts";

/** The settings of a local run, with their defaults. The commands beside it (token, project, event) take the same ones. */
export interface LocalSettings {
  port: number;
  sqsPort: number;
  dataDir: string;
  jwtSecret: string;
  /** Engines to use instead of the embedded ones. */
  dynamoEndpoint: string | undefined;
  sqsEndpoint: string | undefined;
}

/** @throws SettingError naming the setting that cannot be used, and why */
export function readSettings(env = process.env): LocalSettings {
  const dataDir = usableDir(env.DATA_DIR || ".local");
  const settings = {
    port: readPort("PORT", env.PORT, 3000),
    sqsPort: readPort("SQS_PORT", env.SQS_PORT, 3001),
    dataDir,
    jwtSecret: env.JWT_SECRET || keptSecret(dataDir),
    dynamoEndpoint: readEndpoint("AWS_ENDPOINT_URL_DYNAMODB", env.AWS_ENDPOINT_URL_DYNAMODB),
    sqsEndpoint: readEndpoint("AWS_ENDPOINT_URL_SQS", env.AWS_ENDPOINT_URL_SQS),
  };
  hs256Key(settings.jwtSecret, "JWT_SECRET");
  return settings;
}

/** What the functions read from the environment, where the local default is another than on AWS. */
export function setFunctionDefaults({ jwtSecret }: Pick<LocalSettings, "jwtSecret">): void {
  const defaults = {
    JWT_SECRET: jwtSecret,
    WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8,::1/128",
    // One process does everything here and the queues survive it: a message that is late is lost.
    DELIVERY_GRACE_SECONDS: "5",
    // The embedded engines take any; the SDK insists on some.
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  };
  for (const [name, value] of Object.entries(defaults)) process.env[name] ||= value;
  // Read once now: a mistake should stop the start, not the first delivery.
  parseCidrs(functionSettings.webhookAllowCidrs());
  functionSettings.retrySchedule();
  functionSettings.lastUsedResolutionSeconds();
  functionSettings.deliveryGraceSeconds();
  functionSettings.disableAfterSeconds();
  functionSettings.jwtMaxLifetimeSeconds();
  functionSettings.jwtClockSkewSeconds();
  functionSettings.jwks();
  for (const origin of functionSettings.corsOrigins()) checkOrigin(origin);
}

function checkOrigin(text: string): void {
  if (URL.canParse(text) && new URL(text).origin === text) return;
  throw new SettingError(`CORS_ORIGINS takes origins such as http://localhost:5173, without a path, not "${text}"`);
}

function readPort(name: string, text: string | undefined, fallback: number): number {
  if (!text) return fallback;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new SettingError(`${name} takes a port from 0 (any free one) to 65535, not "${text}"`);
  return port;
}

function readEndpoint(name: string, text: string | undefined): string | undefined {
  if (!text) return undefined;
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new SettingError(`${name} takes an http(s) URL, not "${text}"`);
  }
  return text.replace(/\/+$/, "");
}

function usableDir(path: string): string {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.W_OK);
    return path;
  } catch (error) {
    throw new SettingError(`The data directory ${path} cannot be used: ${(error as Error).message}`);
  }
}

/** The secret that local JWTs are signed with: made once, then kept, so that tokens outlive a restart. */
function keptSecret(dataDir: string): string {
  const path = join(dataDir, "jwt-secret");
  if (!existsSync(path)) {
    // Whole or not at all, whoever is killed meanwhile; and of two that make one, the first one counts.
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
  const secret = readFileSync(path, "utf8");
  if (secret.length < 32) throw new SettingError(`${path} holds no usable secret. Delete it, and a new one is made.`);
  return secret;
}
