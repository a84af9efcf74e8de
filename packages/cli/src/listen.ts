import { type Command, Option } from "commander";
import type { EventName } from "../../client/src/client.ts";
import { eventNames } from "../../client/src/values.ts";
import { connect } from "./api.ts";
import { usageError } from "./exit-codes.ts";
import { findProject } from "./find.ts";
import type { Globals } from "./globals.ts";
import { runUntilInterrupted } from "./interrupt.ts";
import { openSession } from "./session.ts";
import { note } from "./terminal.ts";
import { checkSecrets, readSecrets, type SecretOptions, secretOptions, secretsHelp } from "./webhook-secrets.ts";
import { collectEvents } from "./webhooks.ts";

const help = `
Without --webhook and --port: follows the deployment events of a project of any service, from now on. Needs no webhook and no
public address, only a key with events:read. With --forward, sends each event once to your receiver, with the headers, bytes
and signatures of a delivery; nothing is retried. The signing secret is the given one, or a new one, which is shown at the start.
Test deliveries are not events: send a sample with svc trigger <event> --forward <url>.

--webhook, with a service on this machine: starts a receiver and creates a webhook for it, which is deleted at the end.
--port: starts a receiver for a webhook of yours, on this machine or behind a tunnel, and verifies what arrives.

${secretsHelp}

Examples:
  $ svc listen --forward http://127.0.0.1:8080/hook     # your receiver gets the events of any stage
  $ svc listen --webhook                                # a local service delivers to this terminal
  $ svc listen --port 4000 --secret-file secret.txt     # receives from a webhook that you created
  $ svc listen --port 4000 --status 500                 # see retries and hints
  $ svc listen --port 4000 --json --count 1 > delivery.json   # check it later: svc verify --delivery delivery.json

Ctrl-C stops it with exit code 0.`;

interface Options extends SecretOptions, Globals {
  project?: string;
  webhook?: boolean;
  port?: string;
  status?: string;
  events?: EventName[];
  forward?: string;
  count?: string;
}

export function addListen(program: Command): void {
  secretOptions(
    program
      .command("listen")
      .summary("show deployment events as they happen, and forward them to a receiver on this machine")
      .description(
        "Shows deployment events as they happen, and forwards them, signed like deliveries. Or receives deliveries on this machine, and verifies them.",
      ),
  )
    .option("--forward <url>", "send each event or delivery to this URL: https, or http on this machine")
    .addOption(
      new Option("--events <names...>", "only these events; default: all")
        .choices(eventNames)
        .argParser(collectEvents(eventNames)),
    )
    .option("--project <id or name>", "default: your only project")
    .option("--webhook", "receive deliveries of a temporary webhook; only with a service on this machine")
    .option("--port <port>", "receive deliveries on this port of 127.0.0.1; 0 picks a free port")
    .option("--status <code>", "with --webhook or --port: the status code of responses; default: 200")
    .option("--count <n>", "stop after n; exit code 1 if a signature was invalid, or a forwarded event failed")
    .addHelpText("after", help)
    .action(async (_options: Options, command: Command) => listen(command.optsWithGlobals()));
}

async function listen(options: Options): Promise<void> {
  const forward = options.forward === undefined ? undefined : await forwardUrl(options.forward);
  const settings = {
    count: options.count === undefined ? undefined : readNumber("--count", options.count, 1, 1e6),
    secrets: checkSecrets(readSecrets(options)),
    forward,
    json: options.json === true,
  };
  if (options.webhook || options.port !== undefined) return receiveDeliveries(options, settings);
  await followEvents(options, settings);
}

async function forwardUrl(text: string): Promise<URL> {
  return (await import("./listen/forward.ts")).readForwardUrl(text);
}

interface Settings {
  count: number | undefined;
  secrets: string[];
  forward: URL | undefined;
  json: boolean;
}

const hasSecretOption = ({ secret, secretFile }: SecretOptions) => secret !== undefined || secretFile !== undefined;

async function receiveDeliveries(options: Options, settings: Settings): Promise<void> {
  const status = readNumber("--status", options.status ?? "200", 200, 599);
  const port = readNumber("--port", options.port ?? "0", 0, 65_535);
  if (options.events && !options.webhook)
    throw usageError("--events needs --webhook, or neither of --webhook and --port.");
  const { receive } = await import("./listen/receive.ts");
  if (!options.webhook) return receive({ ...settings, status, port });
  if (hasSecretOption(options)) throw usageError("--webhook uses the secret of its webhook. Leave out the secret.");
  const session = openSession(options);
  if (!isOnThisMachine(session.baseUrl)) {
    throw usageError(
      `${session.baseUrl} cannot reach a receiver on this machine.`,
      "Leave out --webhook to follow the events of the project. Or create a webhook for a tunnel, and pass --port.",
    );
  }
  const { createTemporaryWebhook } = await import("./listen/temporary-webhook.ts");
  const subscribe = async (url: string) => {
    const api = await connect(options, session);
    const projectId = await findProject(api, options.project);
    return createTemporaryWebhook(api, projectId, { url, events: options.events ?? [...eventNames] });
  };
  await receive({ ...settings, status, port, secrets: [], subscribe });
}

const isOnThisMachine = (baseUrl: string) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(baseUrl).hostname);

async function followEvents(options: Options, { count, secrets, forward, json }: Settings): Promise<void> {
  if (options.status !== undefined) throw usageError("--status needs --webhook or --port.");
  if (hasSecretOption(options) && !forward) {
    throw usageError(
      "A secret has no use without --forward, --webhook and --port.",
      "Pass --forward <url> to sign what is forwarded, or --port <port> to receive and verify deliveries.",
    );
  }
  const [{ follow }, { generateSecret }] = await Promise.all([
    import("./listen/follow.ts"),
    import("./listen/signed-delivery.ts"),
  ]);
  await runUntilInterrupted(async (signal) => {
    const api = await connect(options, openSession(options), { signal });
    const projectId = await findProject(api, options.project);
    const signing = secrets.length > 0 ? secrets : [generateSecret()];
    if (forward && secrets.length === 0) {
      note(`Signing secret, new for this run: ${signing[0]} (keep one with --secret or --secret-file)`);
    }
    const destination = forward && { url: forward, secrets: signing };
    await follow(api, projectId, { events: options.events, destination, count, json, signal });
  });
}

function readNumber(option: string, text: string, min: number, max: number): number {
  const number = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw usageError(`${option} must be a whole number from ${min} to ${max}.`);
}
