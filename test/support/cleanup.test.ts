import { once } from "node:events";
import { closeAfterFile } from "./cleanup.ts";
import { freshDataDir, startProgram } from "./local-run.ts";

/* Cleanup runs in the `afterAll` of support/cleanup.ts, before that of this file, which can therefore check it. */

const closed: string[] = [];
const program = startProgram(["-e", "setInterval(() => {}, 1_000)"], { DATA_DIR: freshDataDir() });
afterAll(() => {
  expect(closed).toEqual(["now", "last", "first"]);
  expect(program.signalCode).toBe("SIGKILL");
});

test("closes everything once, in reverse order of opening", async () => {
  closeAfterFile(() => closed.push("first"));
  closeAfterFile(() => closed.push("last"));
  const closeNow = closeAfterFile(() => closed.push("now"));
  expect([closeNow(), closeNow()]).toEqual([1, 1]);
});

test("a program ends when its standard input is closed, as when the process that started it dies", async () => {
  const other = startProgram(["-e", "setInterval(() => {}, 1_000)"], { DATA_DIR: freshDataDir() });
  other.stdin.end();
  expect((await once(other, "exit"))[0]).toBe(0);
});
