import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism, cpus } from "node:os";
import { join } from "node:path";
import { type Bench, figure, isMet, type Result, type Table, type Target } from "./harness.ts";

/*
 *     npm run bench               all of them
 *     npm run bench -- sign auth  these
 *
 * Each prints its tables and a line per target, and leaves its figures in .local/bench/<name>.json. A target that is missed
 * is said to be, no more: on another day it may be met. What fails is a wrong answer, a bundle over its budget or a ledger
 * that does not balance.
 */

/** Each is a file beside this one that exports its `bench`. */
const names = ["size", "cold", "auth", "sign", "send", "pipe", "scale", "cost"];

const root = join(import.meta.dirname, "..");
const resultsFolder = join(root, ".local", "bench");

/** Far more than a bench takes on two cores. */
const TIME_LIMIT_MS = 180_000;

const fileOf = (name: string): string => join(import.meta.dirname, `${name}.ts`);

/** Settings, clients and compiled code of one bench must not be there when the next one starts: each has its own process. */
function runApart(name: string): boolean {
  const { status, signal } = spawnSync(process.execPath, [import.meta.filename, name], {
    stdio: "inherit",
    timeout: TIME_LIMIT_MS,
    killSignal: "SIGKILL",
  });
  if (signal) console.error(`${name} has not ended in ${TIME_LIMIT_MS / 1000} s.`);
  return status === 0;
}

async function run(name: string): Promise<void> {
  const { bench }: { bench: Bench } = await import(fileOf(name));
  console.log(`# ${bench.name}: ${bench.about}\n`);
  const startedAt = performance.now();
  const result = await bench.run();
  const seconds = (performance.now() - startedAt) / 1000;
  for (const table of result.tables) console.log(`${inText(table)}\n`);
  for (const note of result.notes ?? []) console.log(`- ${note}`);
  for (const target of result.targets) console.log(inLine(target));
  console.log(`(${figure(seconds)} s)\n`);
  await save(name, seconds, result);
}

const inLine = (target: Target): string => {
  const { name, value, bound, unit, atLeast } = target;
  const limit = `${atLeast ? ">=" : "<="} ${bound}${unit ? ` ${unit}` : ""}`;
  return `target ${name} ${figure(value)} ${limit} ${isMet(target) ? "ok" : "MISS"}`;
};

function inText({ title, columns, rows }: Table): string {
  const cells = [columns, ...rows.map((row) => row.map((cell) => (typeof cell === "number" ? figure(cell) : cell)))];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return [title, ...lines.map((line) => `  ${line}`)].join("\n");
}

async function save(name: string, seconds: number, result: Result): Promise<void> {
  const machine = { cpu: cpus()[0]?.model ?? "", cores: availableParallelism(), platform: process.platform };
  const run = { name, at: new Date().toISOString(), node: process.version, machine, seconds, ...result };
  await mkdir(resultsFolder, { recursive: true });
  await writeFile(join(resultsFolder, `${name}.json`), `${JSON.stringify(run, undefined, 2)}\n`);
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !names.includes(name));
const [only] = asked;
if (unknown.length > 0) {
  console.error(`There is no bench ${unknown.join(", ")}. There are: ${names.join(", ")}.`);
  process.exitCode = 1;
} else if (asked.length === 1 && only) {
  await run(only);
} else {
  const chosen = names.filter((name) => (asked.length === 0 || asked.includes(name)) && existsSync(fileOf(name)));
  const failed = chosen.filter((name) => !runApart(name));
  if (failed.length > 0) console.error(`Failed: ${failed.join(", ")}`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}
