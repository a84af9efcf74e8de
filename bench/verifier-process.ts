import { setTimeout as sleep } from "node:timers/promises";
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { Verifier } from "../packages/verifier/src/index.ts";
import { percentile } from "./harness.ts";
import { functions } from "./revoked-everywhere.ts";

/* A process of revoked-everywhere.ts: a service of the platform that verifies credentials all the time, with a cache of its own. */

export interface Credential {
  id: string;
  token: string;
  projectId: string;
}

export type Message = { use: Credential[] } | { cut: string[] } | "report";

/** The use of a result. Times are those of `Date.now()`. */
export interface Use {
  id: string;
  /** When the call began that returned the result. */
  askedAt: number;
  /** When the last verification began that accepted the credential with this result. */
  lastAt: number;
}

export interface Report {
  uses: Use[];
  verifications: number;
  /** Verifications that were answered by the cache, and their time in microseconds. */
  hits: number;
  hitMicros: number;
  /** Verifications that were an error. */
  unavailable: number;
  /** Calls of the two functions. */
  calls: number;
  reads: number;
}

const [endpoint = "", staleSeconds = ""] = process.argv.slice(2);
/** So that the processes and the service share the CPU. */
const BURST = 20;
const PAUSE_MS = 5;

const lambda = new LambdaClient({
  endpoint,
  region: "local",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
});
const cut = new Set<string>();
const askedAt = new Map<string, number>();
const uses = new Map<string, Use>();
const hitTimes: number[] = [];
const counted = { verifications: 0, unavailable: 0, calls: 0, reads: 0 };

const verifier = new Verifier({
  ...functions,
  maxStaleSeconds: Number(staleSeconds),
  async invoke(FunctionName, Payload, abortSignal) {
    if (cut.has(FunctionName)) throw new Error("The connection is cut.");
    const begunAt = Date.now();
    const response = await lambda.send(new InvokeCommand({ FunctionName, Payload }), { abortSignal });
    if (FunctionName === functions.verifyFunction) {
      counted.calls += 1;
      askedAt.set(JSON.parse(Payload).credentials[0].token, begunAt);
    } else counted.reads += 1;
    return response;
  },
});

/** Verifies a credential, and notes with which result it was accepted. */
async function use({ id, token, projectId }: Credential): Promise<void> {
  const asked = askedAt.get(token);
  const begunAt = Date.now();
  const begun = performance.now();
  counted.verifications += 1;
  const result = await verifier.verify(token, { projectId }).catch(() => undefined);
  const micros = (performance.now() - begun) * 1000;
  if (result === undefined) counted.unavailable += 1;
  if (!result?.valid) return;
  const answered = askedAt.get(token) ?? Number.NaN;
  if (answered === asked) hitTimes.push(micros);
  uses.set(`${id} ${answered}`, { id, askedAt: answered, lastAt: begunAt });
}

async function useAll(credentials: Credential[]): Promise<never> {
  for (let count = 1; ; count++) {
    const credential = credentials[Math.floor(Math.random() * credentials.length)];
    if (credential) await use(credential);
    if (count % BURST === 0) await sleep(PAUSE_MS);
  }
}

process.on("message", async (message: Message) => {
  if (message === "report") {
    const report: Report = {
      ...counted,
      uses: [...uses.values()],
      hits: hitTimes.length,
      hitMicros: percentile(50, hitTimes),
    };
    process.send?.(report);
  } else if ("cut" in message) {
    for (const name of message.cut) cut.add(name);
    process.send?.(true);
  } else {
    // The first result may not be cached, because the first read of the feed ended during its call.
    for (const credential of [...message.use, ...message.use]) await use(credential);
    process.send?.(true);
    void useAll(message.use);
  }
});
process.on("disconnect", () => process.exit());
process.send?.(true);
