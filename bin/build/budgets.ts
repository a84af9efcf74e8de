/** Upper bound on a minified bundle in KB of 1,024 bytes, which Lambda reads, parses and keeps in memory at a cold start. */
const DEFAULT_BUDGET_KB = 262;
const budgetsKb: Record<string, number> = {
  "attempts/send": 270,
  "attempts/send-slow": 270,
  "auth/authorizer": 267,
  "credentials/verify": 271,
  // The backlog, and the hints of the last attempt.
  "deliveries/redeliver": 265,
  "deliveries/recover": 265,
  "deliveries/send-test-delivery": 267,
  // The client of SQS: a change of a webhook calls its worker.
  "webhooks/update": 290,
};

/** @param file path below `functions/` @returns KB */
export const budgetOf = (file: string): number => budgetsKb[file] ?? DEFAULT_BUDGET_KB;

/**
 * Checks the size of each bundle.
 * @param outputs by the function's path below `functions/`
 * @throws Error with a line for each bundle over its budget: its size and its budget
 */
export function checkBudgets(outputs: Map<string, { bytes: number }>, budgetKbOf = budgetOf): void {
  const problems = [...outputs]
    .filter(([file, { bytes }]) => bytes > budgetKbOf(file) * 1024)
    .map(
      ([file, { bytes }]) =>
        `The bundle of ${file} has ${(bytes / 1024).toFixed(1)} KB, but its budget is ${budgetKbOf(file)} KB.`,
    );
  if (problems.length > 0) {
    throw new Error(
      `${problems.join("\n")}\nmeta.json beside the bundles lists their parts (https://esbuild.github.io/analyze/).`,
    );
  }
}
