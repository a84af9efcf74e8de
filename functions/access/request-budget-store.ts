import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import {
  type BudgetedRequest,
  budgetExceeded,
  budgetWindowAt,
  REQUEST_BUDGET,
  REQUEST_BUDGET_USED,
  requestCosts,
} from "./request-budget.ts";

/**
 * Charges a request to the budget of its project.
 * @throws ApiError `rate_limited` with `Retry-After` when the budget of the current minute does not cover the request
 */
export const chargeRequest = (projectId: string, request: BudgetedRequest, now: Date): Promise<void> =>
  charge(projectId, requestCosts[request], REQUEST_BUDGET, now, REQUEST_BUDGET_USED);

/**
 * Charges a request without a credential to the budget of its IP address.
 * @param limit what one address can use per minute
 * @param used says for the error what is used up
 * @throws ApiError `rate_limited` with `Retry-After` when the budget of the current minute does not cover the cost
 */
export const chargeAddress = (address: string, cost: number, limit: number, now: Date, used: string): Promise<void> =>
  charge(`address:${address}`, cost, limit, now, used);

/**
 * One conditional write. When the SDK repeats it after a lost response, the cost is charged twice: the budget then ends a
 * little early, and nothing else depends on it.
 */
async function charge(spender: string, cost: number, limit: number, now: Date, used: string): Promise<void> {
  const window = budgetWindowAt(now);
  try {
    await dynamo().send(
      new UpdateCommand({
        TableName: tableName("requestBudgets"),
        Key: { project_id: spender, window: window.startedAt },
        UpdateExpression: "ADD used :cost SET expires_at = :expiresAt",
        ConditionExpression: "attribute_not_exists(used) OR used <= :highestBefore",
        ExpressionAttributeValues: {
          ":cost": cost,
          ":highestBefore": limit - cost,
          ":expiresAt": window.expiresAt,
        },
      }),
    );
  } catch (error) {
    if (isConditionFailed(error)) throw budgetExceeded(used, window, error);
    throw error;
  }
}
