import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { Worker } from "node:worker_threads";
import type { FauxqsServer } from "fauxqs";
import { StartError } from "../command/start-error.ts";

/** An engine on this machine that speaks the wire protocol of an AWS service. */
export interface Engine {
  endpoint: string;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 10_000;

/**
 * Ports that no browser connects to, whatever a page asks for. The DynamoDB engine needs one: it accepts any signature and
 * lets every web page read its responses, and has no option against either. https://fetch.spec.whatwg.org/#port-blocking
 */
const PORTS_CLOSED_TO_BROWSERS = [
  ...[1719, 1720, 1723, 3659, 4190, 5060, 5061, 6000, 6566],
  ...[6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080],
];

/**
 * Returns the addresses to try in turn. On Linux all of 127.0.0.0/8 is this machine, so there is always a free one. None is
 * 127.0.0.1 there: the engine refuses a port at any address if something listens on it at 127.0.0.1.
 */
function dynamoAddresses(): { host: string; port: number }[] {
  const anyLoopback = ["127", randomInt(256), randomInt(256), randomInt(2, 255)].join(".");
  const host = process.platform === "linux" ? anyLoopback : "127.0.0.1";
  return PORTS_CLOSED_TO_BROWSERS.map((port) => ({ host, port }));
}

/**
 * Starts DynamoDB: the `dynoxide` binary over one SQLite file, at a loopback address that browsers refuse to call.
 * @param dataDir folder of the data; undefined = in memory
 * @param onExit called when the engine ends on its own
 * @param addresses those to try in turn
 * @throws StartError when this platform has no engine, or the engine does not start
 */
export async function startDynamo(
  dataDir: string | undefined,
  onExit: () => void,
  addresses = dynamoAddresses(),
): Promise<Engine> {
  const binary = dynoxidePath();
  const data = dataDir === undefined ? [] : ["--db-path", join(dataDir, "dynamodb.sqlite")];
  for (const { host, port } of addresses) {
    const child = spawnTied(binary, ["serve", "--host", host, "--port", String(port), ...data]);
    const started = await startOf(child);
    if (started === "port in use") continue;
    if (started === "listening") {
      let isStopping = false;
      child.on("exit", () => isStopping || onExit());
      const stop = () => {
        isStopping = true;
        return stopTied(child);
      };
      return { endpoint: `http://${host}:${port}`, stop };
    }
    await stopTied(child);
    throw new StartError(
      `The embedded DynamoDB engine did not start. Check that ${dataDir ?? "its binary"} can be used, and start again.`,
    );
  }
  throw new StartError(
    `The embedded DynamoDB engine did not start: the ports that browsers cannot call (${PORTS_CLOSED_TO_BROWSERS.join(", ")}) are all in use. Stop another local run, or ${OTHER_ENGINE}.`,
  );
}

type Start = "listening" | "port in use" | "failed";

/** Waits for what the engine reports. A connection would prove nothing: another program may listen at that address. */
function startOf(child: ChildProcessWithoutNullStreams): Promise<Start> {
  return new Promise((resolve) => {
    let output = "";
    const timer = setTimeout(() => finish("failed"), START_TIMEOUT_MS);
    const finish = (start: Start) => {
      clearTimeout(timer);
      resolve(start);
    };
    const read = (text: Buffer) => {
      output = (output + text).slice(-1_000);
      if (output.includes("listening on")) finish("listening");
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("close", () => finish(output.includes("in use") ? "port in use" : "failed"));
  });
}

/** Platforms whose engine package npm installs: package.json lists them as optional dependencies. */
const enginePlatforms = ["linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64"];

const OTHER_ENGINE =
  "start DynamoDB Local or LocalStack and set AWS_ENDPOINT_URL_DYNAMODB to its address, such as http://127.0.0.1:8000";

function dynoxidePath(): string {
  const platform = `${process.platform}-${process.arch}`;
  const name = `@dynoxide/${platform}`;
  // The engine is tied to this process by a POSIX shell.
  if (process.platform === "win32") {
    throw new StartError(
      `The embedded DynamoDB engine does not run on Windows. Use WSL (Windows Subsystem for Linux), or ${OTHER_ENGINE}.`,
    );
  }
  try {
    return createRequire(import.meta.url).resolve(`${name}/dynoxide`);
  } catch {
    throw new StartError(
      enginePlatforms.includes(platform)
        ? `The embedded DynamoDB engine is missing (${name} is not installed). Run npm install again, or ${OTHER_ENGINE}.`
        : `There is no embedded DynamoDB engine for ${platform}. To run here, ${OTHER_ENGINE}.`,
    );
  }
}

/**
 * Starts a program that ends when this process ends, even after a kill -9. A shell waits for the other end of its standard
 * input to close, which the operating system guarantees, then kills the program. The program runs in a session of its own:
 * Ctrl-C reaches only this process, so the engine is there until requests in flight are finished.
 */
function spawnTied(binary: string, args: string[]): ChildProcessWithoutNullStreams {
  const script = 'exec 3<&0; "$@" & engine=$!; (cat <&3; kill "$engine" 2>/dev/null) & wait "$engine"';
  const child = spawn("/bin/sh", ["-c", script, "engine", binary, ...args], { detached: true });
  child.once("exit", () => child.stdin.end());
  return child;
}

async function stopTied(child: ChildProcessWithoutNullStreams): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.stdin.end();
  await ended;
}

/**
 * Starts SQS in a thread of its own, so that its work does not delay the functions.
 * @param port 0 = any free port
 * @param dataDir folder of the messages; undefined = in memory
 * @param onExit called when the engine ends on its own
 * @throws StartError when the port is in use, or the engine does not start
 */
export async function startSqs(port: number, dataDir: string | undefined, onExit: () => void): Promise<Engine> {
  if (port !== 0 && (await isListening(port))) throw new StartError(portInUse("SQS_PORT", port));
  // Without the flags of this process: what they preload is not meant for this thread.
  const options = { workerData: { port, dataDir }, execArgv: [] };
  const thread = new Worker(new URL("queue-engine-thread.ts", import.meta.url), options);
  let failure: NodeJS.ErrnoException | undefined;
  thread.on("error", (error) => {
    failure = error;
  });
  // `once` of node:events would reject as soon as the thread fails.
  const ended = new Promise<undefined>((resolve) => thread.once("exit", () => resolve(undefined)));
  const started = new Promise<string>((resolve) => thread.once("message", resolve));
  const endpoint = await Promise.race([started, ended]);
  if (endpoint === undefined) {
    if (failure?.code === "EADDRINUSE") throw new StartError(portInUse("SQS_PORT", port));
    throw new StartError(`The embedded SQS engine did not start: ${failure?.message ?? "it ended"}.`, {
      cause: failure,
    });
  }
  let isStopping = false;
  void ended.then(() => {
    if (failure) console.error("The embedded SQS engine failed:", failure);
    if (!isStopping) onExit();
  });
  const stop = async () => {
    isStopping = true;
    thread.postMessage("stop");
    await ended;
  };
  return { endpoint, stop };
}

type QueuedMessages = NonNullable<ReturnType<FauxqsServer["inspectQueue"]>>["messages"];

/** Returns the messages of a queue of the embedded SQS engine, without receiving them. */
export async function messagesOf({ endpoint }: Pick<Engine, "endpoint">, queue: string): Promise<QueuedMessages> {
  const [response]: http.IncomingMessage[] = await once(http.get(`${endpoint}/_fauxqs/queues/${queue}`), "response");
  const { messages } = (await json(response as http.IncomingMessage)) as { messages: QueuedMessages };
  return messages;
}

/** @param setting the environment variable that holds the port */
export const portInUse = (setting: string, port: number): string =>
  `Port ${port} is in use by another program. Stop that program, or choose another port with ${setting}.`;

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1" });
    socket.once("connect", () => socket.destroy() && resolve(true));
    socket.once("error", () => resolve(false));
  });
}
