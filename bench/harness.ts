import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";

/*
 * What the benches have in common. No figure stands for itself, since no two machines are alike, nor one machine at two
 * times: variants run in turns within one run, and what counts is the median of their ratios.
 */

/** Met when the value is the bound or less; with `atLeast`, when it is the bound or more. */
export interface Target {
  name: string;
  value: number;
  bound: number;
  unit?: string;
  atLeast?: boolean;
}

export interface Table {
  title: string;
  columns: string[];
  rows: (string | number)[][];
}

export interface Result {
  tables: Table[];
  targets: Target[];
  /** What the reader of the figures must know: what stands in for what, and what was not measured. */
  notes?: string[];
  /** The raw figures, for the JSON. */
  data?: unknown;
}

export interface Bench {
  name: string;
  about: string;
  /** @throws Error for a wrong answer, a missed byte budget or a ledger that does not balance; never for a slow run */
  run(): Promise<Result>;
}

export const KB = 1024;

/**
 * Runs the variants in turns, in an order that moves on by one from round to round: what the machine does meanwhile befalls
 * all of them, and none is always the first.
 * @param rounds three or more
 * @returns per variant one sample a round
 */
export async function interleave<V extends string>(
  variants: Record<V, () => Promise<number>>,
  rounds: number,
): Promise<Record<V, number[]>> {
  if (rounds < 3) throw new RangeError(`${rounds} rounds have no median: take three or more`);
  const names = Object.keys(variants) as V[];
  const samples = Object.fromEntries(names.map((name): [V, number[]] => [name, []])) as Record<V, number[]>;
  for (let round = 0; round < rounds; round++) {
    const first = round % names.length;
    for (const name of [...names.slice(first), ...names.slice(0, first)]) samples[name].push(await variants[name]());
  }
  return samples;
}

/**
 * A variant for `interleave`: calls something over and over for about `sampleMs` and returns the CPU milliseconds of a call,
 * those of other threads of this process (garbage collection, compilation) included. The first sample goes into warming up.
 */
export function cpuPerCall(call: () => unknown, sampleMs: number): () => Promise<number> {
  let batch = 0;
  const run = async (calls: number): Promise<number> => {
    const before = process.cpuUsage();
    for (let made = 0; made < calls; made++) {
      const pending = call();
      if (pending instanceof Promise) await pending;
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  return async () => {
    if (batch === 0) {
      const endsAt = performance.now() + sampleMs;
      while (performance.now() < endsAt) {
        await run(1);
        batch += 1;
      }
    }
    return (await run(batch)) / batch;
  };
}

/** The middle one, or the mean of the middle two. */
export function median(samples: number[]): number {
  const sorted = inOrder(samples);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** Median and range: `1.02 (0.95–1.08)`. */
export function spread(samples: number[]): string {
  const sorted = inOrder(samples);
  return `${figure(median(samples))} (${figure(sorted[0] ?? Number.NaN)}–${figure(sorted.at(-1) ?? Number.NaN)})`;
}

/** Round by round: a[i] / b[i]. The median of these is what a target is about. */
export function ratios(a: number[], b: number[]): number[] {
  if (a.length !== b.length) throw new RangeError(`${a.length} samples against ${b.length}`);
  return a.map((value, round) => value / (b[round] ?? Number.NaN));
}

/** As many digits as anybody reads: 1234, 12.3, 1.23, 0.0123. */
export function figure(value: number): string {
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value);
  const size = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, 2 - size));
}

export const isMet = ({ value, bound, atLeast }: Target): boolean => (atLeast ? value >= bound : value <= bound);

export interface CpuOptions {
  /** Wins over this process's environment. */
  env?: Record<string, string>;
  cwd?: string;
  /** Measures until a line of its output matches, and ends it there. Without it the process ends by itself. */
  until?: RegExp;
  timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 60_000;

/**
 * CPU time (user and system) and time on the wall of a process from its start, in milliseconds.
 * @param command a Node program: the path of a Node binary and its arguments
 * @throws Error with what it printed, when it fails, takes too long, or ends without the line that was waited for
 */
export async function cpuOf(
  command: string[],
  { env = {}, cwd, until, timeoutMs = DEFAULT_TIMEOUT_MS }: CpuOptions = {},
): Promise<{ cpuMs: number; wallMs: number; output: string }> {
  const [binary = "", ...args] = command;
  const report = ["--require", join(import.meta.dirname, "cpu-report.cjs")];
  const startedAt = performance.now();
  const child = spawn(binary, until ? args : [...report, ...args], {
    env: { ...process.env, ...env },
    ...(cwd !== undefined && { cwd }),
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  const closed = once(child, "close") as Promise<[number | null, string | null]>;
  const [, stdout, stderr, reports] = child.stdio as unknown as [null, Readable, Readable, Readable];
  const complaints = text(stderr);
  const reported = text(reports);
  let output = "";
  let reached: { cpuMs: number; wallMs: number } | undefined;
  stdout.setEncoding("utf8").on("data", (piece: string) => {
    output += piece;
    if (reached || !until?.test(output)) return;
    reached = { cpuMs: cpuSoFarMs(child.pid), wallMs: performance.now() - startedAt };
    child.kill("SIGKILL");
  });
  const [code, signal] = await closed;
  const wallMs = performance.now() - startedAt;
  if (reached) return { ...reached, output };
  if (until || code !== 0) {
    throw new Error(`${command.join(" ")} ended with ${signal ?? code}:\n${output}${await complaints}`);
  }
  return { cpuMs: Number(await reported) / 1000, wallMs, output };
}

/** What all threads of a running process have used, to the nanosecond, where `/proc/<pid>/stat` counts in ticks of 10 ms. */
function cpuSoFarMs(pid: number | undefined): number {
  const threads = `/proc/${pid}/task`;
  const nanoseconds = readdirSync(threads).map((thread) =>
    Number(readFileSync(join(threads, thread, "schedstat"), "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

const inOrder = (samples: number[]): number[] => [...samples].sort((one, other) => one - other);
