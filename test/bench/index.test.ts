import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runBench } from "../../bench/index.ts";
import { eventually } from "../support/eventually.ts";

const root = join(import.meta.dirname, "..", "..");

const bench = (...names: string[]) =>
  spawnSync(process.execPath, ["bench/index.ts", ...names], { cwd: root, encoding: "utf8" });

test("a benchmark prints its tables and targets and saves its figures in a file", () => {
  const { stdout, status } = bench("cost");
  expect(stdout).toMatch(/^# cost: /);
  expect(stdout).toMatch(/^ {2}API Gateway +3\.50 /m);
  expect(stdout).toMatch(/^target request with a key, \$ per million [\d.]+ <= 4\.8 ok$/m);
  expect(status).toBe(0);
  const saved = JSON.parse(readFileSync(join(root, ".local", "bench", "cost.json"), "utf8"));
  expect(saved).toMatchObject({ name: "cost", node: process.version });
});

test("an unknown benchmark is an error that lists the known ones", () => {
  const { stderr, status } = bench("speed");
  expect(stderr).toContain("Unknown benchmark: speed. Choose from: pipe, isolation,");
  expect(status).toBe(1);
});

test("--help prints the usage and runs nothing", () => {
  const { stdout, status } = bench("--help");
  expect(stdout).toMatch(/^Usage: npm run bench .*: pipe, isolation, cost,/s);
  expect(stdout).not.toContain("# cost");
  expect(status).toBe(0);
});

test("a benchmark that is killed with kill -9 leaves no process", async () => {
  const child = spawn(process.execPath, ["bench/index.ts", "revocation"], { cwd: root, stdio: "ignore" });
  const descendants = () => processesBelow(child.pid ?? 0);
  // The process of the benchmark, its service, and the shell and the engine below it.
  await eventually(async () => expect(descendants().length).toBeGreaterThan(3));
  const started = descendants();
  child.kill("SIGKILL");
  const killedAt = performance.now();
  await eventually(async () => expect(started.filter(isRunning)).toEqual([]));
  // The benchmark itself would take half a minute more.
  expect(performance.now() - killedAt).toBeLessThan(20_000);
});

test("a benchmark that is stopped at its limit leaves no process, nor one that it has started", async () => {
  const others = new Set(processesBelow(process.pid));
  const ending = runBench("checks", 4_000);
  let started: number[] = [];
  await eventually(async () => {
    started = processesBelow(process.pid).filter((id) => !others.has(id));
    // The benchmark, and a program that does not end by itself with it.
    expect(started.length).toBeGreaterThan(1);
  });
  expect(await ending).toBe("late");
  const stoppedAt = performance.now();
  await eventually(async () => expect(started.filter(isRunning)).toEqual([]));
  // The program itself would take a quarter of a minute more.
  expect(performance.now() - stoppedAt).toBeLessThan(5_000);
});

/** Returns the ids of all processes that a process has started, and those below them. */
function processesBelow(pid: number): number[] {
  const { stdout } = spawnSync("pgrep", ["-P", String(pid)], { encoding: "utf8" });
  const children = stdout.split("\n").filter(Boolean).map(Number);
  return children.flatMap((child) => [child, ...processesBelow(child)]);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
