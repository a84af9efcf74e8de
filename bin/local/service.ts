import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import type http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ChangeMessageVisibilityCommand } from "@aws-sdk/client-sqs";
import type { FauxqsServer } from "fauxqs";
import { queues } from "../../functions/manifest/queues.ts";
import { dynamo, sqs } from "../../functions/platform/aws.ts";
import { consolePages } from "./console.ts";
import { type Engine, portTaken, StartError, startDynamo, startSqs } from "./engines.ts";
import { type EventSources, startEventSources } from "./event-sources.ts";
import { createGateway } from "./gateway.ts";
import { fromSources, type LoadHandler } from "./lambda.ts";
import { createQueues, createTables } from "./resources.ts";
import { type LocalSettings, setFunctionDefaults } from "./settings.ts";

export interface RunningService {
  baseUrl: string;
  eventsQueueUrl: string;
  stop(): Promise<void>;
}

/** How other commands find the engines of a running service: a file in its data directory, removed when it stops. */
export interface RunningServiceInfo {
  pid: number;
  baseUrl: string;
  dynamoEndpoint: string;
  sqsEndpoint: string;
}

const serviceInfoPath = (dataDir: string) => join(dataDir, "running.json");

/** Where the service over this data directory runs, or undefined when none answers. */
export async function findRunning(dataDir: string): Promise<RunningServiceInfo | undefined> {
  let whereabouts: RunningServiceInfo;
  try {
    whereabouts = JSON.parse(readFileSync(serviceInfoPath(dataDir), "utf8"));
  } catch {
    return undefined;
  }
  // After a kill -9 the file is still there, and another service may answer at that address.
  const isAlive = isProcess(whereabouts.pid) && (await isAnswering(whereabouts.baseUrl));
  return isAlive ? whereabouts : undefined;
}

function isProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Not ours to signal, but there.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function isAnswering(baseUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${baseUrl}/v1/projects`, { signal: AbortSignal.timeout(2_000) })).status === 401;
  } catch {
    return false;
  }
}

const SWEEP_EVERY_SECONDS = 5;

interface Options {
  /** Called when an engine ends on its own. */
  onEngineExit?: () => void;
  load?: LoadHandler;
}

/**
 * Starts engines, tables, queues, gateway and event sources in this process.
 * @throws StartError for what the person at the keyboard has to mend
 */
export async function startService(settings: LocalSettings, options: Options = {}): Promise<RunningService> {
  const { dataDir } = settings;
  const running = await findRunning(dataDir);
  if (running) {
    throw new StartError(`The service at ${running.baseUrl} uses ${dataDir}. Stop it, or set another DATA_DIR.`);
  }
  setFunctionDefaults(settings);
  const load = options.load ?? fromSources;
  // The gateway comes first: a port that is taken is found out before anything is touched.
  const server = await createGateway(load, consolePages());
  const baseUrl = await listen(server, settings.port);
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    // It goes first too: requests in work still find their engines.
    await close(server);
    for (const undo of stops.splice(0).reverse()) await undo();
  };
  try {
    const dynamoEngine = await dynamoFor(settings, options.onEngineExit ?? (() => {}));
    stops.push(dynamoEngine.stop);
    process.env.AWS_ENDPOINT_URL_DYNAMODB = dynamoEngine.endpoint;
    Object.assign(process.env, await reach("DynamoDB", dynamoEngine, () => createTables(dynamo())));

    const sqsEngine = await sqsFor(settings);
    stops.push(sqsEngine.stop);
    process.env.AWS_ENDPOINT_URL_SQS = sqsEngine.endpoint;
    const { urlOf } = sqsEngine;
    Object.assign(process.env, await reach("SQS", sqsEngine, () => createQueues(sqs(), { ...(urlOf && { urlOf }) })));
    await sqsEngine.releaseInFlight?.();

    const eventSources: EventSources = await startEventSources(sqs(), load, SWEEP_EVERY_SECONDS);
    stops.push(() => eventSources.stop());

    const whereabouts: RunningServiceInfo = {
      pid: process.pid,
      baseUrl,
      dynamoEndpoint: dynamoEngine.endpoint,
      sqsEndpoint: sqsEngine.endpoint,
    };
    writeFileSync(serviceInfoPath(dataDir), JSON.stringify(whereabouts, null, 2));
    stops.push(async () => rmSync(serviceInfoPath(dataDir), { force: true }));
    return { baseUrl, eventsQueueUrl: process.env[queues.events.env] ?? "", stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** @throws StartError when the engine, which may be somebody else's, does not do what it is asked */
async function reach<Result>(name: string, { endpoint }: Engine, ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    const { message, name: kind } = error as Error;
    throw new StartError(`The ${name} engine at ${endpoint} cannot be used: ${message || kind}`, { cause: error });
  }
}

async function dynamoFor({ dynamoEndpoint, dataDir }: LocalSettings, onExit: () => void): Promise<Engine> {
  if (dynamoEndpoint === undefined) return startDynamo(dataDir, onExit);
  return { endpoint: dynamoEndpoint, stop: async () => {} };
}

interface QueueEngine extends Engine {
  urlOf?: (name: string) => string;
  releaseInFlight?: () => Promise<void>;
}

async function sqsFor({ sqsEndpoint, sqsPort, dataDir }: LocalSettings): Promise<QueueEngine> {
  if (sqsEndpoint !== undefined) return { endpoint: sqsEndpoint, stop: async () => {} };
  const { endpoint, server, stop } = await startSqs(sqsPort, dataDir);
  const urlOf = (name: string) => `${endpoint}/000000000000/${name}`;
  return { endpoint, stop, urlOf, releaseInFlight: () => releaseInFlight(server, urlOf) };
}

/**
 * Messages that were being worked on when the process was killed would stay hidden for minutes. Their worker was that
 * process: they can come back now. (In one second, that is: fauxqs 2.4.1 cannot persist a timeout of 0.)
 */
async function releaseInFlight(server: FauxqsServer, urlOf: (name: string) => string): Promise<void> {
  for (const { name } of Object.values(queues)) {
    for (const { receiptHandle } of server.inspectQueue(name)?.messages.inflight ?? []) {
      const message = { QueueUrl: urlOf(name), ReceiptHandle: receiptHandle, VisibilityTimeout: 1 };
      await sqs().send(new ChangeMessageVisibilityCommand(message));
    }
  }
}

/** A service that was just killed may hold its port for a moment longer. */
const PORT_PATIENCE_MS = 2_000;

async function listen(server: http.Server, port: number): Promise<string> {
  const startedAt = Date.now();
  for (;;) {
    try {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      if (Date.now() - startedAt > PORT_PATIENCE_MS) throw new StartError(portTaken("PORT", port));
      await sleep(100);
    }
  }
}

const CLOSE_PATIENCE_MS = 2_000;

/** Stops taking connections and waits for the requests in work, but not for clients that hold one and say nothing. */
async function close(server: http.Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_PATIENCE_MS);
  await closed;
  clearTimeout(timer);
}
