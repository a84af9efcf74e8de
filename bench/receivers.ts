import { join } from "node:path";
import { startChild } from "./child.ts";

export interface Arrival {
  /** When the headers of the request had arrived, in milliseconds since 1970. */
  at: number;
  path: string;
  /** The `webhook-id` header. */
  id: string;
  /** The deployment id in the body. */
  event: string;
}

export interface Received {
  arrivals: Arrival[];
  /** The number of valid signatures. */
  verified: number;
  /** Messages about invalid signatures. */
  invalid: string[];
}

export interface Receivers {
  /** One origin per host. The first word of the path selects the response: see receivers/serve.ts. */
  origins: string[];
  /**
   * Returns the requests since the last call.
   * @param secrets secrets by path; signatures of these paths are verified from now on
   */
  take(secrets?: Record<string, string>): Promise<Received>;
  end(): Promise<void>;
}

/** Returns milliseconds since 1970 with fractions, comparable between processes of one machine. */
export const clock = (): number => performance.timeOrigin + performance.now();

/** Starts receivers on `count` loopback addresses, in one process. */
export async function startReceivers(count: number): Promise<Receivers> {
  const hosts = Array.from({ length: count }, (_, index) => `127.0.0.${index + 1}`);
  const { ready, request, end } = await startChild<number>(join(import.meta.dirname, "receivers", "serve.ts"), {
    args: [hosts.join(",")],
  });
  return {
    origins: hosts.map((host) => `http://${host}:${ready}`),
    take: (secrets = {}) => request({ secrets }),
    end,
  };
}
