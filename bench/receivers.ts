import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export interface Arrival {
  /** When the head of the request was here, in milliseconds since 1970. */
  at: number;
  path: string;
  /** `webhook-id`. */
  id: string;
  /** The deployment that the body tells of. */
  event: string;
}

export interface Taken {
  arrivals: Arrival[];
  /** How many of them had signatures that hold. */
  verified: number;
  /** Why signatures did not hold. */
  refused: string[];
}

export interface Receivers {
  /** One origin per host. Which answer a receiver gives is the first word of the path: see receivers/serve.ts. */
  origins: string[];
  /**
   * What has come since the last time.
   * @param secrets by path: whose signatures are verified from now on
   */
  take(secrets?: Record<string, string>): Promise<Taken>;
  end(): Promise<void>;
}

/** Milliseconds since 1970, in fractions: comparable between the processes of one machine. */
export const clock = (): number => performance.timeOrigin + performance.now();

/** Starts receivers on so many addresses of this machine. */
export async function startReceivers(count: number): Promise<Receivers> {
  const hosts = Array.from({ length: count }, (_, index) => `127.0.0.${index + 1}`);
  const child = fork(join(import.meta.dirname, "receivers", "serve.ts"), [hosts.join(",")], { execArgv: [] });
  const ended = once(child, "exit");
  const answer = async () => {
    const signal = AbortSignal.timeout(10_000);
    return (await Promise.race([once(child, "message", { signal }), failed(ended)]))[0];
  };
  const port: number = await answer();
  return {
    origins: hosts.map((host) => `http://${host}:${port}`),
    take(secrets = {}) {
      child.send({ secrets });
      return answer();
    },
    async end() {
      child.disconnect();
      await ended;
    },
  };
}

async function failed(ended: Promise<unknown[]>): Promise<never> {
  throw new Error(`The receivers have ended with ${(await ended)[0]}.`);
}
