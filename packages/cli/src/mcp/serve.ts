import { once } from "node:events";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { connect } from "../commands/api.ts";
import { networkAdvice } from "../commands/proxy.ts";
import type { Session } from "../commands/session.ts";
import { CommandError, usageError } from "../terminal/exit-codes.ts";
import type { Globals } from "../terminal/globals.ts";
import { note } from "../terminal/terminal.ts";
import { packageVersion } from "../version.ts";
import { jsonLines } from "./json-lines.ts";
import { createServer } from "./server.ts";

interface ServeOptions {
  /** Offer only the tools that change nothing. */
  isReadOnly: boolean;
}

/**
 * Serves the tools on stdin and stdout until the client disconnects. Prints nothing but the protocol to stdout.
 * @param session an error is served too: of a server that ends before it is initialized, clients show no reason
 * @throws CommandError when stdin ends without a message
 */
export async function serve(globals: Globals, session: Session | CommandError, options: ServeOptions): Promise<void> {
  const isUsable = !(session instanceof CommandError);
  const api = isUsable ? await connect(globals, session) : session;
  const lines = jsonLines(process.stdin, (line) => process.stdout.write(`${line}\n`));
  const closed = once(lines, "close");
  const permissions = isUsable ? await permissionsOf(globals, session) : null;
  const create = () =>
    createServer({
      name: "svc",
      version: packageVersion(),
      api,
      project: isUsable ? session.project : undefined,
      isReadOnly: options.isReadOnly,
      permissions,
      report: (error) => note((error as Error).stack ?? String(error)),
      networkAdvice,
    });
  for (const line of create().leftOut) note(`Not offered: ${line}.`);
  serveStdio(() => create().server, {
    transport: new StdioServerTransport(lines),
    onerror: ({ message }) => note(message),
  });
  await closed;
  if (isUsable && process.stdin.bytesRead === 0) {
    throw usageError("stdin ended without a message.", "An MCP client starts this command: see svc mcp --help.");
  }
}

/** A client waits for the start of a server. */
const MAX_START_MS = 5_000;

/**
 * Returns the permissions of the credential; null = all that its user has, or not known: then the calls return the error. A service
 * of an earlier version returns no permissions.
 */
async function permissionsOf(globals: Globals, session: Session): Promise<string[] | null> {
  const api = await connect(globals, session, { maxRetries: 0, signal: AbortSignal.timeout(MAX_START_MS) });
  try {
    const { permissions }: { permissions?: string[] | null } = await api.getCurrentCredential();
    return permissions ?? null;
  } catch {
    return null;
  }
}
