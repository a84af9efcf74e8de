import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import type { Client, CurrentCredential } from "../../../client/src/client.ts";
import { CommandError, exitCodes, usageError } from "../terminal/exit-codes.ts";
import type { Globals } from "../terminal/globals.ts";
import { ask, askHidden, isInteractive, jsonText, note, print, printable, readStdin } from "../terminal/terminal.ts";
import { facts, relativeTime } from "../views/table.ts";
import { connect } from "./api.ts";
import { configPath, readConfig, writeConfig } from "./config.ts";
import { baseUrlOf, checkBaseUrl, checkToken, type Identity, identityOf, openSession } from "./session.ts";
import { signInByCode } from "./sign-in.ts";

/* The commands for the identity of the caller: login, logout, whoami. */

const loginHelp = `
Shows a code, which a person types in the console to give this machine an API key: its name, what it may do, and for how long. With
--with-token, asks for a key or reads it from stdin.

Checks the credential with the service, then stores it in $XDG_CONFIG_HOME/svc/config.json (default: ~/.config/svc), which
only you can read. The credential is never sent to another service.

Examples:
  $ svc login
  $ svc login --base-url https://api.example.com --with-token < key.txt
  $ npm run --silent token -- --user demo-user | svc login --local --with-token   # the service that npm start runs`;

export function addAccount(program: Command): void {
  program
    .command("login")
    .summary("store the base URL of a service and a credential for it")
    .description("Stores the base URL of a service and an API key or JWT for it.")
    .option("--with-token", "use an API key or a JWT: asks for it, or reads stdin")
    .option("--local", "use the service that npm start runs with DATA_DIR (default: .local) in this directory")
    .addHelpText("after", loginHelp)
    .action(async (_options, command: Command) => login(command.optsWithGlobals()));

  program
    .command("logout")
    .summary("delete the stored credential")
    .description("Deletes the stored credential of a service. An API key stays valid: use svc keys delete.")
    .action(async (_options, command: Command) => logout(command.optsWithGlobals()));

  program
    .command("whoami")
    .summary("show the service and your identity")
    .description("Shows the service and your identity, and checks the credential. Never prints the credential.")
    .action(async (_options, command: Command) => whoami(command.optsWithGlobals()));
}

async function login(options: Globals & { withToken?: boolean; local?: boolean }): Promise<void> {
  // Fails before anything is asked, if it is broken.
  readConfig();
  const baseUrl = options.local ? localBaseUrl() : await resolveBaseUrl(options);
  const given = await credentialFor(baseUrl, options);
  if (given.trim() === "") throw usageError("The credential is empty.", "Pass an API key (svc_…) or a JWT.");
  const token = checkToken(given, "The credential");
  const { projectCount } = await check(await connect(options, { baseUrl, token }));
  // Read now: a login to another service may have ended meanwhile.
  const config = readConfig();
  writeConfig({ ...config, base_url: baseUrl, credentials: { ...config.credentials, [baseUrl]: token } });
  note(
    `Signed in to ${baseUrl} with ${describeIdentity(identityOf(token))}${describeCount(projectCount)}. Stored in ${configPath()}.`,
  );
  const { SVC_API_KEY, SVC_BASE_URL } = process.env;
  if (SVC_API_KEY?.trim()) note("SVC_API_KEY is set and takes precedence over it.");
  // Without these options, the stored URL is that of the variable.
  const isOther = options.local || options.baseUrl !== undefined;
  if (isOther && SVC_BASE_URL?.trim()) note("SVC_BASE_URL is set and takes precedence over it.");
}

async function resolveBaseUrl(globals: Globals): Promise<string> {
  const given = globals.baseUrl ?? (process.env.SVC_BASE_URL?.trim() || undefined);
  if (given !== undefined) return checkBaseUrl(given);
  const stored = readConfig().base_url;
  if (!isInteractive()) {
    if (stored !== undefined) return checkBaseUrl(stored);
    throw usageError("No base URL given.", "Pass --base-url <url>.");
  }
  const answer = await ask(
    stored === undefined ? "Base URL of the service: " : `Base URL of the service [${stored}]: `,
  );
  return checkBaseUrl(answer || (stored ?? ""));
}

