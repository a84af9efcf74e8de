import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism, cpus } from "node:os";
import { join } from "node:path";
import { type Bench, figure, isMet, type Result, type Table, type Target } from "./harness.ts";

const usage = `Usage: npm run bench [-- <name>...]

Runs all benchmarks, or the named ones: size, cold, auth, sign, send, isolation, pipe, scale, cost.
Each prints its tables and targets and saves its figures in .local/bench/<name>.json.
A missed target is reported and does not fail the run. Wrong results, bundles over budget and
ledgers that do not balance fail it.`;

/** Each benchmark is a file in this folder that exports `bench`. */
const names = ["size", "cold", "auth", "sign", "send", "isolation", "pipe", "scale", "cost"];

const root = join(import.meta.dirname, "..");
const resultsFolder = join(root, ".local", "bench");

/** Upper bound for one benchmark. On two cores `isolation` takes three minutes and each other one a minute or two. */
const TIME_LIMIT_MS = 300_000;

const fileOf = (name: string): string => join(import.meta.dirname, `${name}.ts`);

/** Runs a benchmark in its own process, so that it does not inherit settings, clients or compiled code. */
function runInProcess(name: string): boolean {
  const { status, signal } = spawnSync(process.execPath, [import.meta.filename, name], {
    stdio: "inherit",
    timeout: TIME_LIMIT_MS,
    killSignal: "SIGKILL",
  });
  if (signal) console.error(`${name} did not end within ${TIME_LIMIT_MS / 1000} s and was stopped.`);
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

const requested = process.argv.slice(2);
const unknown = requested.filter((name) => !names.includes(name));
const [only] = requested;
if (requested.includes("--help") || requested.includes("-h")) {
  console.log(usage);
} else if (unknown.length > 0) {
  console.error(`Unknown benchmark: ${unknown.join(", ")}. Choose from: ${names.join(", ")}.`);
  process.exitCode = 1;
} else if (requested.length === 1 && only) {
  await run(only).catch((error: unknown) => {
    console.error(error);
    // Ends the processes of the benchmark too: each ends with its parent.
    process.exit(1);
  });
} else {
  const chosen = names.filter(
    (name) => (requested.length === 0 || requested.includes(name)) && existsSync(fileOf(name)),
  );
  const failed = chosen.filter((name) => !runInProcess(name));
  if (failed.length > 0) console.error(`Failed: ${failed.join(", ")}`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}
