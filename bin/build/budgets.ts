import type * as esbuild from "esbuild";

/** Upper bound on a minified bundle in KB of 1,024 bytes, which Lambda reads, parses and keeps in memory at a cold start. */
const DEFAULT_BUDGET_KB = 260;
const budgetsKb: Record<string, number> = {
  "attempts/send": 270,
  "attempts/send-slow": 270,
  "auth/authorizer": 266,
  "credentials/verify": 270,
  // The backlog, and the hints of the last attempt.
  "deliveries/redeliver": 262,
  "deliveries/send-test-delivery": 264,
};

const LISTED_INPUTS = 6;

/** @param file path below `functions/` @returns KB */
export const budgetOf = (file: string): number => budgetsKb[file] ?? DEFAULT_BUDGET_KB;

/**
 * Checks the size of each bundle.
 * @param outputs by the function's path below `functions/`, what esbuild reports about its bundle
 * @throws Error with a line for each bundle over its budget: its size, its budget and its largest packages
 */
export function checkBudgets(outputs: Map<string, Output>, budgetKbOf = budgetOf): void {
  const problems = [...outputs]
    .filter(([file, { bytes }]) => bytes > budgetKbOf(file) * 1024)
    .map(
      ([file, output]) =>
        `The bundle of ${file} has ${kb(output.bytes)}, but its budget is ${budgetKbOf(file)} KB. Largest parts: ${heaviest(output)}.`,
    );
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

type Output = Pick<esbuild.Metafile["outputs"][string], "bytes" | "inputs">;

const kb = (bytes: number) => `${(bytes / 1024).toFixed(1)} KB`;

/** Lists the largest packages and folders of a bundle with their sizes. */
export function heaviest({ inputs }: Output): string {
  const bytesOf: Record<string, number> = {};
  for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
    const owner = ownerOf(path);
    bytesOf[owner] = (bytesOf[owner] ?? 0) + bytesInOutput;
  }
  const sorted = Object.entries(bytesOf).sort(([, one], [, other]) => other - one);
  return sorted
    .slice(0, LISTED_INPUTS)
    .map(([owner, bytes]) => `${owner} ${kb(bytes)}`)
    .join(", ");
}

/** Returns the package of a file, or the folder of one of our own files. */
function ownerOf(path: string): string {
  const inPackage = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
  return inPackage ?? path.split("/").slice(0, 2).join("/");
}
