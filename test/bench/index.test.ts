import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");

const bench = (...names: string[]) =>
  spawnSync(process.execPath, ["bench/index.ts", ...names], { cwd: root, encoding: "utf8" });

test("a benchmark prints its tables and targets and saves its figures in a file", () => {
  const { stdout, status } = bench("size");
  expect(stdout).toMatch(/^# size: /);
  expect(stdout).toMatch(/^ {2}attempts\/send +\d+ .*@smithy\/core \d+/m);
  for (const name of ["authorizer", "largest endpoint", "sender"]) {
    expect(stdout).toMatch(new RegExp(`^target ${name} \\d+ <= \\d+ KB ok$`, "m"));
  }
  expect(status).toBe(0);
  const saved = JSON.parse(readFileSync(join(root, ".local", "bench", "size.json"), "utf8"));
  expect(saved).toMatchObject({ name: "size", node: process.version, targets: [{ name: "authorizer" }, {}, {}] });
});

test("an unknown benchmark is an error that lists the known ones", () => {
  const { stderr, status } = bench("speed");
  expect(stderr).toContain("Unknown benchmark: speed. Choose from: size, cold,");
  expect(status).toBe(1);
});

test("--help prints the usage and runs nothing", () => {
  const { stdout, status } = bench("--help");
  expect(stdout).toMatch(/^Usage: npm run bench .*: size, cold, auth, sign, send, isolation, pipe, scale, cost\./s);
  expect(stdout).not.toContain("# size");
  expect(status).toBe(0);
});