async function credentialFor(baseUrl: string, options: Globals & { withToken?: boolean }): Promise<string> {
  if (options.withToken && isInteractive()) return askHidden(`API key or JWT for ${baseUrl} (not shown): `);
  if (options.withToken) return (await readStdin()).toString("utf8");
  if (isInteractive()) return signInByCode(await connect(options, { baseUrl }));
  throw usageError(
    "No credential given and stdin is not a terminal.",
    "Pass it on stdin: svc login --with-token < key.txt",
  );
}

/** Reads the base URL that a local service has written to its data directory. */
function localBaseUrl(): string {
  const dataDir = process.env.DATA_DIR || ".local";
  const advice = "Start it with npm start, and run svc in the same directory or set DATA_DIR.";
  let baseUrl: string;
  try {
    baseUrl = checkBaseUrl(String(JSON.parse(readFileSync(join(dataDir, "running.json"), "utf8")).baseUrl));
  } catch {
    throw new CommandError(exitCodes.notFound, `No running service found in ${dataDir}.`, advice);
  }
  // The directory may belong to someone else: never send a credential to the host that its file names.
  if (new URL(baseUrl).hostname === "127.0.0.1") return baseUrl;
  throw new CommandError(exitCodes.notFound, `The service in ${dataDir} is not on this machine.`, advice);
}

async function logout(globals: Globals): Promise<void> {
  const config = readConfig();
  const baseUrl = baseUrlOf(globals, config);
  const { [baseUrl]: token, ...others } = config.credentials;
  if (token !== undefined) writeConfig({ ...config, credentials: others });
  note(token === undefined ? `You were not signed in to ${baseUrl}.` : `Signed out of ${baseUrl}.`);
  if (process.env.SVC_API_KEY) note("SVC_API_KEY is still set.");
}

/** Shows what the credential at hand may do. */
async function whoami({ json, ...globals }: Globals): Promise<void> {
  const session = openSession(globals);
  const { baseUrl, token, source, project } = session;
  const identity = identityOf(token);
  const { credential, projectCount } = await check(await connect(globals, session));
  const { user_id, api_key, permissions, project_ids } = credential;
  // Of a JWT, `identity` has the expiry that its claims name.
  const expires_at = identity.kind === "jwt" ? identity.expires_at : credential.expires_at;
  if (json) {
    const limits = { permissions, project_ids, expires_at };
    return print(
      jsonText({ base_url: baseUrl, ...identity, user_id, ...limits, source, project_count: projectCount ?? null }),
    );
  }
  print(
    facts([
      ["service", baseUrl],
      ["identity", describeIdentity(identity)],
      ["source", source],
      ["user", user_id],
      ["key", api_key ? `${api_key.name} (${api_key.id})` : undefined],
      ["permissions", permissions?.join(", ")],
      ["only projects", project_ids?.join(", ")],
      ["expires", credential.expires_at === null ? undefined : relativeTime(credential.expires_at)],
      ["default project", project],
      ["projects", projectCount === undefined ? undefined : String(projectCount)],
    ]),
  );
}

/** `the API key svc_12345678…`, `the JWT of demo-user, which expires in 59 min`. */
function describeIdentity(identity: Identity): string {
  if (identity.kind === "api_key") return `the API key ${identity.key_prefix}…`;
  const owner = identity.subject === null ? "a JWT without a subject" : `the JWT of ${printable(identity.subject)}`;
  const expiry = identity.expires_at === null ? "" : `, which expires ${relativeTime(identity.expires_at)}`;
  return owner + expiry;
}

/** Checks a credential with the service. `projectCount` is undefined for a scoped key that cannot list projects. */
async function check(api: Client): Promise<{ credential: CurrentCredential; projectCount: number | undefined }> {
  const credential = await api.getCurrentCredential();
  const mayList = credential.permissions?.includes("projects:read") ?? true;
  return { credential, projectCount: mayList ? (await api.listProjects()).length : undefined };
}

function describeCount(projects: number | undefined): string {
  if (projects === undefined) return "";
  return projects === 1 ? ": 1 project" : `: ${projects} projects`;
}
