import { ApiError } from "../platform/errors.ts";

/*
 * The budget of a project for the requests that its members cause: test deliveries, redeliveries, recoveries and
 * certifications go past the circuit breaker and reach disabled webhooks too, so without a budget one project could occupy
 * the sender with receivers that never respond. Disabling a webhook sends an event to the other webhooks of the project.
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
export const requestCosts = { test: 1, redeliver: 1, recover: 10, certify: 6, toggle: 1 } as const;
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

/** What a project has used up when its budget does not cover a request. */
export const REQUEST_BUDGET_USED =
  `The project has used up its ${REQUEST_BUDGET} requests a minute for test deliveries, redeliveries, recoveries, certifications ` +
  "and for enabling or disabling a webhook " +
  `(a recovery counts as ${requestCosts.recover}, a certification as ${requestCosts.certify}). Nothing was changed or sent.`;

/**
 * Returns the error for a request that a budget no longer covers in this window.
 * @param used says which budget is used up, in a sentence
 */
export function budgetExceeded(used: string, { endsInSeconds }: BudgetWindow, cause?: unknown): ApiError {
  const headers = { "Retry-After": String(endsInSeconds) };
  return new ApiError("rate_limited", `${used} Try again in ${endsInSeconds} s.`, { cause, headers });
}
