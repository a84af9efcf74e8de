import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { connect } from "./api.ts";
import { configPath, readConfig, writeConfig } from "./config.ts";
import { CommandError, exitCodes, usageError } from "./exit-codes.ts";
import type { Globals } from "./globals.ts";
import { baseUrlOf, checkBaseUrl, checkToken, type Identity, identityOf, openSession } from "./session.ts";
import { facts, relativeTime } from "./table.ts";
import { ask, askHidden, isInteractive, jsonText, note, print, printable, readStdin } from "./terminal.ts";

/* Who calls the service: login, logout, whoami. */

const loginHelp = `
The credential is tried before it is kept, in $XDG_CONFIG_HOME/svc/config.json (~/.config/svc), which only you can read. It is
sent to the service that it was given for, and to no other.

Examples:
  $ svc login
  $ svc login --base-url https://api.example.com --with-token < key.txt
  $ npm run --silent token -- --user demo-user | svc login --local --with-token   # the service of npm start`;

export function addAccount(program: Command): void {
  program
    .command("login")
    .summary("keep the address of a service and a credential for it")
    .description("Keeps the address of a service and an API key or JWT for it.")
    .option("--with-token", "read the credential from stdin")
    .option("--local", "the service that npm start runs over DATA_DIR (default .local) here")
    .addHelpText("after", loginHelp)
    .action(async (_options, command: Command) => login(command.optsWithGlobals()));

  program
    .command("logout")
    .summary("forget the credential")
    .description("Forgets the credential of a service. A key stays valid: svc keys delete ends it.")
    .action(async (_options, command: Command) => logout(command.optsWithGlobals()));

  program
    .command("whoami")
    .summary("show who you are to the service")
    .description("Shows which service is called, as whom, and whether it accepts the credential. Never the credential.")
    .action(async (_options, command: Command) => whoami(command.optsWithGlobals()));
}

async function login(options: Globals & { withToken?: boolean; local?: boolean }): Promise<void> {
  const config = readConfig();
  const baseUrl = options.local ? localBaseUrl() : await chosenBaseUrl(options);
  const given = options.withToken ? (await readStdin()).toString("utf8") : await askedToken(baseUrl);
  if (given.trim() === "") throw usageError("There is no credential.", "Paste an API key (svc_…) or a JWT.");
  const token = checkToken(given, "The credential");
  const projects = await (await connect(options, { baseUrl, token, source: "svc login" })).listProjects();
  writeConfig({ base_url: baseUrl, credentials: { ...config.credentials, [baseUrl]: token } });
  note(
    `Signed in to ${baseUrl} with ${phrase(identityOf(token))}: ${counted(projects.length)}. Kept in ${configPath()}.`,
  );
  if (process.env.SVC_API_KEY) note("SVC_API_KEY is set, and wins over it.");
  if (process.env.SVC_BASE_URL) note("SVC_BASE_URL is set, and wins over it.");
}

async function chosenBaseUrl(globals: Globals): Promise<string> {
  const named = globals.baseUrl ?? (process.env.SVC_BASE_URL?.trim() || undefined);
  if (named !== undefined) return checkBaseUrl(named);
  const kept = readConfig().base_url;
  if (!isInteractive()) {
    if (kept !== undefined) return checkBaseUrl(kept);
    throw usageError("There is no service to sign in to.", "Say --base-url <url>.");
  }
  const answer = await ask(kept === undefined ? "Base URL of the service: " : `Base URL of the service [${kept}]: `);
  return checkBaseUrl(answer || (kept ?? ""));
}

async function askedToken(baseUrl: string): Promise<string> {
  if (isInteractive()) return askHidden(`API key or JWT for ${baseUrl} (not shown): `);
  throw usageError("Nobody is there to be asked for a credential.", "Pipe it in: svc login --with-token < key.txt");
}

/** Where the running service has left its address. */
function localBaseUrl(env = process.env): string {
  const dataDir = env.DATA_DIR || ".local";
  const advice = "Start it with npm start, and be in the same folder or set DATA_DIR.";
  let baseUrl: string;
  try {
    baseUrl = checkBaseUrl(String(JSON.parse(readFileSync(join(dataDir, "running.json"), "utf8")).baseUrl));
  } catch {
    throw new CommandError(exitCodes.notFound, `No service runs over ${dataDir}.`, advice);
  }
  // The file is whoever's folder this is: a credential goes to this machine and no farther.
  if (new URL(baseUrl).hostname === "127.0.0.1") return baseUrl;
  throw new CommandError(exitCodes.notFound, `${dataDir} names a service that is not on this machine.`, advice);
}

async function logout(globals: Globals): Promise<void> {
  const config = readConfig();
  const baseUrl = baseUrlOf(globals, config, process.env);
  const { [baseUrl]: token, ...others } = config.credentials;
  if (token !== undefined) writeConfig({ ...config, credentials: others });
  note(token === undefined ? `You were not signed in to ${baseUrl}.` : `Signed out of ${baseUrl}.`);
  if (process.env.SVC_API_KEY) note("SVC_API_KEY is set, and still used.");
}

async function whoami({ json, ...globals }: Globals): Promise<void> {
  const session = openSession(globals);
  const { baseUrl, token, source } = session;
  const identity = identityOf(token);
  const { length } = await (await connect(globals, session)).listProjects();
  if (json) return print(jsonText({ base_url: baseUrl, ...identity, source, project_count: length }));
  print(
    facts([
      ["service", baseUrl],
      ["as", phrase(identity)],
      ["from", source],
      ["projects", String(length)],
    ]),
  );
}

/** `the API key svc_12345678…`, `the JWT of demo-user, which expires in 59 min`. */
function phrase(identity: Identity): string {
  if (identity.kind === "api_key") return `the API key ${identity.key_prefix}…`;
  const expiry = identity.expires_at === null ? "" : `, which expires ${relativeTime(identity.expires_at)}`;
  return `the JWT of ${printable(identity.subject ?? "somebody")}${expiry}`;
}

const counted = (projects: number): string => (projects === 1 ? "1 project" : `${projects} projects`);
