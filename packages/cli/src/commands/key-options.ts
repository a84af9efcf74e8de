import type { Command } from "commander";
import type { ApiKey, Client, CreateApiKey, CreatedApiKey, Permission } from "../../../client/src/client.ts";
import { permissions } from "../../../client/src/values.ts";
import { printChecked, requireStdout } from "../terminal/checked-output.ts";
import { readDuration } from "../terminal/durations.ts";
import { usageError } from "../terminal/exit-codes.ts";
import type { Globals } from "../terminal/globals.ts";
import { permissionsOption } from "../terminal/names-option.ts";
import { jsonText, note } from "../terminal/terminal.ts";
import { relativeTime, tableOf } from "../views/table.ts";
import { findProject } from "./find.ts";

/* The limits of an API key, as options and in lists. */

export interface LimitOptions {
  permission?: Permission[];
  /** ISO 8601. */
  expires?: string;
}

export const limitOptions = <Limited extends Command>(command: Limited): Limited =>
  command
    .addOption(permissionsOption("what the key may do; default: all that its user may", permissions))
    .option("--expires <duration>", "when the key expires: 12h, 90d, at most 366d; default: never", readExpiry);

/** Converts a duration from now to a time. @throws CommandError when it is not valid */
function readExpiry(text: string): string {
  const seconds = readDuration(text);
  if (seconds !== undefined) return new Date(Date.now() + seconds * 1000).toISOString();
  throw usageError(
    `${text} is not a valid duration.`,
    "Pass a number and one of s, min, h and d, at most 366d: --expires 90d",
  );
}

/** Converts the options to the limits of a new key. */
export const limitsOf = ({ permission, expires }: LimitOptions): Omit<CreateApiKey, "name"> => ({
  ...(permission && { permissions: permission }),
  ...(expires !== undefined && { expires_at: expires }),
});

export const overlapOption = [
  "--overlap <duration>",
  "how long the previous secret stays valid: 0, 12h, at most 7d",
  checkOverlap,
  "1d",
] as const;

/** Converts the option to seconds. A number alone is in seconds, as in svc webhooks rotate. @throws CommandError */
export function overlapSecondsOf(overlap: string): number {
  const seconds = readDuration(/^\d+$/.test(overlap) ? `${overlap}s` : overlap);
  if (seconds === undefined) throw usageError(`${overlap} is not a valid duration.`, "Pass 0, 12h or 7d.");
  return seconds;
}

function checkOverlap(overlap: string): string {
  overlapSecondsOf(overlap);
  return overlap;
}

/** Returns what happens to the previous secret after a roll or a rotation. */
export function overlapNote(overlap: string): string {
  const seconds = overlapSecondsOf(overlap);
  if (seconds === 0) return "All previous secrets are invalid now.";
  return `The previous one stays valid until ${new Date(Date.now() + seconds * 1000).toISOString()}.`;
}

/** Creates a key, or rolls it with an overlap, and prints it. @param commandFor returns a command for it: `svc keys roll <id>` */
export async function printKey(
  { json, overlap }: Globals & { overlap?: string },
  request: () => Promise<CreatedApiKey>,
  commandFor: (verb: "roll" | "delete", id: string) => string,
): Promise<void> {
  requireStdout();
  const key = await request();
  const shown = json ? jsonText(key) : key.key;
  const [roll, deletion] = [commandFor("roll", key.id), `Delete it with: ${commandFor("delete", key.id)}`];
  if (overlap === undefined) {
    note(`Created the key ${key.id}. Save it now: it is not shown again. ${deletion}`);
    return printChecked(shown, `Replace the key with: ${roll} --overlap 0\n${deletion}`);
  }
  const kept = overlapNote(overlap);
  note(`Rolled the key ${key.id}. Save the new one now: it is not shown again. ${kept}`);
  return printChecked(shown, `Roll the key again: ${roll}\n${kept}`);
}

/** Finds the projects by id or name. @returns undefined when none is passed */
export async function projectIdsOf(api: Client, projects: string[] | undefined): Promise<string[] | undefined> {
  if (projects === undefined) return undefined;
  const ids: string[] = [];
  for (const project of projects) ids.push(await findProject(api, project));
  return ids;
}

/** Formats a list of keys. Limits have columns if a key has some. */
export function keyTable(keys: ApiKey[]): string {
  return tableOf(keys, [
    ["id", ({ id }) => id],
    ["name", ({ name }) => name],
    ["permissions", ({ permissions }) => permissions?.join(", ") ?? "all", keys.some((key) => key.permissions)],
    ["projects", ({ project_ids }) => project_ids?.join(", ") ?? "all", keys.some((key) => key.project_ids)],
    ["expires", ({ expires_at }) => relativeTime(expires_at ?? null), keys.some((key) => key.expires_at)],
    ["last used", ({ last_used_at }) => relativeTime(last_used_at)],
    ["from", ({ last_used_ip }) => last_used_ip ?? "", keys.some((key) => key.last_used_ip)],
    // Less important than what it may do.
    ["key", ({ key_prefix }) => `${key_prefix}…`],
    ["created", ({ created_at }) => relativeTime(created_at)],
  ]);
}
