import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { type Bench, figure, isMet, type Result, type Table, type Target } from "./harness.ts";
import texts from "./texts.json" with { type: "json" };

/**
 * The benchmarks and the time limit of each, in seconds: three times what it takes on two free cores. Each is a file in this
 * folder that exports `bench`.
 */
const { limitSeconds } = texts;

export type BenchName = keyof typeof limitSeconds;
const names = Object.keys(limitSeconds) as BenchName[];
/** It takes minutes, and runs only when it is named. */
const namedOnly: readonly BenchName[] = ["kills"];

const usage = `Usage: npm run bench [-- <name>...]

Runs all benchmarks, or the named ones: ${names.join(", ")}.
Runs only when it is named: ${namedOnly.join(", ")}.
Each prints its tables and targets and saves its figures in .local/bench/<name>.json.
A missed target is reported and does not fail the run. Wrong results and ledgers that do not
balance fail it. npm run promises runs those behind docs/promises.md.`;

const root = join(import.meta.dirname, "..");
const resultsFolder = join(root, ".local", "bench");
const fileOfResult = (name: BenchName): string => join(resultsFolder, `${name}.json`);

/**
 * Runs a benchmark in its own process, so that it does not inherit settings, clients or compiled code. The process ends with
 * this one, even after kill -9, and what it started ends with it. Its temporary files are deleted, also when it is stopped.
 * @param maxMs time limit, if it is lower than that of the benchmark
 * @returns its targets; `wrong` after an error, which was printed; `late` when it was stopped because of its time limit
 */
export async function runBench(
  name: BenchName,
  maxMs = Number.POSITIVE_INFINITY,
): Promise<Target[] | "wrong" | "late"> {
  const endsWithParent = join(root, "test/support/ends-with-parent.cjs");
  const TMPDIR = await mkdtemp(join(tmpdir(), "bench-"));
  const child = spawn(process.execPath, ["--require", endsWithParent, import.meta.filename, "--here", name], {
    stdio: ["pipe", "inherit", "inherit"],
    env: { ...process.env, TMPDIR },
    // A group of its own, with the programs that it starts.
    detached: true,
  });
  const limitMs = Math.min(limitSeconds[name] * 1000, maxMs);
  const late = setTimeout(() => process.kill(-(child.pid as number), "SIGKILL"), limitMs);
  const [code, signal] = await once(child, "exit");
  clearTimeout(late);
  await rm(TMPDIR, { recursive: true, force: true, maxRetries: 10 });
  if (signal) console.error(`${name} did not end within ${figure(limitMs / 1000)} s and was stopped.`);
  if (code !== 0) return signal ? "late" : "wrong";
  const { targets }: Result = JSON.parse(readFileSync(fileOfResult(name), "utf8"));
  return targets;
}

async function runHere(name: string): Promise<void> {
  const { bench }: { bench: Bench } = await import(`./${name}.ts`);
  console.log(`# ${bench.name}: ${bench.about}\n`);
  const startedAt = performance.now();
  const result = await bench.run();
  const seconds = (performance.now() - startedAt) / 1000;
  for (const table of result.tables) console.log(`${inText(table)}\n`);
  for (const note of result.notes ?? []) console.log(`- ${note}`);
  for (const target of result.targets) console.log(inLine("target", target));
  console.log(`(${figure(seconds)} s)\n`);
  await save(bench.name as BenchName, seconds, result);
}

/** Formats a row `<kind> <name> <value> <bound> ok|MISS`. */
export function inLine(kind: "target" | "promise", target: Target): string {
  const { name, value, bound, unit, atLeast } = target;
  const limit = `${atLeast ? ">=" : "<="} ${bound}${unit ? ` ${unit}` : ""}`;
  return `${kind} ${name} ${figure(value)} ${limit} ${isMet(target) ? "ok" : "MISS"}`;
}

function inText({ title, columns, rows }: Table): string {
  const cells = [columns, ...rows.map((row) => row.map((cell) => (typeof cell === "number" ? figure(cell) : cell)))];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)));
  const lines = cells.map((row) => row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join("  "));
  return [title, ...lines.map((line) => `  ${line.trimEnd()}`)].join("\n");
}

async function save(name: BenchName, seconds: number, result: Result): Promise<void> {
  const machine = { cpu: cpus()[0]?.model ?? "", cores: availableParallelism(), platform: process.platform };
  const run = { name, at: new Date().toISOString(), node: process.version, machine, seconds, ...result };
  await mkdir(resultsFolder, { recursive: true });
  await writeFile(fileOfResult(name), `${JSON.stringify(run, undefined, 2)}\n`);
}

if (import.meta.main) {
  const requested = process.argv.slice(2);
  const isKnown = (name: string): name is BenchName => name in limitSeconds;
  const unknown = requested.filter((name) => !isKnown(name));
  if (requested[0] === "--here") {
    await runHere(requested[1] ?? "").catch((error: unknown) => {
      console.error(error);
      // Ends the processes of the benchmark too: each ends with its parent.
      process.exit(1);
    });
  } else if (requested.includes("--help") || requested.includes("-h")) {
    console.log(usage);
  } else if (unknown.length > 0) {
    console.error(`Unknown benchmark: ${unknown.join(", ")}. Choose from: ${names.join(", ")}.`);
    process.exitCode = 1;
  } else {
    const chosen = requested.length > 0 ? requested.filter(isKnown) : names.filter((name) => !namedOnly.includes(name));
    const failed: string[] = [];
    for (const name of chosen) if (typeof (await runBench(name)) === "string") failed.push(name);
    if (failed.length > 0) console.error(`Failed: ${failed.join(", ")}`);
    process.exitCode = failed.length > 0 ? 1 : 0;
  }
}
