import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { usageError } from "../terminal/exit-codes.ts";
import { askHidden, isInteractive } from "../terminal/terminal.ts";

/* The signing secrets that `verify` and `listen` check signatures with. */

export interface SecretOptions {
  secret?: string[];
  secretFile?: string;
}

export const secretOptions = (command: Command): Command =>
  command
    .option("--secret <whsec_…>", "a signing secret, repeatable (visible in process lists)", collect)
    .option("--secret-file <path>", "a file with signing secrets, one per line");

export const secretsHelp =
  "Pass the signing secrets with --secret, --secret-file or SVC_WEBHOOK_SECRET (comma-separated).";

/** Collects the values of a repeatable option. */
export const collect = (value: string, previous: string[] = []): string[] => [...previous, value];

/** Returns the secrets unchanged: `verify` reports white space and quotes around a secret as a mistake. */
export function readSecrets({ secret = [], secretFile }: SecretOptions, env = process.env): string[] {
  const inFile = secretFile === undefined ? [] : readText(secretFile).split(/\r?\n/);
  const given = [...secret, ...inFile].filter((text) => text.trim() !== "");
  if (given.length > 0) return given;
  return (env.SVC_WEBHOOK_SECRET ?? "").split(/[,\n]/).filter((text) => text.trim() !== "");
}

/**
 * Checks secrets before anything is received with them. `verify` does not: it explains what is wrong with one.
 * @returns the secrets
 * @throws CommandError for a secret that no webhook can have; the message does not contain it
 */
export function checkSecrets(secrets: string[]): string[] {
  for (const [index, secret] of secrets.entries()) {
    const mistake = mistakeIn(secret);
    if (mistake === undefined) continue;
    const which = secrets.length === 1 ? "The signing secret" : `Signing secret ${index + 1} of ${secrets.length}`;
    throw usageError(
      `${which} ${mistake}.`,
      "It was shown when the webhook was created. Create a new one: svc webhooks rotate",
    );
  }
  return secrets;
}

/** One that was imported with its webhook can be any text of 16 to 256 bytes. */
function mistakeIn(secret: string): string | undefined {
  const trimmed = secret.trim().replaceAll(/^["']|["']$/g, "");
  if (trimmed !== secret) return "has quotes or white space around it";
  if (/^svc_/.test(secret)) return "is an API key";
  if (/^eyJ/.test(secret)) return "is a JWT";
  const bytes = Buffer.byteLength(secret);
  return bytes < 16 || bytes > 256 ? "is cut off, or is another text: it has 16 to 256 bytes" : undefined;
}

/** Asks for a secret if none is given. @throws CommandError when stdin is not a terminal */
export async function requireSecrets(options: SecretOptions): Promise<string[]> {
  const secrets = readSecrets(options);
  if (secrets.length > 0) return secrets;
  const answer = isInteractive() ? await askHidden("Signing secret (whsec_…, not shown): ") : "";
  if (answer === "") throw usageError("No signing secret given.", secretsHelp);
  return [answer];
}

/** @throws CommandError when the file cannot be read */
export function readText(path: string): string {
  return readBytes(path).toString("utf8");
}

/** Reads a file with a JSON object. @param option names the file in errors. @throws CommandError when it is none */
export const readObject = (path: string, option: string): Record<string, unknown> =>
  parseObject(readText(path), `The file of ${option}`);

/** @param source of the text, for errors. @throws CommandError when it is no JSON object */
export function parseObject(text: string, source: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Not rethrown, because the message of a SyntaxError quotes the text, which may contain a credential.
  }
  throw usageError(`${source} is not a JSON object.`);
}

/** @throws CommandError when the file cannot be read */
export function readBytes(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw usageError(`Could not read ${path} (${(error as NodeJS.ErrnoException).code}).`);
  }
}
