import type { Units, Usage } from "./units.ts";

/** Assumptions about the billed time of a Lambda. The CPU time measured here is a lower bound; the rest is assumed. */
export interface Assumptions {
  /** CPU time on an arm64 vCPU of Lambda, as a multiple of the measured time. */
  cpuFactor: number;
  /** Duration of one wait for DynamoDB, SQS or SNS in the same region. */
  waitMs: number;
  /** Response time of a receiver, connection included. */
  receiverMs: number;
  /** Share of calls with a cold start. */
  coldShare: number;
  /** Billed time of a cold start (billed since August 2025). */
  coldMs: number;
}

export const assumed: Assumptions = { cpuFactor: 1.5, waitMs: 6, receiverMs: 200, coldShare: 0.005, coldMs: 400 };

/** https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html: the memory at which a function has one vCPU. */
export const MB_PER_VCPU = 1769;

/** The assumptions, and the memory of the priced functions. */
export type Config = Assumptions & { memoryMb(file: string): number };

/** Returns the configuration of the prod stage, with changes. */
export function asDeployed({ stage }: Pick<Units, "stage">, changes: Partial<Config> = {}): Config {
  const memoryMb: Record<string, number> = stage.memoryMb;
  return { ...assumed, memoryMb: (file) => memoryMb[file] ?? Number.NaN, ...changes };
}

/**
 * Computes the billed time of one call, in milliseconds.
 * @param waits number of waits for AWS
 * @param elsewhereMs time that the call waits for receivers
 */
export function billedMs(usage: Usage, waits: number, elsewhereMs: number, memoryMb: number, given: Assumptions) {
  const cpuMs = usage.cpuMs * given.cpuFactor * Math.max(1, MB_PER_VCPU / memoryMb);
  return Math.ceil(cpuMs + waits * given.waitMs + elsewhereMs) + given.coldShare * given.coldMs;
}
