import { Command, CommanderError } from "commander";
import { addAccount } from "./account.ts";
import { addCompletion } from "./completion.ts";
import { addDeliveries } from "./deliveries.ts";
import { reportError } from "./error-report.ts";
import { exitCodes, exitCodesHelp } from "./exit-codes.ts";
import { addKeys } from "./keys.ts";
import { addListen } from "./listen.ts";
import { addMcp } from "./mcp.ts";
import { addProjects } from "./projects.ts";
import { addVerify } from "./verify.ts";
import { addWebhooks } from "./webhooks.ts";

const help = `
The service and the credential come from SVC_BASE_URL and SVC_API_KEY (an API key or a JWT), or else from svc login.

Five minutes, from nothing to a verified delivery:
  $ svc login                                   # asks for the address, and for an API key or a JWT
  $ svc webhooks create http://127.0.0.1:4000/ --events deploy.succeeded deploy.failed > secret.txt
  $ svc listen --secret-file secret.txt         # another terminal: shows and verifies what arrives
  $ svc webhooks test                           # sends a sample event and waits for the outcome
  $ svc deliveries tail                         # what is going on, live

${exitCodesHelp}`;

const groups = [
  addAccount,
  addKeys,
  addProjects,
  addWebhooks,
  addDeliveries,
  addListen,
  addVerify,
  addMcp,
  addCompletion,
];

export function svc(): Command {
  const program = new Command("svc")
    .description("API keys, projects, webhooks and their deliveries, from the command line.")
    .option("--base-url <url>", "the service; wins over SVC_BASE_URL and svc login")
    .option("--json", "print the API's data, for scripts")
    .option("--debug", "tell of every request on stderr: method, path, status, request id")
    .helpOption("-h, --help", "how it is used")
    .helpCommand(false)
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "")) })
    .addHelpText("after", help)
    .exitOverride();
  for (const add of groups) add(program);
  // --help does it; as a command it would stand in every list.
  for (const group of program.commands) group.helpCommand(false);
  return program;
}

/** Runs a command line to its end. */
export async function run(args: string[]): Promise<void> {
  // Who reads along has had enough: head, less.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  try {
    await svc().parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) process.exitCode = reportError(error);
    // Help that was asked for is no mistake; help that was not is one.
    else process.exitCode = error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
}
