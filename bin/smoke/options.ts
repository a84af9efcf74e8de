import { parseArgs } from "node:util";
import { canonicalUuid } from "../../functions/platform/uuid.ts";

export const usage = `npm run --silent smoke -- --url <base url> [--project <uuid>] [--receiver <https url> | --listen] [--all]
       with the JWT of a user in SMOKE_TOKEN (or --token <jwt>, which process lists and npm show)`;

/** What the smoke test is told. */
export interface SmokeOptions {
  /** Where the stage is, without a slash at the end: `/v1/…` is appended. */
  baseUrl: string;
  token: string;
  /** The project that gets a webhook for the duration; absent = the first one that the user administers. */
  projectId?: string;
  /** Where a test delivery goes: somebody's URL, or one on this machine that the smoke test opens. Absent = nowhere. */
  receiver?: { url: string } | "listen";
  /** Whether a check that is not made for want of a project or a receiver is a failure. */
  wantsAll?: boolean;
}

/** The smoke test was called in a way it does not understand. Its message is one sentence. */
export class BadArguments extends Error {
  override readonly name = "BadArguments";
}

/** @throws BadArguments */
export function readSmokeOptions(args: string[], env: Record<string, string | undefined>): SmokeOptions {
  const given = parse(args);
  const base = readBase(given.url ?? env.SMOKE_URL);
  const token = readToken(given.token ?? env.SMOKE_TOKEN);
  const projectId = canonicalUuid(given.project);
  if (given.project !== undefined && projectId === undefined) {
    throw new BadArguments("--project takes the UUID of a project.");
  }
  const receiver = readReceiver(given, isLoopback(base));
  return {
    baseUrl: base.href.replace(/\/+$/, ""),
    token,
    ...(projectId !== undefined && { projectId }),
    ...(receiver && { receiver }),
    ...(given.all && { wantsAll: true }),
  };
}

function parse(args: string[]) {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const options = { url: text, token: text, receiver: text, project: text, listen: flag, all: flag } as const;
  try {
    return parseArgs({ args, options, strict: true }).values;
  } catch (error) {
    // A stray argument may be a token that lost its option: what was given is not repeated.
    const isOption = (error as NodeJS.ErrnoException).code !== "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL";
    throw new BadArguments(isOption ? firstSentence((error as Error).message) : "Every argument belongs to an option.");
  }
}

const firstSentence = (text: string) => `${text.split(/\.?\s*(?:\.|\n|$)/, 1)[0]}.`;

function readBase(text: string | undefined): URL {
  if (!text) throw new BadArguments("--url (or SMOKE_URL) is missing: the base URL of the stage.");
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw new BadArguments("--url takes an absolute https URL.");
  if (url.username || url.password || url.search || url.hash) {
    throw new BadArguments("--url takes a base URL alone: no user name, no query, no fragment.");
  }
  // The token would travel in the clear.
  if (url.protocol === "http:" && !isLoopback(url)) {
    throw new BadArguments("--url must start with https://, except for a service on this machine.");
  }
  return url;
}

const isLoopback = ({ hostname }: URL) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

function readToken(text: string | undefined): string {
  const token = text?.trim();
  if (!token) throw new BadArguments("SMOKE_TOKEN (or --token) is missing: the JWT of a user.");
  if (token.startsWith("svc_")) {
    throw new BadArguments(
      "SMOKE_TOKEN must be a JWT: with an API key no API key can be made, which is to be checked.",
    );
  }
  if (!/^[A-Za-z0-9._~+/=-]+$/.test(token))
    throw new BadArguments("SMOKE_TOKEN is no JWT: it has characters of another kind.");
  return token;
}

function readReceiver(given: ReturnType<typeof parse>, isLocal: boolean): SmokeOptions["receiver"] {
  if (given.listen && given.receiver !== undefined) throw new BadArguments("Give --listen or --receiver, not both.");
  if (given.listen && !isLocal) {
    throw new BadArguments(
      "--listen opens a receiver on this machine, which only a service on this machine can reach.",
    );
  }
  if (given.listen) return "listen";
  if (given.receiver === undefined) return undefined;
  const url = URL.canParse(given.receiver) ? new URL(given.receiver) : undefined;
  const isUsable = url?.protocol === "https:" || (url?.protocol === "http:" && isLocal && isLoopback(url));
  if (!isUsable) throw new BadArguments("--receiver takes an absolute https URL.");
  // The fragment, which is never sent, is where the smoke test marks a webhook as its own.
  return { url: given.receiver.replace(/#.*$/s, "") };
}
