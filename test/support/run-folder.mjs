import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/* A folder for the files that the test files of one run share, such as the stacks of test/lib/synthesized.ts. */

export function createRunFolder() {
  process.env.TEST_RUN_DIR = mkdtempSync(join(tmpdir(), "test-run-"));
}

export function removeRunFolder() {
  rmSync(process.env.TEST_RUN_DIR, { recursive: true, force: true });
}
