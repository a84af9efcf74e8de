import { UsageError } from "../command/command.ts";

export const smokeProgram = {
  name: "npm run --silent smoke",
  about: `Checks a running stage from outside and removes everything it created there. Takes about a minute at most.
Exit codes: 0 all checks passed, 1 a check failed, 2 usage error, 130 interrupted.`,
  options: {
    url: { value: "<base url>", about: "base URL of the stage: the stack's output ApiUrl", isRequired: true },
    receiver: { value: "<https url>", about: "send a test delivery to this URL" },
    listen: { about: "send it to a receiver that this command starts; only for a service on this machine" },
    stage: {
      value: "<name>",
      about: "also check the metrics and alarms of this stage, with the AWS credentials of the environment",
    },
  },
  settings: [{ name: "SMOKE_TOKEN", about: "JWT of a user who is an admin of a project (required)" }],
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
  /** Target of the test delivery: a URL, or "listen" for a receiver started by the run. Absent = none is sent. */
  receiver?: { url: string } | "listen";
  /** Also checks what only an operator sees, on the stack of this stage. */
  stage?: string;
}

/** @throws UsageError */
export function readSmokeOptions(given: Given, env: Record<string, string | undefined>): SmokeOptions {
  const base = readBase(given.url ?? "");
  const token = readToken(env.SMOKE_TOKEN?.trim());
  const receiver = readReceiver(given, isLoopback(base));
  const stage = given.stage === undefined ? undefined : readStageName(given.stage);
  return { baseUrl: base.href.replace(/\/+$/, ""), token, ...(receiver && { receiver }), ...(stage && { stage }) };
}

/** @throws UsageError */
export function readStageName(text: string | undefined): string {
  if (text !== undefined && /^[a-z][a-z0-9-]*$/.test(text)) return text;
  throw new UsageError("--stage must be the name of a stage, such as dev.");
}

function readBase(text: string): URL {
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

function readToken(token: string | undefined): string {
  if (!token) throw new UsageError("SMOKE_TOKEN is missing: set it to the JWT of a user.");
  if (token.startsWith("svc_")) {
    throw new UsageError("SMOKE_TOKEN must be a JWT: an API key cannot create API keys, which the smoke test checks.");
  }
  return token;
}

function readReceiver({ listen, receiver }: Given, isLocal: boolean): SmokeOptions["receiver"] {
  if (listen && receiver !== undefined) throw new UsageError("Pass --listen or --receiver, not both.");
  if (listen && !isLocal) {
    throw new UsageError("--listen starts a receiver on this machine, which a remote stage cannot reach.");
  }
  if (listen) return "listen";
  if (receiver === undefined) return undefined;
  const url = URL.canParse(receiver) ? new URL(receiver) : undefined;
  const isUsable = url?.protocol === "https:" || (url?.protocol === "http:" && isLocal && isLoopback(url));
  if (!isUsable) throw new UsageError("--receiver must be an absolute https URL.");
  return { url: receiver };
}
