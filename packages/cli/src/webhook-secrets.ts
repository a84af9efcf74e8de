import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { usageError } from "./exit-codes.ts";
import { askHidden, isInteractive } from "./terminal.ts";

/* The signing secrets that `verify` and `listen` check with. */

export interface SecretOptions {
  secret?: string[];
  secretFile?: string;
}

export const secretOptions = (command: Command): Command =>
  command
    .option("--secret <whsec_…>", "a signing secret; repeat it for several (process lists show it)", collect)
    .option("--secret-file <path>", "signing secrets, one a line");

export const secretsHelp = `Secrets come from --secret, --secret-file or SVC_WEBHOOK_SECRET (several: separated by commas).`;

export const collect = (value: string, previous: string[] = []): string[] => [...previous, value];

/** As they were given: white space and quotes around one are a mistake to be found, not mended here. */
export function readSecrets({ secret = [], secretFile }: SecretOptions, env = process.env): string[] {
  const inFile = secretFile === undefined ? [] : textOf(secretFile).split(/\r?\n/);
  const given = [...secret, ...inFile].filter((text) => text.trim() !== "");
  if (given.length > 0) return given;
  return (env.SVC_WEBHOOK_SECRET ?? "").split(/[,\n]/).filter((text) => text.trim() !== "");
}

/** @throws CommandError when there is none, and nobody to be asked */
export async function requireSecrets(options: SecretOptions): Promise<string[]> {
  const secrets = readSecrets(options);
  if (secrets.length > 0) return secrets;
  const answer = isInteractive() ? await askHidden("Signing secret (whsec_…, not shown): ") : "";
  if (answer === "") throw usageError("There is no secret to verify with.", secretsHelp);
  return [answer];
}

/** @throws CommandError when it cannot be read */
export function textOf(path: string): string {
  return bytesOf(path).toString("utf8");
}

export function bytesOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw usageError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}
