import { spawnSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { relative } from "node:path";

/*
 * Tests that need a program that may not be installed. Without it they are skipped, and the end of the test run lists
 * the missing programs with their test files. With CI_STRICT=1 they fail instead.
 */

/** A program for tests. `isInstalled` replaces the default check, which runs the program with `--version`. */
export interface Program {
  name: string;
  isInstalled: boolean;
}

interface ProgramTests {
  /** Whether all programs are installed. */
  isInstalled: boolean;
  test(title: string, run: jest.ProvidesCallback, timeoutMs?: number): void;
  describe(title: string, define: () => void): void;
}

/** Arguments that print the version of programs without the option `--version`. */
const versionArguments: Record<string, string> = { go: "version", openssl: "version" };

function isInstalled(name: string): boolean {
  return spawnSync(name, [versionArguments[name] ?? "--version"], { stdio: "ignore" }).status === 0;
}

/** Returns `test` and `describe` for tests that need these programs. */
export function needs(...programs: (string | Program)[]): ProgramTests {
  const missing = programs
    .map((each) => (typeof each === "string" ? { name: each, isInstalled: isInstalled(each) } : each))
    .filter((program) => !program.isInstalled)
    .map(({ name }) => name);
  if (missing.length === 0) return { isInstalled: true, test, describe };

  const names = missing.join(" and ");
  if (process.env.CI_STRICT === "1") {
    const fail = () => {
      throw new Error(`Not installed: ${names}. Install it, or run without CI_STRICT=1 to skip this test.`);
    };
    return {
      isInstalled: false,
      test: (title) => test(title, fail),
      describe: (title) => describe(title, () => test(`needs ${names}`, fail)),
    };
  }
  for (const name of missing) recordMissing(name);
  return {
    isInstalled: false,
    test: (title) => test.skip(`${title} (skipped: ${names} not installed)`, () => {}),
    describe: (title, define) => describe.skip(`${title} (skipped: ${names} not installed)`, define),
  };
}

/** Appends to the file that global-setup.mjs names and global-teardown.mjs prints. */
function recordMissing(program: string): void {
  const file = process.env.MISSING_PROGRAMS_FILE;
  const testFile = relative(process.cwd(), expect.getState().testPath ?? "");
  if (file) appendFileSync(file, `${JSON.stringify({ program, testFile })}\n`);
}
