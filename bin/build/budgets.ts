import type * as esbuild from "esbuild";

/** Minified size of a bundle in KB of 1,024 bytes: what Lambda reads, parses and keeps in memory at each cold start. */
const DEFAULT_BUDGET_KB = 260;
const budgetsKb: Record<string, number> = { "attempts/send": 330 };

const SHOWN_INPUTS = 6;

export const budgetOf = (file: string): number => budgetsKb[file] ?? DEFAULT_BUDGET_KB;

/**
 * @param outputs path below `functions/` of each function and what esbuild says of its bundle
 * @throws Error with a line for each bundle over its budget: its size, its budget and the packages that weigh most in it
 */
export function checkBudgets(outputs: Map<string, Output>, budgetKbOf = budgetOf): void {
  const problems = [...outputs]
    .filter(([file, { bytes }]) => bytes > budgetKbOf(file) * 1024)
    .map(
      ([file, output]) =>
        `The bundle of ${file} has ${kb(output.bytes)}, its budget is ${budgetKbOf(file)} KB. Most of it: ${heaviest(output)}.`,
    );
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

type Output = Pick<esbuild.Metafile["outputs"][string], "bytes" | "inputs">;

const kb = (bytes: number) => `${(bytes / 1024).toFixed(1)} KB`;

/** The packages and folders that weigh most in a bundle, and what they weigh. */
export function heaviest({ inputs }: Output): string {
  const bytesOf: Record<string, number> = {};
  for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
    const owner = ownerOf(path);
    bytesOf[owner] = (bytesOf[owner] ?? 0) + bytesInOutput;
  }
  const sorted = Object.entries(bytesOf).sort(([, one], [, other]) => other - one);
  return sorted
    .slice(0, SHOWN_INPUTS)
    .map(([owner, bytes]) => `${owner} ${kb(bytes)}`)
    .join(", ");
}

/** The package that a file belongs to; of our own files the folder. */
function ownerOf(path: string): string {
  const inPackage = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
  return inPackage ?? path.split("/").slice(0, 2).join("/");
}
