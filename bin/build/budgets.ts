/** Upper bound on a minified bundle in KB of 1,024 bytes, which Lambda reads, parses and keeps in memory at a cold start. */
const DEFAULT_BUDGET_KB = 262;
const budgetsKb: Record<string, number> = {
  // The formats of products, and the validator of the catalogue's schemas.
  "attempts-send": 292,
  "attempts-send-slow": 303,
  "deliveries-fan-out": 272,
  "deliveries-replay": 277,
  // The catalogue of events.
  createWebhook: 271,
  // The class of aws-jwt-verify below its functions that judge claims: jwks.ts.
  "auth-authorizer": 277,
  "credentials-verify": 281,
  // The backlog, and the hints of the last attempt.
  certifyWebhook: 272,
  redeliver: 285,
  recoverDeliveries: 278,
  sendTestDelivery: 287,
  // The SDK of MCP, the tools and the client of the API. No client of AWS.
  serveMcp: 362,
  // The client of receivers, for the challenge.
  subscribe: 278,
  // The report of a secret scanner.
  revokeCredentials: 264,
  // The client of SQS: a change of a webhook calls its worker.
  updateWebhook: 316,
};

/** @param id row id @returns KB */
export const budgetOf = (id: string): number => budgetsKb[id] ?? DEFAULT_BUDGET_KB;

/**
 * Checks the size of each bundle.
 * @param outputs by the function's row id
 * @throws Error with a line for each bundle over its budget: its size and its budget
 */
export function checkBudgets(outputs: Map<string, { bytes: number }>, budgetKbOf = budgetOf): void {
  const problems = [...outputs]
    .filter(([id, { bytes }]) => bytes > budgetKbOf(id) * 1024)
    .map(
      ([id, { bytes }]) =>
        `The bundle of ${id} has ${(bytes / 1024).toFixed(1)} KB, but its budget is ${budgetKbOf(id)} KB.`,
    );
  if (problems.length > 0) {
    throw new Error(
      `${problems.join("\n")}\nmeta.json beside the bundles lists their parts (https://esbuild.github.io/analyze/). ` +
        "Leave out what is not needed, or raise the budget in bin/build/budgets.ts.",
    );
  }
}
