import { type Command, CommanderError, Help, type Option } from "commander";
import { addAccount } from "./commands/account.ts";
import { addApply } from "./commands/apply.ts";
import { addAudit } from "./commands/audit.ts";
import { addCompletion } from "./commands/completion.ts";
import { addDeliveries } from "./commands/deliveries.ts";
import { addDeployments } from "./commands/deployments.ts";
import { addEvents } from "./commands/events.ts";
import { addKeys } from "./commands/keys.ts";
import { addListen } from "./commands/listen.ts";
import { addMcp } from "./commands/mcp.ts";
import { addProjects } from "./commands/projects.ts";
import { addServiceAccounts } from "./commands/service-accounts.ts";
import { SvcCommand } from "./commands/svc-command.ts";
import { addTrigger } from "./commands/trigger.ts";
import { addVerify } from "./commands/verify.ts";
import { addWebhooks } from "./commands/webhooks.ts";
import { addWorkflows } from "./commands/workflows.ts";
import { watchOutput } from "./terminal/checked-output.ts";
import { reportError, reportUsageError } from "./terminal/error-report.ts";
import { CommandError, exitCodes, exitCodesHelp } from "./terminal/exit-codes.ts";
import { addHelp } from "./terminal/help.ts";
import { packageVersion } from "./version.ts";

const help = `
The service and the credential are SVC_BASE_URL and SVC_API_KEY (an API key or a JWT), or those of svc login.

From nothing to a verified delivery in five minutes:
  $ svc login                                   # asks for the base URL, and shows a code to confirm in the console
  $ svc webhooks create http://127.0.0.1:4000/ --events deploy.succeeded deploy.failed > secret.txt
  $ svc listen --port 4000 --secret-file secret.txt   # in another terminal: shows and verifies deliveries
  $ svc webhooks test                           # sends a sample event and waits for the outcome
  $ svc deliveries tail                         # shows deliveries as they happen

A receiver on your machine, and a service that cannot reach it:
  $ svc listen --forward http://127.0.0.1:8080/hook            # gets the project's events, signed like deliveries
  $ svc trigger deploy.failed --forward http://127.0.0.1:8080/hook   # gets a sample, without any service

${exitCodesHelp}`;

const groups = [
  addAccount,
  addKeys,
  addProjects,
  addServiceAccounts,
  addWebhooks,
  addApply,
  addDeliveries,
  addDeployments,
  addEvents,
  addWorkflows,
  addAudit,
  addListen,
  addTrigger,
  addVerify,
  addMcp,
  addCompletion,
];

interface Output {
  /** Whether commander prints nothing to stderr, because an error is reported as JSON. */
  hasJsonErrors?: boolean;
}

const defaults = new Help();

const optionDescription = (option: Option): string =>
  `${option.mandatory ? "required; " : ""}${defaults.optionDescription(option)}`;

/** Wraps the paragraphs of a help text as commander wraps options. Indented lines are examples and lists: they stay. */
const wrapped = (text: string): string =>
  text.replace(/^[^\s].*(\n[^\s].*)*/gm, (lines) =>
    defaults.boxWrap(lines.replaceAll("\n", " "), process.stdout.columns || 80),
  );

/** Suggests the commands of groups that have the name of an unknown command: `svc webhooks certify` for `svc certify`. */
function withSuggestions(program: Command, text: string): string {
  const [unknown, name = ""] = /^unknown command '(.*)'/.exec(text) ?? [];
  const groups = program.commands.filter((group) => group.commands.some((each) => each.name() === name));
  if (groups.length === 0) return text;
  return `${unknown}\nDid you mean:\n${groups.map((group) => `  svc ${group.name()} ${name}\n`).join("")}`;
}

/** Creates the `svc` command with all its commands. */
export function createProgram({ hasJsonErrors = false }: Output = {}): SvcCommand {
  const program = new SvcCommand("svc")
    .description("Manages API keys, projects, webhooks and deliveries from the command line.")
    .option("--base-url <url>", "the base URL of the service; overrides SVC_BASE_URL and svc login")
    .option("--json", "print the API's data, for scripts")
    .option("--debug", "log each request to stderr: method, path, status, request id")
    .version(packageVersion(), "-V, --version", "show the version of svc")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .showSuggestionAfterError()
    .showHelpAfterError("→ Show the usage: add --help")
    .configureHelp({ showGlobalOptions: true, optionDescription })
    .configureOutput({
      writeOut: (text) => process.stdout.write(wrapped(text)),
      outputError: (text, write) => write(withSuggestions(program, text.replace(/^error: /, ""))),
      ...(hasJsonErrors && { writeErr: () => {} }),
    })
    .addHelpText("after", help)
    .exitOverride();
  for (const add of groups) add(program);
  for (const group of program.commands) {
    // No `help` command in the lists of subcommands: --help is enough.
    group.helpCommand(false);
    group.commands.find((command) => command.name() === "list")?.alias("ls");
  }
  addHelp(program);
  return program;
}

/** Looks at the words themselves, because an error may occur before they are parsed. */
const requestsJson = (args: string[]): boolean => args.slice(0, [...args, "--"].indexOf("--")).includes("--json");

/** Runs a command line. Sets the exit code of the process. */
export async function run(args: string[]): Promise<void> {
  const json = requestsJson(args);
  watchOutput((code, advice) => {
    // A reader such as `head` has closed the pipe: the exit code is that of the command.
    if (code === "EPIPE" && advice === undefined) process.exit();
    const error = new CommandError(exitCodes.failed, `Could not write to stdout (${code}).`, advice);
    process.exit(reportError(error, { json }));
  });
  try {
    await createProgram({ hasJsonErrors: json }).parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) process.exitCode = reportError(error, { json });
    // commander exits with 0 only for help or a version that was requested.
    else if (error.exitCode === 0) process.exitCode = exitCodes.ok;
    else process.exitCode = json ? reportUsageError(error) : exitCodes.usage;
  }
}
