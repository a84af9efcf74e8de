import { ApiError } from "../platform/errors.ts";

/*
 * The budget of a project for the requests that its members cause: test deliveries, redeliveries, recoveries and
 * certifications. They go past the circuit breaker and reach disabled webhooks too, so without a budget one project could occupy the sender
 * with receivers that never respond.
 */

/**
 * Upper bound on the cost of a project's requests per window. Two test deliveries a second are more than people click, and 120
 * attempts of 15 seconds each occupy at most 30 places of the sender on average.
 */
export const REQUEST_BUDGET = 120;

/**
 * The cost of each request. A recovery reads thousands of rows and sends up to 10,000 deliveries, a certification sends
 * six requests.
 */
export const requestCosts = { test: 1, redeliver: 1, recover: 10, certify: 6 } as const;
export type BudgetedRequest = keyof typeof requestCosts;

const WINDOW_MS = 60_000;
/** Windows are kept longer than they last, so that an operator can see what a project has used. */
const KEPT_SECONDS = 3600;

/** A window of the budget: fixed, one minute long, the same for all projects. */
export interface BudgetWindow {
  /** When the window started, in ISO 8601. */
  startedAt: string;
  /** Seconds until the next window: 1–60. */
  endsInSeconds: number;
  /** Expiry time of the window's item, in epoch seconds. */
  expiresAt: number;
}

export function budgetWindowAt(now: Date): BudgetWindow {
  const start = Math.floor(now.getTime() / WINDOW_MS) * WINDOW_MS;
  const end = start + WINDOW_MS;
  return {
    startedAt: new Date(start).toISOString(),
    endsInSeconds: Math.ceil((end - now.getTime()) / 1000),
    expiresAt: end / 1000 + KEPT_SECONDS,
  };
}

/** Returns the error for a request that the budget of its project no longer covers in this window. */
export function budgetExceeded({ endsInSeconds }: BudgetWindow, cause?: unknown): ApiError {
  const message =
    `The project has used up its ${REQUEST_BUDGET} requests a minute for test deliveries, redeliveries, recoveries and certifications ` +
    `(a recovery counts as ${requestCosts.recover}, a certification as ${requestCosts.certify}). Nothing was sent. Try again in ${endsInSeconds} s.`;
  return new ApiError("rate_limited", message, { cause, headers: { "Retry-After": String(endsInSeconds) } });
}
