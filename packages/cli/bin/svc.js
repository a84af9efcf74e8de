#!/usr/bin/env node
import { spawn } from "node:child_process";
import module from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/*
 * The program behind `svc`, whatever Node the machine has: one that runs TypeScript runs it, an older one hands over to the
 * Node that is installed with this package.
 */

if (process.features.typescript) {
  // Kept where only the user writes, unlike Node's default: it is code. It makes a start three times as fast.
  module.enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "svc"));
  const { run } = await import("../src/program.ts");
  await run(process.argv.slice(2));
} else {
  const packageFolder = dirname(module.createRequire(import.meta.url).resolve("node/package.json"));
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(join(packageFolder, "bin/node"), args, { stdio: "inherit" });
  // Ctrl-C reaches both, and how to end is the other's decision; a TERM reaches this one alone.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.on("error", ({ message }) => {
    console.error(`The Node that comes with this package does not start: ${message}. Run npm install, or use Node 24.`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    if (signal === null) {
      process.exitCode = code ?? 1;
    } else {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
  });
}
