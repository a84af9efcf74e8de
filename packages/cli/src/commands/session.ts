import { CommandError, exitCodes, usageError } from "../terminal/exit-codes.ts";
import type { Globals } from "../terminal/globals.ts";
import { type Config, readConfig } from "./config.ts";

/* The service to call and the credential to call it with. */

export interface Session {
  baseUrl: string;
  /** An API key or a JWT. */
  token: string;
  /** The origin of the credential. */
  source: "SVC_API_KEY" | "svc login";
  /** The project of commands without --project, id or name: SVC_PROJECT, or that of `svc projects use`. */
  project?: string | undefined;
}

/** @throws CommandError when no service is configured, or there is no credential for it */
export function openSession(globals: Globals): Session {
  const { SVC_PROJECT, SVC_API_KEY, SVC_BASE_URL } = process.env;
  const isComplete = Boolean(SVC_API_KEY?.trim() && (globals.baseUrl ?? SVC_BASE_URL?.trim()));
  const config = isComplete ? configOrNone() : readConfig();
  const baseUrl = baseUrlOf(globals, config);
  const project = SVC_PROJECT?.trim() || config.projects?.[baseUrl];
  if (SVC_API_KEY?.trim()) {
    return { baseUrl, project, token: checkToken(SVC_API_KEY, "SVC_API_KEY"), source: "SVC_API_KEY" };
  }
  const token = config.credentials[baseUrl];
  if (token !== undefined) return { baseUrl, project, token, source: "svc login" };
  throw new CommandError(
    exitCodes.signedOut,
    `You are not signed in to ${baseUrl}.`,
    "Run svc login, or set SVC_API_KEY.",
  );
}

/** Returns the configuration, or an empty one for a broken file, which must not stop a job whose variables say all. */
function configOrNone(): Config {
  try {
    return readConfig();
  } catch {
    return { credentials: {} };
  }
}

export function baseUrlOf({ baseUrl }: Globals, config: Config): string {
  const given = baseUrl ?? (process.env.SVC_BASE_URL?.trim() || undefined) ?? config.base_url;
  if (given !== undefined) return checkBaseUrl(given);
  throw new CommandError(
    exitCodes.signedOut,
    "No service is configured.",
    "Run svc login, or set SVC_BASE_URL and SVC_API_KEY.",
  );
}

/** @returns the URL without a slash and without the `/v1` that other products have in theirs: `/v1/…` is appended */
export function checkBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw usageError("The base URL must be an absolute https URL.");
  if (url.username || url.password || url.search || url.hash) {
    throw usageError("The base URL must have no user name, no query and no fragment.");
  }
  // Plain http would expose the credential on the network.
  if (url.protocol === "http:" && !isOnThisMachine(url)) {
    throw usageError("The base URL must start with https://, except for a service on this machine.");
  }
  return url.href.replace(/(\/v1)?\/*$/, "");
}

export const isOnThisMachine = ({ hostname }: URL): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/**
 * Checks that a credential is valid in an `Authorization` header. The errors do not repeat it.
 * @param name names the credential in errors
 * @returns the credential without surrounding white space
 */
export function checkToken(text: string, name: string): string {
  const token = text.trim();
  if (/^whsec_/.test(token)) throw usageError(`${name} is a webhook's signing secret, not an API key.`);
  const [invalid] = /[^A-Za-z0-9._~+/=-]/u.exec(token) ?? [];
  const mistake = mistakeIn(token, invalid);
  if (mistake !== undefined) throw usageError(`${name} is neither an API key (svc_…) nor a JWT: ${mistake}.`);
  return token;
}

/** @param invalid the first character that a credential cannot have */
function mistakeIn(token: string, invalid: string | undefined): string | undefined {
  if (/^\$(\{[\w:.]+\}|\w+)$/.test(token))
    return `it is the name of a variable (${token}), which was not replaced by its value`;
  if (/^bearer\s/i.test(token)) return "it begins with Bearer. Pass only what follows";
  if (/^(export\s+)?\w*(KEY|TOKEN|JWT)\w*=./.test(token))
    return "it begins with the name of a variable. Pass only what follows the =";
  if (/^["'].*["']$/s.test(token)) return "it is in quotes. Pass it without them";
  if (invalid === "\0" || invalid === "\ufffd")
    return "the text is not UTF-8. PowerShell 5 writes UTF-16: Set-Content -Encoding ascii";
  const code = invalid?.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0");
  return code === undefined ? undefined : `it contains an invalid character (U+${code})`;
}

export type Identity =
  | { kind: "api_key"; key_prefix: string }
  | { kind: "jwt"; subject: string | null; expires_at: string | null };

/** Any other credential is an API key: that of an earlier service may begin otherwise than with `svc_`. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** The length of `key_prefix` in the API. */
const KEY_PREFIX_LENGTH = 12;

/** Describes a credential without exposing it. Does not verify the claims of a JWT: the service does. */
export function identityOf(token: string): Identity {
  if (!JWT.test(token)) return { kind: "api_key", key_prefix: token.slice(0, KEY_PREFIX_LENGTH) };
  const { sub, repository, project_path, exp } = claimsOf(token);
  return {
    kind: "jwt",
    // Of a CI job, what its provider calls the repository.
    subject: [sub, repository, project_path].find((claim) => typeof claim === "string") ?? null,
    expires_at: typeof exp === "number" && exp < 1e11 ? new Date(exp * 1000).toISOString() : null,
  };
}

/** Reads the claims of a JWT without verifying it: the service does. Another text has none. */
export function claimsOf(token: string): Record<string, unknown> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return typeof claims === "object" ? { ...claims } : {};
  } catch {
    return {};
  }
}
