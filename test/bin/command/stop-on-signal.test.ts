import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { eventually } from "../../support/eventually.ts";
import { startProgram } from "../../support/local-run.ts";

const modulePath = join(import.meta.dirname, "../../../bin/command/stop-on-signal.ts");

/** A program that is ready, and ends when it is stopped, or after a minute. @param stop what it does then */
const programWith = (stop: string) => `
  import { stopOnSignal } from ${JSON.stringify(modulePath)};
  stopOnSignal(${stop});
  setTimeout(() => process.exit(), 60_000);
  console.log("ready");`;

const run = (program: string) => ["--input-type=module", "--eval", program];

/** Starts the program, waits until it is ready, and sends it a signal. */
async function startWith(stop: string) {
  const child = startProgram(run(programWith(stop)), {});
  await once(child.stdout, "data");
  const output = { stderr: "" };
  child.stderr.on("data", (text) => {
    output.stderr += text;
  });
  child.kill("SIGINT");
  return { child, output };
}

test("a second Ctrl-C ends a stop that takes long, after a notice that says so", async () => {
  const { child, output } = await startWith("() => new Promise(() => {})");
  await eventually(() => expect(output.stderr).toContain("Press Ctrl-C again to stop at once."));
  child.kill("SIGINT");
  expect(await once(child, "exit")).toEqual([130, null]);
});

test("a stop that fails exits with 1 and prints the error", async () => {
  const { child, output } = await startWith('() => Promise.reject(new Error("the engine is gone"))');
  expect(await once(child, "close")).toEqual([1, null]);
  expect(output.stderr).toContain("the engine is gone");
});

test("under npm, a killed npm begins a stop, which is not cut off although it takes long", async () => {
  const stop = '() => new Promise((resolve) => setTimeout(() => resolve(console.log("in flight ended")), 1_200))';
  const npm = `
    import { spawn } from "node:child_process";
    const env = { ...process.env, npm_lifecycle_event: "start" };
    spawn(process.execPath, ${JSON.stringify(run(programWith(stop)))}, { env, stdio: ["ignore", "inherit", "inherit"] });`;
  const parent = startProgram(run(npm), {});
  await once(parent.stdout, "data");
  const printed = Promise.all([text(parent.stdout), text(parent.stderr)]);
  parent.kill("SIGKILL");
  expect(await printed).toEqual(["in flight ended\n", expect.stringContaining("Stopped.")]);
});
