import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface BusyListener {
  port: number;
  close(): Promise<void>;
}

const PROGRAM = `
  const { writeSync } = require("node:fs");
  const server = require("node:http").createServer((request, response) => response.end("late"));
  server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
    process.stdin.once("data", (ms) => {
      writeSync(1, "busy");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(ms));
    });
    writeSync(1, String(server.address().port));
  });
`;

/**
 * Starts a server that accepts no connection for `busyMs`: its process is blocked and its backlog is full, so the
 * kernel drops the handshakes of further connections. The client's kernel repeats them after a second.
 */
export async function startBusyListener(busyMs: number): Promise<BusyListener> {
  const child: ChildProcess = spawn(process.execPath, ["-e", PROGRAM], { stdio: ["pipe", "pipe", "inherit"] });
  const output = child.stdout ?? child;
  const [chunk] = await once(output, "data");
  const port = Number(String(chunk));
  child.stdin?.write(String(busyMs));
  await once(output, "data");
  const fillers: Socket[] = [];
  // The queue of accepted connections holds the backlog and one more.
  for (let n = 0; n < 2; n++) {
    const filler = connect(port, "127.0.0.1");
    fillers.push(filler);
    filler.on("error", () => {});
    await once(filler, "connect");
  }
  return {
    port,
    async close() {
      for (const filler of fillers) filler.destroy();
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    },
  };
}
