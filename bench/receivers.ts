import { join } from "node:path";
import { startDynamo } from "../bin/emulator/engines.ts";
import { type Endable, startChild } from "./child.ts";

export interface Arrival {
  /** When the headers of the request had arrived, in milliseconds since 1970. */
  at: number;
  path: string;
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

/** The first message of serve.ts. */
export interface Served {
  origin: string;
  sqsEndpoint: string | undefined;
}

export interface Receivers extends Endable, Served {
  /**
   * Returns the requests since the last call.
   * @param secrets secrets by path; signatures of these paths are verified from now on
   */
  take(secrets?: Record<string, string>): Promise<Received>;
}

/** Returns milliseconds since 1970 with fractions, comparable between processes of one machine. */
export const clock = (): number => performance.timeOrigin + performance.now();

/** Starts receivers, and a queue engine with `sqs`, in one process. */
export async function startReceivers(...engines: "sqs"[]): Promise<Receivers> {
  const { ready, request, end } = await startChild<Served>(join(import.meta.dirname, "serve.ts"), { args: engines });
  return { ...ready, take: (secrets = {}) => request({ secrets }), end };
}

/**
 * Starts the embedded engines and receivers, in memory and in processes of their own, and points the environment at the engines.
 */
export async function startEngines(): Promise<Receivers> {
  const receivers = await startReceivers("sqs");
  const dynamo = await startDynamo(undefined, () => {
    throw new Error("The DynamoDB engine exited");
  });
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_DYNAMODB: dynamo.endpoint,
    AWS_ENDPOINT_URL_SQS: receivers.sqsEndpoint,
    AWS_ENDPOINT_URL_SNS: receivers.sqsEndpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "bench",
    AWS_SECRET_ACCESS_KEY: "bench",
    // Allows receivers on this machine, with plain http.
    WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8,::1/128",
  });
  const end = async () => {
    await receivers.end();
    await dynamo.stop();
  };
  return { ...receivers, end };
}
