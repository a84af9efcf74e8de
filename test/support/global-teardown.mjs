import { existsSync, readFileSync, rmSync } from "node:fs";
import { removeRunFolder } from "./run-folder.mjs";

export default async function globalTeardown() {
  removeRunFolder();
  await globalThis.stopEngines();
  printMissingPrograms(process.env.MISSING_PROGRAMS_FILE);
}

/** Lists the tests that were skipped because a program is not installed. @param file written by optional-program.ts */
function printMissingPrograms(file) {
  if (!file || !existsSync(file)) return;
  const lines = readFileSync(file, "utf8").trim().split("\n");
  rmSync(file);
  const filesByProgram = Map.groupBy(
    lines.map((line) => JSON.parse(line)),
    ({ program }) => program,
  );
  console.log("\nTests were skipped because programs are not installed (with CI_STRICT=1 these tests fail):");
  for (const [program, entries] of filesByProgram) {
    const files = [...new Set(entries.map(({ testFile }) => testFile))].sort();
    console.log(`  ${program}: ${files.join(", ")}`);
  }
}
