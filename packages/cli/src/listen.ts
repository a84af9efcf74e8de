import type { Command } from "commander";
import { usageError } from "./exit-codes.ts";
import type { Globals } from "./globals.ts";
import { readSecrets, type SecretOptions, secretOptions, secretsHelp } from "./webhook-secrets.ts";

const help = `
${secretsHelp} Without any, signatures are not checked.
It takes connections from this machine only. A service on this machine delivers to it (plain http to 127.0.0.1 is allowed
there); for one elsewhere put a tunnel with https in front.

Examples:
  $ svc listen --port 4000 --secret-file secret.txt
  $ svc listen --status 500                           # to see retries and hints
  $ svc listen --forward http://127.0.0.1:8080/hook   # on to your receiver, whose answer is passed back
  $ svc listen --json --count 1 > delivery.json       # to be looked into later: svc verify --delivery delivery.json

Ctrl-C ends it, with exit code 0.`;

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
      .summary("receive deliveries on this machine, verify and show them")
      .description("Receives deliveries on this machine: verifies each, shows it, and answers."),
  )
    .option("--port <port>", "on 127.0.0.1; 0 is any free one", "4000")
    .option("--status <code>", "what to answer", "200")
    .option("--forward <url>", "pass each delivery on to this URL, and its answer back")
    .option("--count <n>", "end after so many; exit code 1 when a signature did not hold")
    .addHelpText("after", help)
    .action(async (_options: Options, command: Command) => listen(command.optsWithGlobals()));
}

async function listen({ json = false, ...options }: Options & Globals): Promise<void> {
  const plan = {
    status: readNumber("--status", options.status, 200, 599),
    port: readNumber("--port", options.port, 0, 65_535),
    count: options.count === undefined ? undefined : readNumber("--count", options.count, 1, 1e6),
    forward: options.forward === undefined ? undefined : readForward(options.forward),
    secrets: readSecrets(options),
    json,
  };
  const { receive } = await import("./listen/receive.ts");
  await receive(plan);
}

function readNumber(option: string, text: string, least: number, most: number): number {
  const number = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw usageError(`${option} takes a whole number from ${least} to ${most}.`);
}

function readForward(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw usageError("--forward takes an absolute http(s) URL.");
  return url;
}
