import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import { updateIf } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { changing, isAtMost, when } from "../platform/expression.ts";
import {
  type BudgetedRequest,
  type BudgetWindow,
  budgetExceeded,
  budgetWindowAt,
  CHALLENGES_USED,
  CREDENTIALS_USED,
  REQUEST_BUDGET,
  REQUEST_BUDGET_USED,
  requestCosts,
  TOGGLES_USED,
} from "./request-budget.ts";

/**
 * Charges a request to the budget of its project.
 * @throws ApiError `rate_limited` with `Retry-After` when the budget of the current minute does not cover the request
 */
export const chargeRequest = (projectId: string, request: BudgetedRequest, now: Date): Promise<void> =>
  charge(projectId, requestCosts[request], budgetWindowAt(now), { limit: REQUEST_BUDGET, used: REQUEST_BUDGET_USED });

/**
 * Charges a change of a webhook to a budget of its own, so that a client that keeps changing it leaves the project its redeliveries.
 * @throws ApiError `rate_limited` with `Retry-After` when the project has used the budget of the current minute
 */
export const chargeToggle = (projectId: string, now: Date): Promise<void> =>
  charge(`toggle:${projectId}`, 1, budgetWindowAt(now), { limit: REQUEST_BUDGET, used: TOGGLES_USED });

/**
 * Charges a request without a credential to the budget of its IP address.
 * @param limit what one address can use per minute
 * @param used says for the error what is used up
 * @throws ApiError `rate_limited` with `Retry-After` when the budget of the current minute does not cover the cost
 */
export const chargeAddress = (address: string, cost: number, limit: number, now: Date, used: string): Promise<void> =>
  charge(`address:${address}`, cost, budgetWindowAt(now), { limit, used });

/**
 * Charges a user for creating or rolling what a revocation may end later.
 * @throws ApiError `rate_limited` with `Retry-After` when the user has used the budget of the current minute
 */
export const chargeCredential = (userId: string, limit: number, now: Date): Promise<void> =>
  charge(`credentials:${userId}`, 1, budgetWindowAt(now), { limit, used: CREDENTIALS_USED });

/**
 * Charges a user for a request to a callback that has not confirmed that it wants any.
 * @throws ApiError `rate_limited` with `Retry-After` when the user has used the budget of the current minute
 */
export const chargeChallenge = (userId: string, limit: number, now: Date): Promise<void> =>
  charge(`challenge:${userId}`, 1, budgetWindowAt(now), { limit, used: CHALLENGES_USED });

const SIGN_INS_PER_MINUTE = 10;

/**
 * Charges a machine that begins to sign in, or a person who types a code.
 * @throws ApiError `rate_limited` with `Retry-After` beyond ten a minute
 */
export const chargeSignIn = (spender: `address:${string}` | `user:${string}`, now: Date): Promise<void> =>
  charge(`sign-in:${spender}`, 1, budgetWindowAt(now), {
    limit: SIGN_INS_PER_MINUTE,
    used: `At most ${SIGN_INS_PER_MINUTE} sign-ins a minute.`,
  });

/** Returns the counters of a budget in a window, by name. Eventually consistent. */
export async function usedBy(spender: string, { startedAt }: BudgetWindow): Promise<Record<string, number>> {
  const Key = { project_id: spender, window: startedAt };
  const { Item } = await dynamo().send(new GetCommand({ TableName: tableName("requestBudgets"), Key }));
  return Item ?? {};
}

interface Budget {
  limit: number;
  /** What is used up, in a sentence. */
  used: string;
  /** Name of a second counter, whose limit is half of it; absent = there is none. */
  share?: string | undefined;
}

/**
 * One write. When the SDK repeats it after a lost response, the cost is charged twice: the budget then ends a
 * little early, and nothing else depends on it.
 * @param cost negative = a part of an earlier charge is returned
 * @param isForced the charge is made in any case
 * @throws ApiError `rate_limited` with `Retry-After` when the budget of the window does not cover the cost
 */
export async function charge(
  spender: string,
  cost: number,
  window: BudgetWindow,
  { limit, used, share }: Budget,
  isForced = false,
): Promise<void> {
  const hasRoom = isAtMost("used", limit - cost);
  const isCovered = share === undefined ? hasRoom : when`(${hasRoom}) AND (${isAtMost(share, limit / 2 - cost)})`;
  const add = { used: cost, ...(share !== undefined && { [share]: cost }) };
  const isCharged = await updateIf(
    { TableName: tableName("requestBudgets"), Key: { project_id: spender, window: window.startedAt } },
    changing({ add, set: { expires_at: window.expiresAt }, ...(!isForced && { when: isCovered }) }),
  );
  if (!isCharged) throw budgetExceeded(used, window);
}
