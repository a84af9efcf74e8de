import { join, relative, resolve } from "node:path";
import { defaultDataDir, defaultPort, defaultSqsPort, type LocalSettings } from "./settings.ts";

/*
 * Commands that work when pasted into another terminal, in the project's folder: with the settings of this run that are not
 * the defaults.
 */

const projectRoot = join(import.meta.dirname, "../..");

/** `npm start` over the same data directory, on the same ports. */
export function startCommand({ dataDir, port, sqsPort }: Pick<LocalSettings, "dataDir" | "port" | "sqsPort">): string {
  const portAssignments = [
    ...(port === defaultPort ? [] : [`PORT=${port}`]),
    ...(sqsPort === defaultSqsPort ? [] : [`SQS_PORT=${sqsPort}`]),
  ];
  return [...dataDirAssignment(dataDir), ...portAssignments, "npm start"].join(" ");
}

/**
 * An npm script that talks to the service over this data directory.
 * @param args follow `--`; empty = none
 */
export function scriptCommand(
  script: "token" | "console" | "project" | "event" | "demo",
  args: string,
  { dataDir, isSecretGiven }: Pick<LocalSettings, "dataDir" | "isSecretGiven">,
): string {
  const signsTokens = script === "token" || script === "console" || script === "demo";
  const command = `npm run --silent ${script}${args === "" ? "" : ` -- ${args}`}`;
  return [...dataDirAssignment(dataDir), ...(isSecretGiven && signsTokens ? [secretAssignment] : []), command].join(
    " ",
  );
}

/** The secret itself is not printed: the shell stops with this message unless the variable is set there too. */
const secretAssignment = `JWT_SECRET="\${JWT_SECRET:?Set it to the secret of the running service}"`;

function dataDirAssignment(dataDir: string): string[] {
  const path = resolve(dataDir);
  if (path === join(projectRoot, defaultDataDir)) return [];
  // npm runs scripts in the project's folder, so a path inside it can be short.
  const inside = relative(projectRoot, path);
  const isInside = inside !== "" && !inside.startsWith("..");
  return [`DATA_DIR=${quoted(isInside ? inside : path)}`];
}

/** As one word of a POSIX shell. */
function quoted(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
