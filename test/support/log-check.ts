import { format } from "node:util";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { leaksIn } from "./leaks.ts";

/*
 * Checks all log output of a test file for secrets. Loaded before every test file; a secret fails the test that was
 * running, or the file. Limit: Jest runs this `afterAll` before those of the file, so output of the file's own
 * `afterAll` is not checked.
 */

const leaks: string[] = [];

function check(text: string): void {
  const found = leaksIn(text, [process.env.JWT_SECRET ?? ""]);
  if (found.length > 0) leaks.push(`${found.join(", ")}: ${text.trim()}`);
}

// Tests replace the sink. The lines are checked before any sink gets them.
let sink = logSink.write;
Object.defineProperty(logSink, "write", {
  get: (): typeof sink => {
    const write = sink;
    return (level, line) => {
      check(JSON.stringify({ level, ...line }));
      write(level, line);
    };
  },
  set: (write: typeof sink) => {
    sink = write;
  },
});

// The stream outlives this test file, so the check of the next file replaces this one.
const stdout: typeof process.stdout & { unchecked?: typeof process.stdout.write } = process.stdout;
stdout.unchecked ??= stdout.write;
const print = stdout.unchecked;
stdout.write = ((text: string | Uint8Array, ...rest: []) => {
  check(String(text));
  // Log lines of the functions are not test results, so they are not printed.
  return isLogLine(String(text)) || print.call(stdout, text, ...rest);
}) as typeof print;

const isLogLine = (text: string): boolean => /^\{"timestamp":"[^"]+","level":"[A-Z]+","message":/.test(text);

for (const level of ["debug", "error", "info", "log", "warn"] as const) {
  const print = console[level];
  console[level] = (...args) => {
    check(format(...args));
    print.apply(console, args);
  };
}

function failOnLeaks(): void {
  const found = leaks.splice(0);
  if (found.length > 0) throw new Error(`A secret was logged:\n${found.join("\n")}`);
}
afterEach(failOnLeaks);
afterAll(failOnLeaks);
