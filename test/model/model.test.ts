import { execFile } from "node:child_process";
import { promisify } from "node:util";

/*
 * The delivery core in a simulated world: random schedules with faults at every call, and planted mistakes, each with a seed
 * that finds it. One process, because the model replaces the clock and what the functions take from outside.
 * By hand, longer: `node test/model/run.ts 100000`.
 */

const run = promisify(execFile);

test("nothing is lost, and nothing is sent twice, in random schedules; each planted mistake is found", async () => {
  const { stdout } = await run(process.execPath, ["test/model/run.ts", "check", "400"]).catch(({ stdout }) => ({
    stdout,
  }));
  expect(stdout).toContain("400 schedules, 0 violations");
  expect(stdout).not.toContain("NOT FOUND");
  expect(stdout.match(/^found {5}/gm)).toHaveLength(13);
});
