import { canonicalUuid } from "../../functions/foundation/platform/uuid.ts";
import { UsageError } from "../command/command.ts";

export const smokeProgram = {
  name: "npm run --silent smoke",
  about: `Checks a running stage from outside and removes everything it created there. Takes about a minute at
most, with --operator a few minutes.
Exit codes: 0 all checks passed, 1 a check failed, 2 usage error, 130 interrupted.`,
  options: {
    url: { value: "<base url>", about: "base URL of the stage: the stack's output ApiUrl", shownDefault: "SMOKE_URL" },
    token: {
      value: "<jwt>",
      about: "JWT of a user; prefer the variable, because process lists show arguments",
      shownDefault: "SMOKE_TOKEN",
    },
    project: {
      value: "<uuid>",
      about: "project that gets a webhook during the run",
      shownDefault: "the first one the user is an admin of",
    },
    receiver: { value: "<https url>", about: "send a test delivery to this URL" },
    listen: {
      about: "send test deliveries to a receiver that this command starts; only for a service on this machine",
    },
    all: { about: "fail if a check is skipped because a project or a receiver is missing" },
    operator: {
      about: "also check metrics, alarms, versions and log queries, with the AWS credentials of the environment",
    },
    stage: { value: "<name>", about: "name of the stage in the AWS account, with --operator" },
    "close-endpoint": {
      about:
        "with --operator: set the rate limit of one endpoint (recover) to 0 for up to two minutes, check that it returns 429, and restore the limit",
    },
  },
  examples: [
    'SMOKE_TOKEN="$JWT" npm run --silent smoke -- --url https://api.example.com',
    "npm run --silent smoke -- --url http://127.0.0.1:3000 --listen",
  ],
} as const;

type Given = Partial<Record<keyof typeof smokeProgram.options, string | undefined>>;

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
 * Reads the command line; options take precedence over `SMOKE_URL` and `SMOKE_TOKEN`.
 * @throws UsageError
 */
export function readSmokeOptions(given: Given, env: Record<string, string | undefined>): SmokeOptions {
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

function readOperator({ operator, stage, ...given }: Given): SmokeOptions["operator"] {
  const closesEndpoint = given["close-endpoint"] !== undefined;
  if (!operator && (stage !== undefined || closesEndpoint)) {
    throw new UsageError("--stage and --close-endpoint work only with --operator.");
  }
  if (!operator) return undefined;
  if (stage === undefined || !/^[a-z][a-z0-9-]*$/.test(stage)) {
    throw new UsageError("--operator needs --stage: pass the name of the stage, such as dev.");
  }
  return { stage, closesEndpoint };
}

function readReceiver(given: Given, isLocal: boolean): SmokeOptions["receiver"] {
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
