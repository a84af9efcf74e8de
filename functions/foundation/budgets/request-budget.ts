import { ApiError } from "../platform/errors.ts";

/*
 * The budgets of a project, so that it cannot use up what all projects share.
 *
 * One is for the requests that its members cause: test deliveries, redeliveries, recoveries and
 * certifications go past the circuit breaker and reach disabled webhooks too, so without a budget one project could occupy
 * the sender with receivers that never respond.
 *
 * Another is for changes of webhooks: disabling one sends an event to the other webhooks of the project, another URL or mode
 * closes the circuit to a receiver that is down, and each is a write of some 20 units in the partition of the project.
 *
 * The third is for reads, and a user has one too, for lists of API keys and audit events, which nobody else must be able to use up. A table has a quota of
 * 40,000 read units a second, and each attempt reads the same tables as the lists. A search that finds little reads many rows.
 *
 * A user has one for creating and rolling credentials too: each can be revoked, and a follower of the revocations that finds too many
 * of them drops its cache. What is charged is not the revocation, which must never be refused.
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

const WINDOW_SECONDS = 60;
/** Windows are kept longer than they last, so that an operator can see what a project has used. */
const KEPT_SECONDS = 3600;

/** A window of a budget: fixed, the same for all projects. */
export interface BudgetWindow {
  /** When the window started, in ISO 8601. */
  startedAt: string;
  /** Seconds until the next window, from 1 to the length of a window. */
  endsInSeconds: number;
  /** Expiry time of the window's item, in epoch seconds. */
  expiresAt: number;
}

export function budgetWindowAt(now: Date, seconds = WINDOW_SECONDS): BudgetWindow {
  const start = Math.floor(now.getTime() / (seconds * 1000)) * seconds * 1000;
  const end = start + seconds * 1000;
  return {
    startedAt: new Date(start).toISOString(),
    endsInSeconds: Math.ceil((end - now.getTime()) / 1000),
    expiresAt: end / 1000 + KEPT_SECONDS,
  };
}

/** What a project has used up when its budget does not cover a request. */
export const REQUEST_BUDGET_USED =
  `The project has used up its ${REQUEST_BUDGET} requests a minute for test deliveries, redeliveries, recoveries and certifications ` +
  `(a recovery counts as ${requestCosts.recover}, a certification as ${requestCosts.certify}). Nothing was changed or sent.`;

/** What a project has used up when it may not change a webhook. */
export const TOGGLES_USED = `The project has changed its webhooks ${REQUEST_BUDGET} times in this minute. Nothing was changed.`;

/** What a user has used up who may not create or roll anything that a revocation may end. */
export const CREDENTIALS_USED =
  "You have created or rolled too many API keys, service accounts and trusted workflows in this minute. " +
  "Nothing was changed; they can be deleted as before.";

/** What a user has used up who may not make another subscription. */
export const CHALLENGES_USED = "You have made too many subscriptions in this minute. Nothing was sent.";

/**
 * Returns the error for a request that a budget no longer covers in this window.
 * @param used says which budget is used up, in a sentence
 */
export function budgetExceeded(used: string, { endsInSeconds }: BudgetWindow): ApiError {
  const headers = { "Retry-After": String(endsInSeconds) };
  return new ApiError("rate_limited", `${used} Try again in ${endsInSeconds} s.`, { headers });
}

/**
 * Read units that a request may consume without a charge: 25 cost the operator about as much as the rest of the request
 * (docs/scale.md), and 1,000 such requests a second stay below the quota of a table.
 */
export const FREE_READ_UNITS = 25;

/** Upper bound on the read units of a page. */
export const MAX_PAGE_READ_UNITS = 250;

/**
 * Upper bound on the read units of a user's charged requests per window, and of one caller's in a project: 20 pages, on average 167
 * units a second, 0.4 % of the quota of a table.
 */
export const READ_BUDGET = 5_000;

/** That of all callers in a project: one that uses up its own, such as a leaked key, leaves the others as much. */
export const PROJECT_READ_BUDGET = 2 * READ_BUDGET;

/** Shorter than a minute, so that clients wait for the next window by themselves: they wait up to 30 seconds. */
export const READ_WINDOW_SECONDS = 30;

/** What a project or a user has used up when the read budget does not cover a page. */
export const READ_BUDGET_USED =
  `Your lists, searches and statistics, or those of this project, have read too many rows in the last ${READ_WINDOW_SECONDS} s. ` +
  "A shorter time range reads less.";
