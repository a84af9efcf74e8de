#!/usr/bin/env node
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import module from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/*
 * Starts `svc`. The published package has a bundle that runs on Node 20 or later. A checkout has the TypeScript sources: on a
 * Node that cannot run TypeScript, this file starts itself again with the Node in node_modules.
 */

const args = process.argv.slice(2);
const bundle = new URL("../dist/program.js", import.meta.url);
const sources = new URL("../src/program.ts", import.meta.url);

// The sources first: a checkout may also have a bundle, from an earlier npm pack.
if (!existsSync(sources)) {
  await start(bundle);
} else if (process.features.typescript) {
  await start(sources);
} else {
  startWithBundledNode();
}

/** @param {URL} program */
async function start(program) {
  // In a directory that only the user can write to, unlike Node's default, because the cache contains code. A start with the
  // cache takes a third of the time. Node 20 has no such cache.
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "svc");
  // One by one: Node's own function never returns where no folder can be created, as in /proc.
  for (const folder of [dirname(cache), cache]) await mkdir(folder, { mode: 0o700 }).catch(() => {});
  if (existsSync(cache)) module.enableCompileCache?.(cache);
  const { run } = await import(program.href);
  await run(args);
}

function startWithBundledNode() {
  const nodeFolder = dirname(module.createRequire(import.meta.url).resolve("node/package.json"));
  const child = spawn(join(nodeFolder, "bin/node"), [fileURLToPath(import.meta.url), ...args], { stdio: "inherit" });
  // Ctrl-C reaches both processes, and the child decides how to end. SIGTERM reaches only this process.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.on("error", ({ message }) => {
    console.error(`Could not start the Node in node_modules: ${message}. Run npm install, or use Node 24.`);
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
