import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import {
  type BudgetedRequest,
  budgetExceeded,
  budgetWindowAt,
  REQUEST_BUDGET,
  requestCosts,
} from "./request-budget.ts";

/**
 * Charges a request to the budget of its project, in one conditional write. When the SDK repeats the write after a lost
 * response, the request is charged twice: the budget then ends a little early, and nothing else depends on it.
 * @throws ApiError `rate_limited` with `Retry-After` when the budget of the current minute does not cover the request
 */
export async function chargeRequest(projectId: string, request: BudgetedRequest, now: Date): Promise<void> {
  const window = budgetWindowAt(now);
  const cost = requestCosts[request];
  try {
    await dynamo().send(
      new UpdateCommand({
        TableName: tableName("requestBudgets"),
        Key: { project_id: projectId, window: window.startedAt },
        UpdateExpression: "ADD used :cost SET expires_at = :expiresAt",
        ConditionExpression: "attribute_not_exists(used) OR used <= :highestBefore",
        ExpressionAttributeValues: {
          ":cost": cost,
          ":highestBefore": REQUEST_BUDGET - cost,
          ":expiresAt": window.expiresAt,
        },
      }),
    );
  } catch (error) {
    if (isConditionFailed(error)) throw budgetExceeded(window, error);
    throw error;
  }
}
