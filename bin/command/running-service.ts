import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/*
 * How the other programs find the engines of a running service: a file in its data directory, removed when it stops.
 */

/** Where a running service and its engines listen. */
export interface RunningServiceInfo {
  pid: number;
  baseUrl: string;
  dynamoEndpoint: string;
  sqsEndpoint: string;
  /** Whether its webhooks may call a receiver on this machine, as the demo requires. */
  allowsLocalReceivers: boolean;
  /** Its setting EVENTS; absent = none. */
  events?: string | undefined;
}

const infoPath = (dataDir: string) => join(dataDir, "running.json");

/** Announces the service of this process. */
export function publishRunning(dataDir: string, info: RunningServiceInfo): void {
  writeFileSync(infoPath(dataDir), JSON.stringify(info, null, 2));
}

export function unpublishRunning(dataDir: string): void {
  rmSync(infoPath(dataDir), { force: true });
}

/** Returns where the service that uses this data directory listens, or undefined when none responds. */
export async function findRunning(dataDir: string): Promise<RunningServiceInfo | undefined> {
  let info: RunningServiceInfo;
  try {
    info = JSON.parse(readFileSync(infoPath(dataDir), "utf8"));
  } catch {
    return undefined;
  }
  // After a kill -9 the file is still there, and another service may respond at that address.
  const isAlive = isProcess(info.pid) && (await isResponding(info.baseUrl));
  return isAlive ? info : undefined;
}

function isProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process exists but belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function isResponding(baseUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${baseUrl}/v1/projects`, { signal: AbortSignal.timeout(2_000) })).status === 401;
  } catch {
    return false;
  }
}
