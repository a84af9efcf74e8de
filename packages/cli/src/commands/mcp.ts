import type { Command } from "commander";
import { reportError } from "../terminal/error-report.ts";
import { CommandError } from "../terminal/exit-codes.ts";
import type { Globals } from "../terminal/globals.ts";
import { openSession, type Session } from "./session.ts";

const help = `
Communicates on stdin and stdout with the program that starts it. The credential is SVC_API_KEY or that of svc login. Prefer
an API key: it does not expire, and you can delete it.

Settings of an MCP client:
  {"mcpServers": {"deployments": {"command": "svc", "args": ["mcp"], "env": {"SVC_BASE_URL": "https://…", "SVC_API_KEY": "svc_…"}}}}

Tools: list_projects, list_webhooks, create_webhook, update_webhook, delete_webhook, certify_webhook, why_is_this_webhook_failing,
list_deliveries, show_delivery, redeliver_delivery, recover_deliveries, send_test_delivery, explain_failed_delivery, list_deployments,
deployment_status. Tools that change something are marked as such.

With --read-only, or a key without the permissions (svc keys create --permission …), only the other tools are offered. Which ones are
left out, and why, is on stderr and in the instructions for the assistant. Without a usable credential the server starts too, and each tool
returns what to do.`;

export function addMcp(program: Command): void {
  program
    .command("mcp")
    .summary("serve the Model Context Protocol (MCP) on stdio, for AI assistants")
    .description("Lets an AI assistant manage webhooks and deliveries, as a Model Context Protocol server on stdio.")
    .option("--read-only", "offer only the tools that change nothing")
    .addHelpText("after", help)
    .action(async (_options, command: Command) => {
      const { readOnly: isReadOnly = false, ...globals }: Globals & { readOnly?: boolean } = command.optsWithGlobals();
      const session = sessionOrError(globals);
      // Imported here because the SDK is large, and the import would slow down the other commands.
      const { serve } = await import("../mcp/serve.ts");
      await serve(globals, session, { isReadOnly });
    });
}

/** @returns an error that says all, for an assistant to pass on. Sets the exit code, and prints it for the log of the client. */
function sessionOrError(globals: Globals): Session | CommandError {
  try {
    return openSession(globals);
  } catch (error) {
    process.exitCode = reportError(error, globals);
    const { exitCode, message, advice = "" } = error as CommandError;
    return new CommandError(exitCode, `${message} ${advice} Then restart this MCP server.`.replace("  ", " "));
  }
}
