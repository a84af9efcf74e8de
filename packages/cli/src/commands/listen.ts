import type { Command } from "commander";
import type { EventName } from "../../../client/src/client.ts";
import { usageError } from "../terminal/exit-codes.ts";
import { runUntilInterrupted } from "../terminal/interrupt.ts";
import { readNumber } from "../terminal/read-number.ts";
import { deploymentEventsOption } from "./delivery-options.ts";
import { type InProject, openProject, projectOption } from "./in-project.ts";
import { checkSecrets, readSecrets, type SecretOptions, secretOptions, secretsHelp } from "./webhook-secrets.ts";

const help = `
Without --port: shows the deployment events of a project from now on, and with --forward sends each once to your receiver, signed.
With --port: receives the deliveries of a webhook of yours on this machine, or behind a tunnel, and verifies them.

The first needs no webhook and no public address, only a key with events:read. It sends the headers, bytes and signatures of a
delivery, and retries nothing. The signing secret is the given one, or that of this machine, which is shown at the start. Test deliveries are
not events: send a sample with svc trigger <event> --forward <url>.

${secretsHelp}

Examples:
  $ svc listen --forward http://127.0.0.1:8080/hook     # your receiver gets the events of any stage
  $ svc listen --port 4000 --secret-file secret.txt     # receives from a webhook that you created
  $ svc listen --port 4000 --status 500                 # see retries and hints
  $ svc listen --port 4000 --json --count 1 > delivery.json   # check it later: svc verify --delivery delivery.json

Ctrl-C stops it with exit code 0.`;

interface Options extends SecretOptions, InProject {
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
    .option("--forward <url>", "send each event to this URL: https, or http on this machine")
    .addOption(deploymentEventsOption("only these events; default: all"))
    .option(...projectOption)
    .option("--port <port>", "receive deliveries instead, on this port of 127.0.0.1; 0 picks a free port")
    .option("--status <code>", "with --port: the status code of responses; default: 200")
    .option("--count <n>", "stop after n; exit code 1 if a signature was invalid, or a forwarded event failed")
    .addHelpText("after", help)
    .action(async (_options: Options, command: Command) => listen(command.optsWithGlobals()));
}

async function listen(options: Options): Promise<void> {
  const settings = {
    count: options.count === undefined ? undefined : readNumber("--count", options.count, 1, 1e6),
    secrets: checkSecrets(readSecrets(options)),
    json: options.json === true,
  };
  if (options.port === undefined) return followEvents(options, settings);
  const status = readNumber("--status", options.status ?? "200", 200, 599);
  const port = readNumber("--port", options.port, 0, 65_535);
  if (options.events || options.forward !== undefined) {
    throw usageError("--events and --forward are for deployment events: leave out --port.");
  }
  const { receive } = await import("../listen/receive.ts");
  await receive({ ...settings, status, port });
}

interface Settings {
  count: number | undefined;
  secrets: string[];
  json: boolean;
}

async function followEvents(options: Options, { count, secrets, json }: Settings): Promise<void> {
  if (options.status !== undefined) throw usageError("--status needs --port.");
  const [{ follow }, { readForwardUrl }, { forwardSecret }] = await Promise.all([
    import("../listen/follow.ts"),
    import("../listen/forward.ts"),
    import("../listen/forward-secret.ts"),
  ]);
  const forward = options.forward === undefined ? undefined : readForwardUrl(options.forward);
  if (!forward && (options.secret !== undefined || options.secretFile !== undefined)) {
    throw usageError(
      "A secret has no use without --forward and --port.",
      "Pass --forward <url> to sign what is forwarded, or --port <port> to receive and verify deliveries.",
    );
  }
  await runUntilInterrupted(async (signal) => {
    const { api, projectId } = await openProject(options, { signal });
    const destination = forward && { url: forward, secrets: secrets.length > 0 ? secrets : [forwardSecret()] };
    await follow(api, projectId, { events: options.events, destination, count, json, signal });
  });
}
