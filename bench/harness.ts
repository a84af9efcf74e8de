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
  /** Notes for the reader, such as what was not measured. */
  notes?: string[];
}

export interface Bench {
  name: string;
  about: string;
  /** @throws Error for a wrong result or a ledger that does not balance; never for a slow run */
  run(): Promise<Result>;
}

/** Returns a table with a column for each name in the rows, which are the same in all of them. */
export const tableOf = (title: string, rows: Record<string, string | number>[]): Table => ({
  title,
  columns: Object.keys(rows[0] ?? {}),
  rows: rows.map((row) => Object.values(row)),
});

/** A median needs at least three samples, whatever they take. */
const MIN_ROUNDS = 3;

/**
 * Runs variants in turns until the time is over, so that a slow machine runs fewer rounds and does not take longer. The order
 * rotates by one from round to round, so that other load on the machine affects all variants and no variant is always the first.
 * @param forMs no round begins after this many milliseconds
 * @returns one sample per variant and round
 */
export async function interleave<V extends string>(
  variants: Record<V, () => Promise<number>>,
  { forMs }: { forMs: number },
): Promise<Record<V, number[]>> {
  const names = Object.keys(variants) as V[];
  const samples = Object.fromEntries(names.map((name): [V, number[]] => [name, []])) as Record<V, number[]>;
  const endsAt = performance.now() + forMs;
  for (let round = 0; round < MIN_ROUNDS || performance.now() < endsAt; round++) {
    const first = round % names.length;
    for (const name of [...names.slice(first), ...names.slice(0, first)]) samples[name].push(await variants[name]());
  }
  return samples;
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
