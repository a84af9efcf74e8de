import type { Command } from "commander";
import { exitCodes, usageError } from "./exit-codes.ts";
import type { Globals } from "./globals.ts";
import { jsonText, print, readStdin } from "./terminal.ts";
import {
  bytesOf,
  collect,
  requireSecrets,
  type SecretOptions,
  secretOptions,
  secretsHelp,
  textOf,
} from "./webhook-secrets.ts";

const help = `
${secretsHelp}
The file of --headers holds lines as they were sent ("X-Service-Signature: sha256=…"), or a JSON object. The file of --delivery
is a JSON object with headers and body: a line of svc listen --json, or an event of API Gateway.

Examples:
  $ export SVC_WEBHOOK_SECRET=whsec_…
  $ svc verify --body body.json --headers headers.txt
  $ svc verify --signature "sha256=3fc7…" < body.json
  $ svc verify --body body.json --headers headers.txt --secret "$NEW" --secret "$OLD"
  $ svc verify --body body.json --headers saved.txt --at 2026-11-21T04:04:29Z   # as if it had come then
  $ svc verify --delivery delivery.json                                         # a line of svc listen --json

Where a signature does not hold it says which usual mistake was made: the key was derived in another way, the body was
parsed and printed again, a line break was lost or added, the secret is an old one, the timestamp is stale …
Exit code 0: every signature that is there holds. 1: one does not.`;

interface Options extends SecretOptions {
  delivery?: string;
  body?: string;
  headers?: string;
  header?: string[];
  signature?: string;
  at?: string;
  tolerance?: string;
}

export function addVerify(program: Command): void {
  secretOptions(
    program
      .command("verify")
      .summary("check the signature of a delivery, and find the mistake when it does not hold")
      .description("Checks the signatures of a delivery: of its body, byte for byte, by its headers and your secret.")
      .option("--delivery <path>", "headers and body, in a file")
      .option("--body <path>", "the body as it came; - or nothing is stdin")
      .option("--headers <path>", "the headers, in a file")
      .option("--header <name: value>", "a header; repeat it", collect)
      .option("--signature <value>", "the value of X-Service-Signature"),
  )
    .option("--at <time>", "when the delivery came, ISO 8601 (default: now)")
    .option("--tolerance <seconds>", "how far webhook-timestamp may be off (default: 300, as libraries have it)")
    .addHelpText("after", help)
    .action(async (_options: Options, command: Command) => verify(command.optsWithGlobals()));
}

async function verify(options: Options & Globals): Promise<void> {
  // Loaded when it is used: --help is to be there at once.
  const [{ diagnose, TOLERANCE_SECONDS }, { formatVerdict: shown }] = await Promise.all([
    import("./verify/diagnose.ts"),
    import("./verify/verdict-view.ts"),
  ]);
  const now = readTime(options.at);
  const toleranceSeconds = options.tolerance === undefined ? TOLERANCE_SECONDS : readSeconds(options.tolerance);
  const given = options.delivery === undefined ? undefined : readDelivery(options.delivery);
  const headers = readHeaders(options, given?.headers ?? new Map());
  const secrets = await requireSecrets(options);
  const body = given?.body ?? (await readBody(options.body));
  const verdicts = diagnose({ headers, body }, secrets, { now, toleranceSeconds });
  const verified = verdicts.every(({ holds }) => holds);
  print(options.json ? jsonText({ verified, signatures: verdicts }) : verdicts.map(shown(secrets.length)).join("\n"));
  if (!verified) process.exitCode = exitCodes.failed;
}

async function readBody(path: string | undefined): Promise<Buffer> {
  if (path !== undefined && path !== "-") return bytesOf(path);
  if (process.stdin.isTTY) throw usageError("There is no body.", "Say --body <path>, or pipe it in.");
  return readStdin();
}

/** @param headers those that are known already */
function readHeaders({ headers: path, header = [], signature }: Options, headers: Map<string, string>) {
  const add = (name: string, value: string) => headers.set(name.trim().toLowerCase(), value.trim());
  if (path !== undefined) for (const [name, value] of headersIn(textOf(path))) add(name, value);
  for (const line of header) {
    const [name, value] = splitHeader(line) ?? [];
    if (name === undefined || value === undefined) throw usageError('--header takes "Name: value".');
    add(name, value);
  }
  if (signature !== undefined) add("X-Service-Signature", signature);
  if (headers.size === 0)
    throw usageError("There are no headers.", "Say --headers <path>, --header, --signature or --delivery <path>.");
  return headers;
}

function headersIn(text: string): [string, string][] {
  if (!text.trimStart().startsWith("{")) {
    // A request line in front, and anything else that is no header, tells nothing.
    return text.split(/\r?\n/).flatMap((line) => {
      const header = splitHeader(line);
      return header ? [header] : [];
    });
  }
  return entriesOf(parsed(text, "--headers"));
}

/** Values that are lists come from headers that were sent more than once. */
const entriesOf = (headers: object): [string, string][] =>
  Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : String(value)]);

function readDelivery(path: string): { headers: Map<string, string>; body: Buffer } {
  const { headers, body, isBase64Encoded } = parsed(textOf(path), "--delivery") as Record<string, unknown>;
  if (typeof headers !== "object" || headers === null || typeof body !== "string") {
    throw usageError("The file of --delivery has no headers, or no body that is text.");
  }
  const named = entriesOf(headers).map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  return { headers: new Map(named), body: Buffer.from(body, isBase64Encoded === true ? "base64" : "utf8") };
}

function parsed(text: string, option: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Said below: what a JSON error quotes may be a credential.
  }
  throw usageError(`The file of ${option} is no JSON object.`);
}

function splitHeader(line: string): [string, string] | undefined {
  const [, name, value] = /^\s*(?:[<>] )?([\w-]+)\s*:(.*)$/.exec(line) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
}

function readTime(text: string | undefined): Date {
  const time = text === undefined ? new Date() : new Date(/^\d{10}$/.test(text) ? Number(text) * 1000 : text);
  if (Number.isNaN(time.getTime())) throw usageError("--at takes an ISO 8601 time, or a Unix time in seconds.");
  return time;
}

function readSeconds(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw usageError("--tolerance takes whole seconds.");
  return Number(text);
}
