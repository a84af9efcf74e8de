import { Command, CommanderError } from "commander";
import { addAccount } from "./account.ts";
import { addCompletion } from "./completion.ts";
import { addDeliveries } from "./deliveries.ts";
import { addDeployments } from "./deployments.ts";
import { reportError } from "./error-report.ts";
import { exitCodes, exitCodesHelp } from "./exit-codes.ts";
import { addKeys } from "./keys.ts";
import { addListen } from "./listen.ts";
import { addMcp } from "./mcp.ts";
import { addProjects } from "./projects.ts";
import { addVerify } from "./verify.ts";
import { addWebhooks } from "./webhooks.ts";

const help = `
The service and the credential are SVC_BASE_URL and SVC_API_KEY (an API key or a JWT), or those of svc login.

From nothing to a verified delivery in five minutes:
  $ svc login                                   # asks for the base URL, and for an API key or a JWT
  $ svc webhooks create http://127.0.0.1:4000/ --events deploy.succeeded deploy.failed > secret.txt
  $ svc listen --secret-file secret.txt         # in another terminal: shows and verifies deliveries
  $ svc webhooks test                           # sends a sample event and waits for the outcome
  $ svc deliveries tail                         # shows deliveries as they happen

${exitCodesHelp}`;

const groups = [
  addAccount,
  addKeys,
  addProjects,
  addWebhooks,
  addDeliveries,
  addDeployments,
  addListen,
  addVerify,
  addMcp,
  addCompletion,
];

/** Creates the `svc` command with all its commands. */
export function createProgram(): Command {
  const program = new Command("svc")
    .description("Manages API keys, projects, webhooks and deliveries from the command line.")
    .option("--base-url <url>", "the base URL of the service; overrides SVC_BASE_URL and svc login")
    .option("--json", "print the API's data, for scripts")
    .option("--debug", "log each request to stderr: method, path, status, request id")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "")) })
    .addHelpText("after", help)
    .exitOverride();
  for (const add of groups) add(program);
  // No `help` command in the lists: --help is enough.
  for (const group of program.commands) group.helpCommand(false);
  return program;
}

/** Runs a command line. Sets the exit code of the process. */
export async function run(args: string[]): Promise<void> {
  // EPIPE: a reader such as `head` has closed the pipe.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  try {
    await createProgram().parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) process.exitCode = reportError(error);
    // commander exits with 0 only for help that was requested.
    else process.exitCode = error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
}
