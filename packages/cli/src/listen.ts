import type { Command } from "commander";
import { usageError } from "./exit-codes.ts";
import type { Globals } from "./globals.ts";
import { checkSecrets, readSecrets, type SecretOptions, secretOptions, secretsHelp } from "./webhook-secrets.ts";

const help = `
${secretsHelp}
Without a secret, signatures are not checked.

Accepts connections from this machine only. A service on this machine can deliver to http://127.0.0.1. For a service
elsewhere, use a tunnel with an https URL.

Examples:
  $ svc listen --port 4000 --secret-file secret.txt
  $ svc listen --status 500                           # see retries and hints
  $ svc listen --forward http://127.0.0.1:8080/hook   # forward to your receiver and return its response
  $ svc listen --json --count 1 > delivery.json       # check it later: svc verify --delivery delivery.json

Ctrl-C stops it with exit code 0.`;

interface Options extends SecretOptions {
  port: string;
  status: string;
  forward?: string;
  count?: string;
}

export function addListen(program: Command): void {
  secretOptions(
    program
      .command("listen")
      .summary("receive, verify and show deliveries on this machine")
      .description("Receives deliveries on this machine, verifies and shows each, and responds."),
  )
    .option("--port <port>", "the port on 127.0.0.1; 0 picks a free port", "4000")
    .option("--status <code>", "the status code of responses", "200")
    .option("--forward <url>", "forward each delivery to this URL and return its response")
    .option("--count <n>", "stop after n deliveries; exit code 1 if a signature was invalid")
    .addHelpText("after", help)
    .action(async (_options: Options, command: Command) => listen(command.optsWithGlobals()));
}

async function listen({ json = false, ...options }: Options & Globals): Promise<void> {
  const receiveOptions = {
    status: readNumber("--status", options.status, 200, 599),
    port: readNumber("--port", options.port, 0, 65_535),
    count: options.count === undefined ? undefined : readNumber("--count", options.count, 1, 1e6),
    forward: options.forward === undefined ? undefined : readForwardUrl(options.forward),
    secrets: checkSecrets(readSecrets(options)),
    json,
  };
  const { receive } = await import("./listen/receive.ts");
  await receive(receiveOptions);
}

function readNumber(option: string, text: string, min: number, max: number): number {
  const number = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw usageError(`${option} must be a whole number from ${min} to ${max}.`);
}

function readForwardUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw usageError("--forward must be an absolute http(s) URL.");
  return url;
}
