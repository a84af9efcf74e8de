import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "./optional-program.ts";

/* `needs` registers tests by the global functions `test` and `describe`, which these tests replace by recorders. */

interface Registered {
  kind: "test" | "test.skip" | "describe" | "describe.skip";
  title: string;
  run: () => unknown;
}

const names = ["CI_STRICT", "MISSING_PROGRAMS_FILE"] as const;
const original = { test: globalThis.test, describe: globalThis.describe };
const environment = Object.fromEntries(names.map((name) => [name, process.env[name]]));
const file = join(tmpdir(), `optional-program-${process.pid}`);
const registered: Registered[] = [];

function recorder(kind: "test" | "describe") {
  const record = (each: Registered["kind"]) => (title: string, run: () => unknown) => {
    registered.push({ kind: each, title, run });
    if (each === "describe") run();
  };
  return Object.assign(record(kind), { skip: record(`${kind}.skip`) });
}

beforeEach(() => {
  registered.splice(0);
  process.env.MISSING_PROGRAMS_FILE = file;
  delete process.env.CI_STRICT;
});
afterEach(() => {
  rmSync(file, { force: true });
  for (const name of names) {
    if (environment[name] === undefined) delete process.env[name];
    else process.env[name] = environment[name];
  }
});

/** Calls `define` while the recorders are in place. */
function recorded(define: () => void): Registered[] {
  Object.assign(globalThis, { test: recorder("test"), describe: recorder("describe") });
  try {
    define();
  } finally {
    Object.assign(globalThis, original);
  }
  return registered;
}

const missing = { name: "no-such-program", isInstalled: false };

test("a missing program skips the test, names the program and records the test file", () => {
  const [skipped] = recorded(() => needs("node", missing).test("works", () => {}));
  expect(skipped).toMatchObject({
    kind: "test.skip",
    title: "works (skipped: no-such-program not installed)",
  });
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
    program: "no-such-program",
    testFile: "test/support/optional-program.test.ts",
  });
});

test("with CI_STRICT=1, a missing program fails the test with its name", () => {
  process.env.CI_STRICT = "1";
  const tests = recorded(() => {
    needs(missing).test("works", () => {});
    needs(missing).describe("a group", () => {});
  }).filter(({ kind }) => kind === "test");
  expect(tests.map(({ title }) => title)).toEqual(["works", "needs no-such-program"]);
  for (const { run } of tests) expect(run).toThrow("Not installed: no-such-program.");
  expect(existsSync(file)).toBe(false);
});
