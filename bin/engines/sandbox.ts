import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "./engine.ts";

/* An execution environment of Lambda: AWS's Runtime Interface Emulator, which runs a bundle in AWS's runtime for Node. */

/**
 * Creates control groups with this memory and its share of a processor.
 * @returns their folders; none = not possible here
 */
function createGroups(name: string, memoryMb: number): string[] {
  // One processor for each 1,769 MB: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
  const cpuUs = String(Math.round((memoryMb / 1_769) * 100_000));
  const root = "/sys/fs/cgroup";
  const limits = existsSync(`${root}/cgroup.controllers`)
    ? { [`${name}/cpu.max`]: cpuUs, [`${name}/memory.max`]: `${memoryMb}M` }
    : { [`cpu/${name}/cpu.cfs_quota_us`]: cpuUs, [`memory/${name}/memory.limit_in_bytes`]: `${memoryMb}M` };
  const folders = [...new Set(Object.keys(limits).map((file) => dirname(join(root, file))))];
  try {
    for (const folder of folders) mkdirSync(folder);
    for (const [file, limit] of Object.entries(limits)) writeFileSync(join(root, file), limit);
    return folders;
  } catch {
    return [];
  }
}

let nextPort = 8_700;

export type Sandbox = ReturnType<typeof startSandbox>;

/**
 * Starts an environment, which loads the bundle at the first invocation. Defaults are those of an endpoint in
 * lib/api.ts.
 */
export function startSandbox(
  { id, timeoutSeconds = 10, memoryMb = 512 }: { id: string; timeoutSeconds?: number; memoryMb?: number },
  bundles: string,
  env: NodeJS.ProcessEnv,
) {
  const port = nextPort;
  nextPort += 2;
  const groups = createGroups(`engines-${port}`, memoryMb);
  const pidFile = join(bundles, `${port}.pid`);
  const joined = [pidFile, ...groups.map((folder) => `${folder}/cgroup.procs`)];
  const script = `${joined.map((file) => `echo $$ > ${file}; `).join("")}exec "$0" "$@"`;
  const program = ["/bin/sh", "-c", script, "aws-lambda-ric", "index.handler"];
  const addresses = `--runtime-interface-emulator-address 127.0.0.1:${port} --runtime-api-address 127.0.0.1:${port + 1}`;
  const child = spawn("aws-lambda-rie", [...addresses.split(" "), ...program], {
    cwd: join(bundles, id),
    env: {
      ...env,
      // The runtime runs on the Node of this process.
      PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
      STAGE: "engines",
      LAMBDA_TASK_ROOT: join(bundles, id),
      AWS_LAMBDA_FUNCTION_NAME: id,
      AWS_LAMBDA_FUNCTION_TIMEOUT: String(timeoutSeconds),
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(memoryMb),
      AWS_LAMBDA_LOG_FORMAT: "JSON",
    },
  });
  const ended = once(child, "exit");
  const kill = () => {
    // The runtime first: without the emulator it would log an error.
    signal("SIGKILL");
    child.kill("SIGKILL");
  };
  process.once("exit", kill);
  /** `invokedAt`: when the current invocation began, after the load; 0 = none runs. */
  const sandbox = { id, groups, output: "", frozenMs: [] as number[], frozenAt: 0, invokedAt: 0, signal, invoke, end };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text: Buffer) => {
      sandbox.output += text;
      if (text.includes("START RequestId")) sandbox.invokedAt = Date.now();
    });
  }

  /** Sends a signal to the runtime. @returns false when it has crashed: the emulator starts it again */
  function signal(kind: NodeJS.Signals): boolean {
    try {
      return process.kill(Number(readFileSync(pidFile, "utf8")), kind);
    } catch {
      return false;
    }
  }

  /** Thaws the process, invokes the function, and freezes it again, as Lambda does. @throws Error of the function */
  async function invoke(event: unknown): Promise<unknown> {
    if (sandbox.frozenAt > 0) sandbox.frozenMs.push(Date.now() - sandbox.frozenAt);
    signal("SIGCONT");
    const url = `http://127.0.0.1:${port}/2015-03-31/functions/function/invocations`;
    const post = () => fetch(url, { method: "POST", body: JSON.stringify(event) });
    // The emulator may not listen yet.
    const response = await post().catch(() => sleep(1_000).then(post));
    const text = await response.text();
    signal("SIGSTOP");
    Object.assign(sandbox, { frozenAt: Date.now(), invokedAt: 0 });
    if (!response.ok || /^Task timed out|"errorType"/.test(text)) throw new Error(text.slice(0, 200));
    return JSON.parse(text || "null");
  }

  async function end(): Promise<void> {
    kill();
    await ended;
    process.removeListener("exit", kill);
    for (const folder of groups) {
      await until("end of the runtime", 5, () => readFileSync(`${folder}/cgroup.procs`, "utf8") === "");
      rmdirSync(folder);
    }
  }
  return sandbox;
}
