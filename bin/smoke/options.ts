import { parseArgs } from "node:util";
import { canonicalUuid } from "../../functions/platform/uuid.ts";
import { UsageError } from "../local/command.ts";

export const usage =
  "Usage: npm run --silent smoke -- --url <base url> [--project <uuid>] [--receiver <https url> | --listen] [--all]\n  [--operator --stage <name> [--close-endpoint]]";

export const help = `${usage}

Checks a running stage from outside and removes everything it created there. Takes at most a minute,
with --operator a few minutes.

Options:
  --url <base url>       base URL of the stage: the stack's output ApiUrl (default: SMOKE_URL)
  --token <jwt>          JWT of a user (default: SMOKE_TOKEN; prefer it, because process lists show arguments)
  --project <uuid>       project that gets a webhook during the run (default: the first one the user is an admin of)
  --receiver <https url> send a test delivery to this URL
  --listen               send test deliveries to a receiver that this command starts; only for a service on this machine
  --all                  fail if a check is skipped because a project or a receiver is missing
  --operator             also check metrics, alarms, versions and log queries, with the AWS credentials of the environment
  --stage <name>         name of the stage in the AWS account, with --operator
  --close-endpoint       with --operator: set the rate limit of one endpoint (recover) to 0 for up to two minutes, check that it
                         returns 429, and restore the limit
  -h, --help             show help

Exit codes: 0 all checks passed, 1 a check failed, 2 usage error, 130 interrupted.`;

/** The parsed command line of the smoke test. */
export interface SmokeOptions {
  /** Base URL of the stage, without a trailing slash: `/v1/…` is appended. */
  baseUrl: string;
  token: string;
  /** The project that gets a webhook during the run; absent = the first one of which the user is an admin. */
  projectId?: string;
  /** Target of the test deliveries: a URL, or "listen" for a receiver started by the run. Absent = none is sent. */
  receiver?: { url: string } | "listen";
  /** Whether a check that is skipped because a project or a receiver is missing counts as failed. */
  requiresAll?: boolean;
  /** Also runs the checks of an operator, on the stack of this stage; absent = only those of a user. */
  operator?: { stage: string; closesEndpoint: boolean };
}

/**
 * Parses the command line; options take precedence over `SMOKE_URL` and `SMOKE_TOKEN`.
 * @returns the options, or "help" when `--help` is given
 * @throws UsageError
 */
export function readSmokeOptions(args: string[], env: Record<string, string | undefined>): SmokeOptions | "help" {
  const given = parse(args);
  if (given.help) return "help";
  const base = readBase(given.url ?? env.SMOKE_URL);
  const token = readToken(given.token ?? env.SMOKE_TOKEN);
  const projectId = canonicalUuid(given.project);
  if (given.project !== undefined && projectId === undefined) {
    throw new UsageError("--project must be the UUID of a project.");
  }
  const receiver = readReceiver(given, isLoopback(base));
  const operator = readOperator(given);
  return {
    baseUrl: base.href.replace(/\/+$/, ""),
    token,
    ...(projectId !== undefined && { projectId }),
    ...(receiver && { receiver }),
    ...(given.all && { requiresAll: true }),
    ...(operator && { operator }),
  };
}

function parse(args: string[]) {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const help = { type: "boolean", short: "h" } as const;
  const ofUser = { url: text, token: text, receiver: text, project: text, listen: flag, all: flag } as const;
  const options = { ...ofUser, operator: flag, stage: text, "close-endpoint": flag, help } as const;
  try {
    return parseArgs({ args, options, strict: true }).values;
  } catch (error) {
    // A stray argument may be a token whose option is missing, so the message does not repeat it.
    const isOption = (error as NodeJS.ErrnoException).code !== "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL";
    throw new UsageError(
      isOption ? firstSentence((error as Error).message) : "Unexpected argument: every value needs an option.",
    );
  }
}

const firstSentence = (text: string) => `${text.split(/\.?\s*(?:\.|\n|$)/, 1)[0]}.`;

function readBase(text: string | undefined): URL {
  if (!text) throw new UsageError("--url (or SMOKE_URL) is missing: pass the base URL of the stage.");
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw new UsageError("--url must be an absolute https URL.");
  if (url.username || url.password || url.search || url.hash) {
    throw new UsageError("--url must be a base URL without user name, query and fragment.");
  }
  // Over plain http the token would be readable on the network.
  if (url.protocol === "http:" && !isLoopback(url)) {
    throw new UsageError("--url must start with https://, except for a service on this machine.");
  }
  return url;
}

const isLoopback = ({ hostname }: URL) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

function readToken(text: string | undefined): string {
  const token = text?.trim();
  if (!token) throw new UsageError("SMOKE_TOKEN (or --token) is missing: pass the JWT of a user.");
  if (token.startsWith("svc_")) {
    throw new UsageError("SMOKE_TOKEN must be a JWT: an API key cannot create API keys, which the smoke test checks.");
  }
  if (!/^[A-Za-z0-9._~+/=-]+$/.test(token)) {
    throw new UsageError("SMOKE_TOKEN is not a JWT: it contains characters that a JWT cannot have.");
  }
  return token;
}

function readOperator(given: ReturnType<typeof parse>): SmokeOptions["operator"] {
  const { operator, stage, "close-endpoint": closesEndpoint = false } = given;
  if (!operator && (stage !== undefined || closesEndpoint)) {
    throw new UsageError("--stage and --close-endpoint work only with --operator.");
  }
  if (!operator) return undefined;
  if (stage === undefined || !/^[a-z][a-z0-9-]*$/.test(stage)) {
    throw new UsageError("--operator needs --stage: pass the name of the stage, such as dev.");
  }
  return { stage, closesEndpoint };
}

function readReceiver(given: ReturnType<typeof parse>, isLocal: boolean): SmokeOptions["receiver"] {
  if (given.listen && given.receiver !== undefined) throw new UsageError("Pass --listen or --receiver, not both.");
  if (given.listen && !isLocal) {
    throw new UsageError("--listen starts a receiver on this machine, which a remote stage cannot reach.");
  }
  if (given.listen) return "listen";
  if (given.receiver === undefined) return undefined;
  const url = URL.canParse(given.receiver) ? new URL(given.receiver) : undefined;
  const isUsable = url?.protocol === "https:" || (url?.protocol === "http:" && isLocal && isLoopback(url));
  if (!isUsable) throw new UsageError("--receiver must be an absolute https URL.");
  // The mark of the run goes into the fragment, which is never sent to a receiver.
  return { url: given.receiver.replace(/#.*$/s, "") };
}
