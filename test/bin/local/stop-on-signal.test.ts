import { once } from "node:events";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { startProgram } from "../../support/local-run.ts";

const modulePath = join(import.meta.dirname, "../../../bin/local/stop-on-signal.ts");

test("a second Ctrl-C ends a stop that takes long, after a notice that says so", async () => {
  const program = `
    import { stopOnSignal } from ${JSON.stringify(modulePath)};
    stopOnSignal(() => new Promise(() => {}));
    setInterval(() => {}, 1_000);
    console.log("ready");`;
  const child = startProgram(["--input-type=module", "--eval", program], {});
  await once(child.stdout, "data");
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  child.kill("SIGINT");
  await eventually(() => expect(stderr).toContain("Press Ctrl-C again to stop at once."));
  child.kill("SIGINT");
  expect(await once(child, "exit")).toEqual([130, null]);
});
