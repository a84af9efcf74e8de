import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type FauxqsServer, startFauxqs } from "fauxqs";

/** An engine that speaks the wire protocol of an AWS service on this machine. */
export interface Engine {
  endpoint: string;
  stop(): Promise<void>;
}

/** Something that the person at the keyboard has to mend. The message says what. */
export class StartError extends Error {
  override readonly name = "StartError";
}

const START_TIMEOUT_MS = 10_000;

/**
 * DynamoDB: the `dynoxide` binary over one SQLite file, on a free port of 127.0.0.1.
 * @param dataDir where the data is kept; undefined = in memory
 * @param onExit called when the engine ends on its own
 */
export async function startDynamo(dataDir: string | undefined, onExit: () => void): Promise<Engine> {
  const binary = dynoxidePath();
  const port = await freePort();
  const data = dataDir === undefined ? [] : ["--db-path", join(dataDir, "dynamodb.sqlite")];
  const child = spawnTied(binary, ["serve", "--host", "127.0.0.1", "--port", String(port), ...data]);
  let isStopping = false;
  child.on("exit", () => isStopping || onExit());
  const stop = async () => {
    isStopping = true;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.stdin?.end();
    await ended;
  };
  const startedAt = Date.now();
  while (!(await isListening(port))) {
    if (child.exitCode !== null || Date.now() - startedAt > START_TIMEOUT_MS) {
      await stop();
      throw new StartError("The embedded DynamoDB engine did not start. Is the data directory writable?");
    }
    await sleep(5);
  }
  return { endpoint: `http://127.0.0.1:${port}`, stop };
}

function dynoxidePath(): string {
  const name = `@dynoxide/${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`${name}/dynoxide`);
  } catch {
    throw new StartError(
      `There is no embedded DynamoDB engine for this platform (${name} is not installed). ` +
        "Start DynamoDB Local or LocalStack and set AWS_ENDPOINT_URL_DYNAMODB to its address.",
    );
  }
}

/**
 * Starts a program that ends when this process does, however this process ends: a shell waits for the other end of its
 * standard input to close, which the system sees to even after kill -9. In a session of its own, so that Ctrl-C reaches only
 * us and the engine is there until we have finished.
 */
function spawnTied(binary: string, args: string[]): ChildProcess {
  const script = 'exec 3<&0; "$@" & engine=$!; (cat <&3; kill "$engine" 2>/dev/null) & wait "$engine"';
  const child = spawn("/bin/sh", ["-c", script, "engine", binary, ...args], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  child.once("exit", () => child.stdin?.end());
  return child;
}

/**
 * SQS: `fauxqs` in this process, kept in SQLite. It would listen on all interfaces whatever host it is given, so the host is
 * put in its hand while it starts.
 * @param dataDir where messages are kept; undefined = in memory
 */
export async function startSqs(port: number, dataDir: string | undefined): Promise<Engine & { server: FauxqsServer }> {
  if (port !== 0 && (await isListening(port))) throw new StartError(portTaken("SQS_PORT", port));
  await takeAllCharacters();
  const { listen } = net.Server.prototype;
  net.Server.prototype.listen = function (this: net.Server, ...args: unknown[]) {
    const [options, ...rest] = args;
    const isOptions = typeof options === "object" && options !== null && "port" in options;
    return Reflect.apply(listen, this, isOptions ? [{ ...options, host: "127.0.0.1" }, ...rest] : args);
  };
  try {
    const server = await startFauxqs({
      port,
      logger: false,
      ...(dataDir !== undefined && { dataDir: join(dataDir, "sqs") }),
    });
    return { endpoint: `http://127.0.0.1:${server.port}`, server, stop: () => server.stop() };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") throw new StartError(portTaken("SQS_PORT", port));
    throw error;
  } finally {
    net.Server.prototype.listen = listen;
  }
}

/**
 * fauxqs 2.4.1 refuses characters beyond U+FFFF, an emoji for one, which SQS takes: its pattern lacks the flag for Unicode.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 */
async function takeAllCharacters(): Promise<void> {
  const types: { INVALID_MESSAGE_BODY_CHAR: RegExp } = await import(
    new URL("sqs/sqsTypes.js", import.meta.resolve("fauxqs")).href
  );
  const allowed = "\\t\\n\\r\\u{20}-\\u{d7ff}\\u{e000}-\\u{fffd}\\u{10000}-\\u{10ffff}";
  types.INVALID_MESSAGE_BODY_CHAR.compile(`[^${allowed}]`, "u");
}

export const portTaken = (setting: string, port: number): string =>
  `Port ${port} is taken by another program. Stop it, or choose another port with ${setting}.`;

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as net.AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1" });
    socket.once("connect", () => socket.destroy() && resolve(true));
    socket.once("error", () => resolve(false));
  });
}
