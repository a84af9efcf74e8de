import { once } from "node:events";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { startProgram } from "../../support/local-run.ts";

const modulePath = join(import.meta.dirname, "../../../bin/command/stop-on-signal.ts");

/** Starts a program that is stopped by a signal, and waits until it is ready. @param stop what it does then */
async function startWith(stop: string) {
  const program = `
    import { stopOnSignal } from ${JSON.stringify(modulePath)};
    stopOnSignal(${stop});
    setInterval(() => {}, 1_000);
    console.log("ready");`;
  const child = startProgram(["--input-type=module", "--eval", program], {});
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
