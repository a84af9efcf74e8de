import type { Command } from "commander";
import type { Globals } from "./globals.ts";
import { openSession } from "./session.ts";

const help = `
It speaks on stdin and stdout with the program that started it. The credential is SVC_API_KEY, or that of svc login; an API
key is best, since it does not expire and can be deleted.

In the settings of an MCP client:
  {"mcpServers": {"deployments": {"command": "svc", "args": ["mcp"], "env": {"SVC_BASE_URL": "https://…", "SVC_API_KEY": "svc_…"}}}}

Tools: list_projects, list_webhooks, create_webhook, delete_webhook, list_deliveries, show_delivery, redeliver_delivery,
explain_failed_delivery. Those that change something say so.`;

export function addMcp(program: Command): void {
  program
    .command("mcp")
    .summary("serve the Model Context Protocol on stdio, for assistants")
    .description(
      "Lets an assistant look after webhooks and deliveries, as a server of the Model Context Protocol on stdio.",
    )
    .addHelpText("after", help)
    .action(async (_options, command: Command) => {
      const globals: Globals = command.optsWithGlobals();
      const session = openSession(globals);
      // Loaded when it is used: the SDK is large.
      const { serve } = await import("./mcp/serve.ts");
      await serve(globals, session);
    });
}
