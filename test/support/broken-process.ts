import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Returns the ids of the processes that a process, by default this one, has started and that still run. */
export const childProcesses = (parent = process.pid): string[] =>
  spawnSync("pgrep", ["-P", String(parent)], { encoding: "utf8" })
    .stdout.split("\n")
    .filter(Boolean)
    .sort();

/**
 * Runs code at the start of Node processes that this process starts in the meantime.
 * @param code JavaScript (CommonJS) that runs in each of them, before their own code
 */
export async function whileBroken(code: string, run: () => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "broken-"));
  const preload = join(folder, "broken.cjs");
  writeFileSync(preload, code);
  const { NODE_OPTIONS } = process.env;
  process.env.NODE_OPTIONS = `${NODE_OPTIONS ?? ""} --require ${preload}`;
  try {
    await run();
  } finally {
    if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = NODE_OPTIONS;
    rmSync(folder, { recursive: true });
  }
}
