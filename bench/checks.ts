import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { costlyResponses, startCostlyReceiver } from "../test/support/costly-responses.ts";
import type { Bench, Target } from "./harness.ts";

/* What the tests check, with more of it, as figures. */

const SCHEDULES = 2_000;

export const bench: Bench = {
  name: "checks",
  about:
    "the delivery core in random schedules, reports of others about their software, responses that cost the sender time",
  async run() {
    return { tables: [], targets: [await violations(SCHEDULES), await wrongAnswers(), await costliestResponse()] };
  },
};

const root = join(import.meta.dirname, "..");
/** Runs a program, which ends with this one. Its output goes to stderr if it fails. */
function node(...args: string[]): Promise<{ stdout: string }> {
  const running = promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: 1e8 });
  process.once("exit", () => running.child.kill("SIGKILL"));
  return running.catch(({ stdout = "", stderr = "" }) => {
    console.error(`${stdout}${stderr}`);
    return { stdout: String(stdout) };
  });
}

/** Runs the model with seeds that no run had before. @throws Error with the seeds to repeat, after a violation */
async function violations(schedules: number): Promise<Target> {
  const { stdout } = await node("test/model/run.ts", `${schedules}`, `${Math.floor(Date.now() / 1000) * schedules}`);
  const [, count] = /, (\d+) violations/.exec(stdout) ?? [];
  if (count !== "0") throw new Error(stdout || "The model did not run.");
  return { name: "violations", value: 0, bound: 0, of: `in ${schedules} schedules` };
}

/** Runs the tests of `test/field`, whose rows have a source. @throws Error when one fails */
async function wrongAnswers(): Promise<Target> {
  const file = join(mkdtempSync(join(tmpdir(), "field-")), "results.json");
  await node(
    "--experimental-vm-modules",
    "node_modules/jest/bin/jest.js",
    "--json",
    `--outputFile=${file}`,
    "test/field",
  );
  const { success, numTotalTests, numPendingTests } = JSON.parse(readFileSync(file, "utf8"));
  const ran = numTotalTests - numPendingTests;
  // Tests of a file that does not load are not counted.
  if (!success || ran === 0) throw new Error("Rows of test/field fail, see above.");
  return { name: "wrong rows of test/field", value: 0, bound: 0, of: `of ${ran}` };
}

/** Returns the response that takes the largest part of what it may cost. */
async function costliestResponse(): Promise<Target> {
  const receiver = await startCostlyReceiver();
  const costs: Target[] = [];
  for (const { index, title, maxMs } of costlyResponses) {
    const value = await receiver.costOf(index);
    costs.push({ name: "costliest response", value, bound: maxMs, unit: "ms", of: title });
  }
  await receiver.end();
  costs.sort((one, other) => other.value / other.bound - one.value / one.bound);
  return costs[0] as Target;
}
