import { format } from "node:util";
import { logSink } from "../../functions/platform/log.ts";
import { leaksIn } from "./leaks.ts";

/*
 * Loaded before every test file: whatever is logged while it runs, by whatever way, is looked through for secrets, and one
 * that is found fails the test that was running, or else the file. (Jest runs this `afterAll` before those of the file: what
 * is written while they run is looked at by nobody.)
 */

const leaks: string[] = [];

function check(text: string): void {
  const found = leaksIn(text, [process.env.JWT_SECRET ?? ""]);
  if (found.length > 0) leaks.push(`${found.join(", ")}: ${text.trim()}`);
}

// Tests put a sink of their own in place. Whichever it is, its lines are checked first.
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

// The stream outlives this file; the next one's check takes the place of this one.
const stdout: typeof process.stdout & { unchecked?: typeof process.stdout.write } = process.stdout;
stdout.unchecked ??= stdout.write;
const print = stdout.unchecked;
stdout.write = ((text: string | Uint8Array, ...rest: []) => {
  check(String(text));
  // The lines of the functions are for CloudWatch, not for whoever reads the results of the tests.
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
