import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { startChild, withStarted } from "../../bench/child.ts";

/* Processes of a benchmark: what they answer, how they fail, and that none is left. */

const folder = mkdtempSync(join(tmpdir(), "child-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes a program whose first message is its process id. */
function program(name: string, onMessage: string): string {
  const file = join(folder, `${name}.cjs`);
  writeFileSync(file, `process.on("message", (message) => { ${onMessage} }); process.send(process.pid);`);
  return file;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("a process answers each request, and its end waits until it is gone", async () => {
  const { ready: pid, request, end } = await startChild<number>(program("echo", "process.send([message])"));
  expect(await request("one")).toEqual(["one"]);
  expect(await request("two")).toEqual(["two"]);
  expect(isRunning(pid)).toBe(true);
  await end();
  expect(isRunning(pid)).toBe(false);
});

test("a process that is started by one that ends with its parent does not end at once", async () => {
  const starter = join(folder, "starter.mts");
  const child = JSON.stringify(join(import.meta.dirname, "../../bench/child.ts"));
  writeFileSync(
    starter,
    `import { startChild } from ${child};
    const { request, end } = await startChild(${JSON.stringify(program("later", "process.send(message)"))});
    await new Promise((resolve) => setTimeout(resolve, 500));
    console.log(await request("still here"));
    await end();
    process.exit();`,
  );
  const endsWithParent = join(import.meta.dirname, "../support/ends-with-parent.cjs");
  const running = spawn(process.execPath, ["--require", endsWithParent, starter], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  expect(await text(running.stdout)).toBe("still here\n");
});

test("a process that exits during a request is an error that names it", async () => {
  const { request, end } = await startChild(program("exits", "process.exit(3)"), { args: ["ours"] });
  await expect(request("go")).rejects.toThrow("The process exits.cjs ours exited with 3.");
  await end();
});

test("a process that does not respond in time is an error, and it can still be ended", async () => {
  const { ready: pid, request, end } = await startChild<number>(program("busy", "for (;;);"), { timeoutMs: 2_000 });
  await expect(request("go")).rejects.toThrow("The process busy.cjs did not respond within 2 s.");
  await end();
  expect(isRunning(pid)).toBe(false);
});

test("a process that exits before its first message is an error", async () => {
  const file = join(folder, "broken.cjs");
  writeFileSync(file, "process.exit(4)");
  await expect(startChild(file)).rejects.toThrow("The process broken.cjs exited with 4.");
});

test("a process without a first message is stopped", async () => {
  const pidFile = join(folder, "pid");
  const file = join(folder, "silent.cjs");
  writeFileSync(
    file,
    `require("fs").writeFileSync(${JSON.stringify(pidFile)}, String(process.pid)); setInterval(() => {}, 1000)`,
  );
  await expect(startChild(file, { timeoutMs: 2_000 })).rejects.toThrow("did not respond within 2 s");
  const pid = Number(readFileSync(pidFile, "utf8"));
  expect(isRunning(pid)).toBe(false);
});

const endable = (name: string, ended: string[]) => Promise.resolve({ name, end: async () => void ended.push(name) });

test("everything that was started is ended in reverse order, with the result of the run", async () => {
  const ended: string[] = [];
  const result = await withStarted(async (start) => {
    const { name } = await start(endable("a", ended));
    await start(endable("b", ended));
    expect(ended).toEqual([]);
    return name;
  });
  expect(result).toBe("a");
  expect(ended).toEqual(["b", "a"]);
});

test("an end that fails is reported after everything else was ended", async () => {
  const ended: string[] = [];
  const run = withStarted(async (start) => {
    await start(endable("a", ended));
    await start(Promise.resolve({ end: () => Promise.reject(new Error("still busy")) }));
    await start(endable("b", ended));
  });
  await expect(run).rejects.toThrow("still busy");
  expect(ended).toEqual(["b", "a"]);
});

test("a start that fails ends what was started before", async () => {
  const ended: string[] = [];
  const run = withStarted(async (start) => {
    await start(endable("a", ended));
    await start(Promise.reject(new Error("no port")));
  });
  await expect(run).rejects.toThrow("no port");
  expect(ended).toEqual(["a"]);
});
