import type { Taken, Units } from "./units.ts";

/**
 * What a Lambda is billed for is time, and only Lambda can tell it: the CPU time measured here is a lower bound. The rest is
 * assumed, and the tables show what becomes of the price when it is wrong.
 */
export interface Assumptions {
  /** CPU time on a vCPU of Lambda's arm64, in times of what was measured here. */
  cpuFactor: number;
  /** One wait for DynamoDB or SQS, in the same region. */
  waitMs: number;
  /** How long a receiver takes to answer, its connection included. */
  receiverMs: number;
  /** Share of calls that start an environment, and how long that is billed (since August 2025 it is). */
  coldShare: number;
  coldMs: number;
}

export const assumed: Assumptions = { cpuFactor: 1.5, waitMs: 6, receiverMs: 200, coldShare: 0.005, coldMs: 400 };

/** https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html: with so much memory a function has one vCPU. */
export const MB_PER_VCPU = 1769;

/** How a function is set up, as far as the bill depends on it. */
export interface Setup {
  memoryMb: number;
  cpu: "arm" | "x86";
  /** Lambda's own two lines about each call are written. */
  hasSystemLines: boolean;
}

/** How the functions are set up that are priced. */
export type Config = Assumptions & {
  cpu: "arm" | "x86";
  memoryMb(file: string): number;
  hasSystemLines: boolean;
};

export function asDeployed({ stage }: Units, changes: Partial<Config> = {}): Config {
  return {
    ...assumed,
    cpu: "arm",
    memoryMb: (file) => stage.memoryMb[file] ?? Number.NaN,
    hasSystemLines: stage.systemLogLevel !== "WARN",
    ...changes,
  };
}

export const setupOf = (config: Config, file: string): Setup => ({
  memoryMb: config.memoryMb(file),
  cpu: config.cpu,
  hasSystemLines: config.hasSystemLines,
});

/** Billed milliseconds of one call. `elsewhereMs` is time it waits for others than AWS. */
export function billedMs(taken: Taken, waits: number, elsewhereMs: number, { memoryMb }: Setup, given: Assumptions) {
  const cpuMs = taken.cpuMs * given.cpuFactor * Math.max(1, MB_PER_VCPU / memoryMb);
  return Math.ceil(cpuMs + waits * given.waitMs + elsewhereMs) + given.coldShare * given.coldMs;
}
