import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type FauxqsServer, startFauxqs } from "fauxqs";
import { StartError } from "./start-error.ts";

/** An engine on this machine that speaks the wire protocol of an AWS service. */
export interface Engine {
  endpoint: string;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 10_000;

/**
 * Starts DynamoDB: the `dynoxide` binary over one SQLite file, on a free port of 127.0.0.1.
 * @param dataDir folder of the data; undefined = in memory
 * @param onExit called when the engine ends on its own
 * @throws StartError when this platform has no engine, or the engine does not start
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
      throw new StartError(
        `The embedded DynamoDB engine did not start. Check that ${dataDir ?? "its binary"} can be used, and start again.`,
      );
    }
    await sleep(5);
  }
  return { endpoint: `http://127.0.0.1:${port}`, stop };
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
 * Starts SQS: `fauxqs` in this process, stored in SQLite. fauxqs listens on all interfaces whatever host it is given, so its
 * call to `listen` gets the loopback address while it starts.
 * @param port 0 = any free port
 * @param dataDir folder of the messages; undefined = in memory
 * @throws StartError when the port is in use
 */
export async function startSqs(port: number, dataDir: string | undefined): Promise<Engine & { server: FauxqsServer }> {
  if (port !== 0 && (await isListening(port))) throw new StartError(portInUse("SQS_PORT", port));
  await acceptAllCharacters();
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
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") throw new StartError(portInUse("SQS_PORT", port));
    throw error;
  } finally {
    net.Server.prototype.listen = listen;
  }
}

/**
 * Makes fauxqs accept characters beyond U+FFFF, such as emoji, as SQS does: its pattern (2.4.1) lacks the Unicode flag.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 */
async function acceptAllCharacters(): Promise<void> {
  const types: { INVALID_MESSAGE_BODY_CHAR: RegExp } = await import(
    new URL("sqs/sqsTypes.js", import.meta.resolve("fauxqs")).href
  );
  const allowed = "\\t\\n\\r\\u{20}-\\u{d7ff}\\u{e000}-\\u{fffd}\\u{10000}-\\u{10ffff}";
  types.INVALID_MESSAGE_BODY_CHAR.compile(`[^${allowed}]`, "u");
}

/** @param setting the environment variable that holds the port */
export const portInUse = (setting: string, port: number): string =>
  `Port ${port} is in use by another program. Stop that program, or choose another port with ${setting}.`;

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
