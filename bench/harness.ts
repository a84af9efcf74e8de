/*
 * Shared code of the benchmarks. Absolute times depend on the machine and the moment, so variants run in turns within one run
 * and the median of their ratios is compared.
 */

/** A target is met when the value is at most the bound; with `atLeast`, when it is at least the bound. */
export interface Target {
  name: string;
  value: number;
  bound: number;
  unit?: string;
  /** What it was counted in, such as `of 100 requests`. */
  of?: string;
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
  /** Notes for the reader: what was simulated and what was not measured. */
  notes?: string[];
}

export interface Bench {
  name: string;
  about: string;
  /** @throws Error for a wrong result, a missed byte budget or a ledger that does not balance; never for a slow run */
  run(): Promise<Result>;
}

/** Returns a table with a column for each name in the rows, which are the same in all of them. */
export const tableOf = (title: string, rows: Record<string, string | number>[]): Table => ({
  title,
  columns: Object.keys(rows[0] ?? {}),
  rows: rows.map((row) => Object.values(row)),
});

/** How long variants run in turns. */
export interface Rounds {
  /** No round begins after this many milliseconds. */
  forMs: number;
  /** The least number of rounds, whatever they take; three unless given. */
  min?: number;
}

const MIN_ROUNDS = 3;

/**
 * Runs variants in turns until the time is over, so that a slow machine runs fewer rounds and does not take longer. The order
 * rotates by one from round to round, so that other load on the machine affects all variants and no variant is always the first.
 * @returns one sample per variant and round
 * @throws RangeError for fewer than three rounds
 */
export async function interleave<V extends string>(
  variants: Record<V, () => Promise<number>>,
  { forMs, min = MIN_ROUNDS }: Rounds,
): Promise<Record<V, number[]>> {
  if (min < MIN_ROUNDS) throw new RangeError(`${min} rounds are too few for a median. Use three or more.`);
  const names = Object.keys(variants) as V[];
  const samples = Object.fromEntries(names.map((name): [V, number[]] => [name, []])) as Record<V, number[]>;
  const endsAt = performance.now() + forMs;
  for (let round = 0; round < min || performance.now() < endsAt; round++) {
    const first = round % names.length;
    for (const name of [...names.slice(first), ...names.slice(0, first)]) samples[name].push(await variants[name]());
  }
  return samples;
}

/**
 * Returns a variant for `interleave` that repeats a call for about `sampleMs` and returns the CPU time per call in milliseconds,
 * including other threads of this process (garbage collection, compilation). The first sample also warms up.
 */
export function cpuPerCall(call: () => unknown, sampleMs: number): () => Promise<number> {
  let batch = 0;
  const run = async (calls: number): Promise<number> => {
    const before = process.cpuUsage();
    for (let count = 0; count < calls; count++) {
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

/**
 * Compares the CPU time of calls with that of the call `to`, in turns.
 * @returns a table of all calls, and the median of the ratios of each to `to`
 */
export async function compareCpu<V extends string>(
  title: string,
  calls: Record<V, () => unknown>,
  to: NoInfer<V>,
  rounds: Rounds,
  sampleMs: number,
): Promise<{ table: Table; ratios: Record<V, number> }> {
  const names = Object.keys(calls) as V[];
  const each = <Value>(of: (name: V) => Value) =>
    Object.fromEntries(names.map((name) => [name, of(name)])) as Record<V, Value>;
  const samples = await interleave(
    each((name) => cpuPerCall(calls[name], sampleMs)),
    rounds,
  );
  const ratiosOf = each((name) => ratios(samples[name], samples[to]));
  const rows = names.map((variant) => ({
    variant,
    "CPU µs": spread(samples[variant].map((ms) => ms * 1000)),
    [`/ ${to}`]: spread(ratiosOf[variant]),
  }));
  const full = `${title}: CPU per call; median (range) of ${samples[to].length} samples of ${figure(sampleMs)} ms`;
  return { table: tableOf(full, rows), ratios: each((name) => median(ratiosOf[name])) };
}

/** Returns the middle value, or the mean of the two middle values. */
export function median(samples: number[]): number {
  const sorted = inOrder(samples);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** Returns the smallest sample that `percent` of all samples do not exceed. */
export function percentile(percent: number, samples: number[]): number {
  return inOrder(samples)[Math.ceil((percent / 100) * samples.length) - 1] ?? Number.NaN;
}

/** Formats median and range: `1.02 (0.95–1.08)`. */
export function spread(samples: number[]): string {
  const sorted = inOrder(samples);
  return `${figure(median(samples))} (${figure(sorted[0] ?? Number.NaN)}–${figure(sorted.at(-1) ?? Number.NaN)})`;
}

/** Returns a[i] / b[i] for each round. Targets use the median of these ratios. */
export function ratios(a: number[], b: number[]): number[] {
  if (a.length !== b.length) throw new RangeError(`${a.length} samples against ${b.length}`);
  return a.map((value, round) => value / (b[round] ?? Number.NaN));
}

/** Formats a number with three significant digits: 1234, 12.3, 1.23, 0.0123. */
export function figure(value: number): string {
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value);
  const size = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, 2 - size));
}

export const isMet = ({ value, bound, atLeast }: Target): boolean => (atLeast ? value >= bound : value <= bound);

const inOrder = (samples: number[]): number[] => [...samples].sort((one, other) => one - other);
