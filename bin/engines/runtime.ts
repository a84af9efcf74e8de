import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { functionRow, functionRows } from "../../functions/foundation/manifest/function-rows.ts";
import { bundleFunctions } from "../build/bundle-functions.ts";
import { StartError } from "../command/start-error.ts";
import { fromSources, type LoadHandler } from "../emulator/lambda.ts";
import { type Engine, until } from "./engine.ts";
import { type Counts, deliver, engine as receivers, requireExact } from "./receivers.ts";
import { type Sandbox, startSandbox } from "./sandbox.ts";

/** The runtime has a part in C++. */
const INSTALL = [
  `${receivers.install} golang-go cmake g++ autoconf automake libtool`,
  "go install github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d",
  "npm install --global aws-lambda-ric@4.0.2",
];

export const engine: Engine = {
  summary: "the bundles in Lambda's runtime: lines, crashes, and 1,000 deliveries with freezes of up to ten minutes",
  programs: ["aws-lambda-rie", "aws-lambda-ric", ...receivers.programs],
  install: INSTALL.join("; "),
  async run() {
    const bundles = await bundled();
    await load(bundles);
    await crash(bundles);
    requireExact(await deliverFrozen(600, bundles), 10);
  },
};

/** Returns a folder with the bundles of all functions, which this process deletes at its end. */
async function bundled(): Promise<string> {
  const bundles = mkdtempSync(join(tmpdir(), "engines-bundles-"));
  process.once("exit", () => rmSync(bundles, { recursive: true, force: true }));
  await bundleFunctions({ outdir: bundles });
  return bundles;
}

/** Counts the log lines by level. Lambda writes those of the emulator as JSON too. */
function linesOf(sandboxes: readonly Sandbox[]): string {
  const lines = sandboxes.flatMap(({ output }) => output.split("\n"));
  const own = lines.filter((line) => !/^$|^(START|END|REPORT) RequestId: |\[\w+\] \(rapid\)|^\S+ INIT /.test(line));
  const kinds = Map.groupBy(own, (line) => {
    if (!line.startsWith("{")) return "not JSON";
    const { level, _aws } = JSON.parse(line);
    return _aws ? `${level} with metrics` : level;
  });
  return `log lines: ${[...kinds].map(([kind, { length }]) => `${length} ${kind}`).join(", ")}`;
}

/** Loads each bundle with the memory and the processor of its row, and sends it an event that most reject. */
async function load(bundles: string): Promise<void> {
  const sandboxes: Sandbox[] = [];
  const tookMs: number[] = [];
  for (const row of functionRows) {
    const sandbox = startSandbox(row, bundles, { AWS_REGION: "us-east-1" });
    await sandbox.invoke({}).catch(() => {});
    await sandbox.end();
    sandboxes.push(sandbox);
    const [, ms] = /INIT RTDONE\(status: success\)[\s\S]*INIT REPORT\(durationMs: ([\d.]+)/.exec(sandbox.output) ?? [];
    if (ms === undefined) throw new StartError(`${row.id} does not load: ${sandbox.output}`);
    tookMs.push(Math.round(Number(ms)));
  }
  tookMs.sort((one, other) => one - other);
  const limits = sandboxes[0]?.groups.length
    ? "the limits of their rows"
    : "no limits: there are no control groups here";
  console.log(
    `${tookMs.length} bundles load in ${tookMs[0]} to ${tookMs.at(-1)} ms, with ${limits}. ${linesOf(sandboxes)}`,
  );
}

const crashes = ["unhandled rejection", "response of 7 MB", "timeout"];
const probe = `exports.handler = async (kind) => {
  if (kind === "${crashes[0]}") Promise.reject(new Error(kind));
  if (kind === "${crashes[1]}") return "x".repeat(7_000_000);
  if (kind !== "none") await new Promise((resolve) => setTimeout(resolve, 30_000));
};`;

/** Lets a function crash. @throws StartError unless each crash is an error, and the next invocation succeeds */
async function crash(bundles: string): Promise<void> {
  mkdirSync(join(bundles, "probe"));
  writeFileSync(join(bundles, "probe/index.js"), probe);
  const sandbox = startSandbox({ id: "probe", timeoutSeconds: 5 }, bundles, {});
  for (const kind of crashes) {
    const error = await sandbox.invoke(kind).then(() => undefined, String);
    if (error === undefined) throw new StartError(`No error: ${kind}`);
    console.log(`${kind}: ${error}`);
    await sandbox.invoke("none");
  }
  await sandbox.end();
  console.log(linesOf([sandbox]));
}

const IN_LAMBDA = ["deliveries-fan-out", "attempts-send", "attempts-send-slow"];
const MAX_PAUSE_MS = 8_000;
/** After this time, an invocation of the slow sender waits for the slow receiver. */
const BUSY_MS = 3_000;

/**
 * Delivers with the bundles of fan-out and senders, frozen between invocations. One sender stops, and runs out of time.
 * @param longestSeconds the longest freeze
 * @param inFolder the bundles; absent = they are created
 * @throws StartError when a delivery is lost
 */
export async function deliverFrozen(longestSeconds: number, inFolder?: string): Promise<Counts> {
  const bundles = inFolder ?? (await bundled());
  const sandboxes: Sandbox[] = [];
  const inLambda: LoadHandler = async (id) => {
    if (!IN_LAMBDA.includes(id)) return fromSources(id);
    const idle: Sandbox[] = [];
    return async (event) => {
      const sandbox = idle.pop() ?? startSandbox(functionRow(id), bundles, process.env);
      if (!sandboxes.includes(sandbox)) sandboxes.push(sandbox);
      const logged = sandbox.invoke(event).catch((error) => {
        console.log(`${id}: ${error}`);
        throw error;
      });
      return logged.finally(() => idle.push(sandbox));
    };
  };
  const isBusy = ({ id, invokedAt }: Sandbox) =>
    id === "attempts-send-slow" && invokedAt > 0 && Date.now() - invokedAt > BUSY_MS;
  const stopSender = () => sandboxes.find(isBusy)?.signal("SIGSTOP") ?? false;
  const afterBatch = async (batch: number) => {
    if (batch === 2) await until("busy sender", 60, stopSender);
    await sleep(batch === 22 ? longestSeconds * 1_000 : Math.random() * MAX_PAUSE_MS);
  };
  try {
    return await deliver({ batches: 23, size: 5 }, afterBatch, inLambda);
  } finally {
    await Promise.allSettled(sandboxes.map((sandbox) => sandbox.end()));
    const seconds = sandboxes.flatMap(({ frozenMs }) => frozenMs.map((ms) => Math.round(ms / 1_000)));
    const long = seconds.filter((each) => each > 0);
    console.log(
      `${seconds.length} freezes in ${sandboxes.length} environments: ${long.length} of 1 to ${Math.max(0, ...long)} s`,
    );
    console.log(linesOf(sandboxes));
  }
}
