import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");

const bench = (...names: string[]) =>
  spawnSync(process.execPath, ["bench/index.ts", ...names], { cwd: root, encoding: "utf8", timeout: 30_000 });

test("a bench prints its tables and targets, and leaves the figures in a file", () => {
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

test("a bench that does not exist is an error that says which do", () => {
  const { stderr, status } = bench("speed");
  expect(stderr).toContain("There is no bench speed. There are: size, cold,");
  expect(status).toBe(1);
});
