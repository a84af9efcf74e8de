import * as z from "zod";
import { allEnded } from "../../functions/foundation/platform/parallel.ts";
import { printable } from "../../packages/cli/src/terminal/terminal.ts";
import { command, UsageError } from "../command/command.ts";
import { functionOf, invocationSettings, stageOption } from "../command/invoke-function.ts";
import { StartError } from "../command/start-error.ts";
import { unreachable } from "../command/unreachable.ts";
import { type Batch, batchesOf } from "../import/read-rows.ts";

const help = {
  name: "npm run --silent import",
  about: `Brings keys, webhooks or members of an earlier service along, from a file with one JSON object per line.
Rows that are refused are listed with their lines, and the exit code is 1. An import that was interrupted is repeated
from its beginning: what is there already is unchanged.`,
  words: "keys|webhooks|members <file.ndjson>",
  options: {
    apply: { about: "make the changes; without it, the rows are checked and nothing is changed" },
    version: { value: "<time>", about: "of members: when the snapshot was taken, or its number" },
    force: { about: "of members: also remove more than a tenth of a page" },
    stage: stageOption,
  },
  settings: invocationSettings,
  examples: [
    "npm run --silent import -- keys keys.ndjson",
    "npm run --silent import -- keys keys.ndjson --stage prod --apply",
    "npm run --silent import -- members members.ndjson --version 2026-01-31T02:00:00Z --apply",
  ],
} as const;

interface Kind {
  /** The function, below `functions/`. */
  file: string;
  /** The numbers of its result. */
  counts: string[];
}

const ofImports = ["imported", "unchanged", "refused"];
/** By the field of the input that has the rows. */
const kinds: Record<string, Kind> = {
  keys: { file: "api-keys-import", counts: ofImports },
  webhooks: { file: "webhooks-import", counts: ofImports },
  members: { file: "projects-sync-members", counts: ["added", "changed", "removed", "unchanged"] },
};

const functionResult = z.looseObject({
  refused: z.array(z.object({ index: z.int(), reason: z.string() })).default([]),
  applied: z.boolean().default(true),
});

const PARALLEL_CALLS = 4;
const MAX_ERROR_CHARACTERS = 500;

export async function main(): Promise<void> {
  await command(help, async ({ apply, version, force, stage }, [kind = "", file, ...more]) => {
    const row = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
    if (row === undefined || file === undefined || more.length > 0)
      throw new UsageError("Pass keys, webhooks or members, and one file.");
    const isSnapshot = kind === "members";
    const isDryRun = apply === undefined;
    if (isSnapshot !== (version !== undefined))
      throw new UsageError("--version is required for members, and only for these.");
    if (force && !isSnapshot) throw new UsageError("--force is for members only.");
    const invoke = await functionOf(row.file, stage);
    const totals = new Totals(row.counts);
    const send = async ({ rows, lines, ...range }: Batch) => {
      const snapshot = { ...range, version: /^\d+$/.test(version ?? "") ? Number(version) : version };
      const input = { [kind]: rows, dry_run: isDryRun, ...snapshot, ...(force && { force: true }) };
      const result = await invoke(input).catch((error: Error) => {
        const message = unreachable(error) ?? error.message.slice(0, MAX_ERROR_CHARACTERS);
        throw new StartError(`lines ${lines[0]} to ${lines.at(-1)}: ${message}`);
      });
      totals.add(functionResult.parse(result), lines, !isDryRun);
    };
    // A page of a file that is out of order would remove the members in a later line: the whole file is checked first.
    if (isSnapshot) for await (const _ of batchesOf(file, true));
    const batches = batchesOf(file, isSnapshot);
    // All share one generator, so that no more batches than these are in memory.
    const calls = Array.from({ length: PARALLEL_CALLS }, async () => {
      for await (const batch of batches) await send(batch);
    });
    await allEnded(calls).catch((error: Error) => {
      if (!(error instanceof StartError)) throw error;
      throw new StartError(
        `${totals.summary()}, then stopped at ${error.message}\nCorrect it, and repeat the command.`,
      );
    });
    return totals.summary() + (isDryRun ? "\nNothing was changed. Pass --apply to make these changes." : "");
  });
}

/** What the calls so far have returned. Prints each row that is refused, and on a terminal the progress. */
class Totals {
  #rows = 0;
  readonly #counts: Map<string, number>;

  constructor(names: string[]) {
    this.#counts = new Map(names.map((name) => [name, 0]));
  }

  add(result: z.infer<typeof functionResult>, lines: number[], isApplied: boolean): void {
    this.#rows += lines.length;
    for (const { index, reason } of result.refused) this.#problem(`line ${lines[index]}: ${reason}`);
    if (isApplied && !result.applied) {
      const page = `lines ${lines[0]} to ${lines.at(-1)}: ${result.removed} members would be removed, more than a tenth.`;
      this.#problem(`${page} Nothing of them was changed. Check the file, then pass --force.`);
    } else {
      const counts: Record<string, unknown> = { ...result, refused: result.refused.length };
      for (const [name, count] of this.#counts) this.#counts.set(name, count + z.int().parse(counts[name]));
    }
    onTerminal(`\r${this.#rows} rows`);
  }

  #problem(text: string): void {
    process.exitCode = 1;
    onTerminal("\r");
    console.error(printable(text));
  }

  summary(): string {
    onTerminal("\r");
    const counts = [...this.#counts].map(([name, count]) => `${count} ${name}`).join(", ");
    return `${this.#rows} ${this.#rows === 1 ? "row" : "rows"}: ${counts}`;
  }
}

const onTerminal = (text: string) => process.stderr.isTTY && process.stderr.write(text);
