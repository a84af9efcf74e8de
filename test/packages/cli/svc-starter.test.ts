import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { environment, freshConfigHome, program } from "../../support/svc.ts";

/* How `bin/svc.js` starts the program. */

test("starts the sources of a checkout, and the bundle where there are no sources", () => {
  const folder = freshConfigHome();
  for (const name of ["bin", "src", "dist"]) mkdirSync(join(folder, name));
  copyFileSync(program, join(folder, "bin/svc.js"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(
    join(folder, "src/program.ts"),
    'export const run = (args: string[]) => console.log("sources", ...args);',
  );
  writeFileSync(join(folder, "dist/program.js"), 'export const run = (...args) => console.log("bundle", ...args[0]);');
  // Code that another user could write to must not be loaded.
  const env = environment({ NODE_COMPILE_CACHE: "", XDG_CACHE_HOME: join(folder, "cache") });
  const start = () => execFileSync(process.execPath, [join(folder, "bin/svc.js"), "a", "b"], { env, encoding: "utf8" });
  expect(start()).toBe("sources a b\n");
  expect(readdirSync(join(folder, "cache"))).toEqual(["svc"]);
  rmSync(join(folder, "src"), { recursive: true });
  expect(start()).toBe("bundle a b\n");
});

test("exits with 0 and without an error when the reader of its output has closed the pipe", async () => {
  const child = spawn(process.execPath, [program, "--help"], { env: environment() });
  child.stdout.destroy();
  let stderr = "";
  child.stderr.on("data", (text: Buffer) => {
    stderr += text;
  });
  expect(await once(child, "close")).toEqual([0, null]);
  expect(stderr).toBe("");
});
