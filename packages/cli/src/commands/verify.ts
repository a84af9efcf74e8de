import type { Command } from "commander";
import { exitCodes, usageError } from "../terminal/exit-codes.ts";
import type { Globals } from "../terminal/globals.ts";
import { jsonText, print, readStdin } from "../terminal/terminal.ts";
import { entriesOf, parseHeader, parseHeaders } from "../verify/headers.ts";
import {
  collect,
  readBytes,
  readObject,
  readText,
  requireSecrets,
  type SecretOptions,
  secretOptions,
  secretsHelp,
} from "./webhook-secrets.ts";

const help = `
${secretsHelp}

--headers reads a file with one header per line ("X-Service-Signature: sha256=…"), or with a JSON object. --delivery reads a
JSON object with headers and body: a line of svc listen --json, or an event of API Gateway.

Examples:
  $ export SVC_WEBHOOK_SECRET=whsec_…
  $ svc verify --body body.json --headers headers.txt
  $ svc verify --signature "sha256=3fc7…" < body.json
  $ svc verify --body body.json --headers headers.txt --secret "$NEW" --secret "$OLD"
  $ svc verify --body body.json --headers saved.txt --at 2026-11-21T04:04:29Z   # verify as of the time of arrival
  $ svc verify --delivery delivery.json                                         # a line of svc listen --json

For an invalid signature it reports the usual mistake that explains it: a wrong key derivation, a body that was parsed and
serialized again, a line break that was added, an old secret, a stale timestamp … Two mistakes at once are not found.
Exit code 0: all signatures are valid. 1: at least one is invalid.`;

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
      .summary("verify the signatures of a delivery, and explain an invalid one")
      .description(
        "Verifies the signatures of a delivery from its headers, the exact bytes of its body, and your secret.",
      )
      .option("--delivery <path>", "a file with headers and body")
      .option("--body <path>", "a file with the exact bytes of the body; default or -: stdin")
      .option("--headers <path>", "a file with the headers")
      .option("--header <name: value>", "a header, repeatable", collect)
      .option("--signature <value>", "the value of X-Service-Signature"),
  )
    .option("--at <time>", "the time of arrival, ISO 8601 or Unix seconds; default: now")
    .option(
      "--tolerance <seconds>",
      "maximum age of webhook-timestamp; default: 300, as in Standard Webhooks libraries",
    )
    .addHelpText("after", help)
    .action(async (_options: Options, command: Command) => verify(command.optsWithGlobals()));
}

async function verify(options: Options & Globals): Promise<void> {
  // Imported here because the import would slow down --help.
  const [{ diagnose, TOLERANCE_SECONDS }, { formatVerdict, toVerdictRecord }] = await Promise.all([
    import("../verify/diagnose.ts"),
    import("../verify/verdict-view.ts"),
  ]);
  const now = readTime(options.at);
  const toleranceSeconds = options.tolerance === undefined ? TOLERANCE_SECONDS : readSeconds(options.tolerance);
  const delivery = options.delivery === undefined ? undefined : readDelivery(options.delivery);
  const headers = readHeaders(options, delivery?.headers ?? new Map());
  const secrets = await requireSecrets(options);
  const body = delivery?.body ?? (await readBody(options.body));
  const verdicts = diagnose({ headers, body }, secrets, { now, toleranceSeconds });
  const verified = verdicts.every(({ isValid }) => isValid);
  print(
    options.json
      ? jsonText({ verified, signatures: verdicts.map(toVerdictRecord) })
      : verdicts.map(formatVerdict(secrets.length)).join("\n"),
  );
  if (!verified) process.exitCode = exitCodes.failed;
}

async function readBody(path: string | undefined): Promise<Buffer> {
  if (path !== undefined && path !== "-") return readBytes(path);
  if (process.stdin.isTTY) throw usageError("No body given.", "Pass --body <path>, or pass the body on stdin.");
  return readStdin();
}

/** Adds the headers of the options to those of `--delivery`. */
function readHeaders({ headers: path, header = [], signature }: Options, headers: Map<string, string>) {
  const add = (name: string, value: string) => headers.set(name.toLowerCase(), value.trim());
  const inFile = path === undefined ? [] : parseHeaders(readText(path));
  if (inFile === undefined) throw usageError("The file of --headers is not a JSON object.");
  for (const [name, value] of inFile) add(name, value);
  for (const line of header) {
    const [name, value] = parseHeader(line) ?? [];
    if (name === undefined || value === undefined) throw usageError('--header must have the form "Name: value".');
    add(name, value);
  }
  if (signature !== undefined) add("X-Service-Signature", signature);
  if (headers.size === 0)
    throw usageError("No headers given.", "Pass --headers <path>, --header, --signature or --delivery <path>.");
  return headers;
}

function readDelivery(path: string): { headers: Map<string, string>; body: Buffer } {
  const { headers, body, isBase64Encoded } = readObject(path, "--delivery");
  if (typeof headers !== "object" || headers === null || typeof body !== "string") {
    throw usageError("The file of --delivery must contain headers and a text body.");
  }
  const named = entriesOf(headers).map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  return { headers: new Map(named), body: Buffer.from(body, isBase64Encoded === true ? "base64" : "utf8") };
}

function readTime(text: string | undefined): Date {
  const time = text === undefined ? new Date() : new Date(/^\d{10}$/.test(text) ? Number(text) * 1000 : text);
  if (Number.isNaN(time.getTime())) throw usageError("--at must be an ISO 8601 time, or a Unix time in seconds.");
  return time;
}

function readSeconds(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw usageError("--tolerance must be a whole number of seconds.");
  return Number(text);
}
