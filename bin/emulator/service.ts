import { once } from "node:events";
import type http from "node:http";
import type { AddressInfo } from "node:net";
import { ChangeMessageVisibilityCommand, SQSClient } from "@aws-sdk/client-sqs";
import { queues } from "../../functions/foundation/manifest/queues.ts";
import { dynamo, sns, sqs, withoutUnused } from "../../functions/foundation/platform/aws.ts";
import { settings as functionSettings } from "../../functions/foundation/platform/env.ts";
import { SettingError } from "../../functions/foundation/platform/errors.ts";
import { allEnded } from "../../functions/foundation/platform/parallel.ts";
import { findRunning, publishRunning, unpublishRunning } from "../command/running-service.ts";
import { allowsLocalReceivers, type LocalSettings, protectFiles, setFunctionDefaults } from "../command/settings.ts";
import { StartError } from "../command/start-error.ts";
import { consolePages } from "./console.ts";
import { type Engine, messagesOf, portInUse, startDynamo, startSqs } from "./engines.ts";
import { type EventSources, startEventSources } from "./event-sources.ts";
import { createGateway } from "./gateway.ts";
import { fromSources, type LoadHandler } from "./lambda.ts";
import { releaseLeases } from "./release-leases.ts";
import { createQueues, createTables, createTopics } from "./resources.ts";

export interface RunningService {
  baseUrl: string;
  eventsQueueUrl: string;
  stop(): Promise<void>;
}

/**
 * Longer than a busy machine delays a response: the messages of a poll whose response is lost stay hidden for minutes.
 */
const POLL_TIMEOUTS = { connectionTimeout: 10_000, requestTimeout: 60_000, throwOnRequestTimeout: true };

/** On AWS the sweep runs every minute. */
const SWEEP_EVERY_SECONDS = 5;

interface Options {
  /** Called when an engine ends on its own. */
  onEngineExit?: () => void;
  load?: LoadHandler;
}

/** Checks the schemas of EVENTS, with a library that most starts do not load. @throws SettingError */
async function checkEvents(): Promise<void> {
  const text = functionSettings.events();
  if (text === undefined) return;
  const { eventsProblem } = await import("../../lib/event-schemas.ts");
  const problem = eventsProblem(JSON.parse(text));
  if (problem !== undefined) throw new SettingError(`EVENTS cannot be used. ${problem}`);
}

/**
 * Starts engines, tables, queues, gateway and event sources in this process.
 * @throws StartError, SettingError for a condition that the operator has to fix
 */
export async function startService(
  settings: LocalSettings,
  { onEngineExit = () => {}, load = fromSources }: Options = {},
): Promise<RunningService> {
  const { dataDir } = settings;
  const running = await findRunning(dataDir);
  if (running) {
    throw new StartError(
      `The service at ${running.baseUrl} already uses the data directory ${dataDir}. Stop it, or set another DATA_DIR.`,
    );
  }
  protectFiles(dataDir);
  setFunctionDefaults(settings);
  await checkEvents();
  // The gateway starts first, so that a port in use stops the start before anything is changed. Requests wait for the rest.
  const ready = Promise.withResolvers<void>();
  const server = await createGateway(load, consolePages(settings), undefined, ready.promise);
  const baseUrl = await listen(server, settings.port);
  process.env.API_ADDRESS = baseUrl;
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    // The gateway also stops first: requests in flight still find their engines.
    await close(server);
    for (const stopPart of stops.splice(0).reverse()) await stopPart();
  };
  try {
    const started = async <Started extends Engine>(starting: Promise<Started>): Promise<Started> => {
      const engine = await starting;
      stops.push(engine.stop);
      return engine;
    };
    const [dynamoEngine, sqsEngine] = await allEnded([
      started(dynamoFor(settings, onEngineExit)),
      started(sqsFor(settings, onEngineExit)),
    ]);
    const snsEngine = await started(snsFor(settings, sqsEngine, onEngineExit));
    process.env.AWS_ENDPOINT_URL_DYNAMODB = dynamoEngine.endpoint;
    process.env.AWS_ENDPOINT_URL_SQS = sqsEngine.endpoint;
    process.env.AWS_ENDPOINT_URL_SNS = snsEngine.endpoint;
    const { urlOf } = sqsEngine;
    const resources = await allEnded([
      withEngine("DynamoDB", dynamoEngine, () => createTables(dynamo())),
      withEngine("SQS", sqsEngine, () => createQueues(sqs(), { ...(urlOf && { urlOf }) })),
      withEngine("SNS", snsEngine, () => createTopics(sns())),
    ]);
    Object.assign(process.env, ...resources);
    await sqsEngine.releaseInFlight?.();
    await releaseLeases();

    const eventSources: EventSources = await startEventSources(
      withoutUnused(new SQSClient({ requestHandler: POLL_TIMEOUTS, cacheMiddleware: true, md5: false })),
      load,
      SWEEP_EVERY_SECONDS,
      settings.deliveryBatchSize,
    );
    stops.push(() => eventSources.stop());

    const endpoints = { dynamoEndpoint: dynamoEngine.endpoint, sqsEndpoint: sqsEngine.endpoint };
    const allowsReceivers = allowsLocalReceivers(functionSettings.webhookAllowCidrs());
    const running = { pid: process.pid, baseUrl, ...endpoints, allowsLocalReceivers: allowsReceivers };
    publishRunning(dataDir, { ...running, events: functionSettings.events() });
    stops.push(async () => unpublishRunning(dataDir));
    ready.resolve();
    return { baseUrl, eventsQueueUrl: process.env[queues.events.env] ?? "", stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Runs the first calls to an engine, which may be one that the operator provides.
 * @throws StartError when they fail
 */
async function withEngine<Result>(name: string, { endpoint }: Engine, call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    const { message, name: kind } = error as Error;
    const problem = `The ${name} engine at ${endpoint} cannot be used: ${message || kind}.`;
    throw new StartError(problem.replace(/\.+$/, "."), { cause: error });
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

async function sqsFor({ sqsEndpoint, sqsPort, dataDir }: LocalSettings, onExit: () => void): Promise<QueueEngine> {
  if (sqsEndpoint !== undefined) return { endpoint: sqsEndpoint, stop: async () => {} };
  const engine = await startSqs(sqsPort, dataDir, onExit);
  const urlOf = (name: string) => `${engine.endpoint}/000000000000/${name}`;
  return { ...engine, urlOf, releaseInFlight: () => releaseInFlight(engine, urlOf) };
}

/** Returns the SNS engine: the embedded SQS engine speaks SNS too. Without it, SNS gets one of its own. */
async function snsFor(
  { snsEndpoint, sqsEndpoint }: LocalSettings,
  { endpoint }: QueueEngine,
  onExit: () => void,
): Promise<Engine> {
  const stop = async () => {};
  if (snsEndpoint !== undefined) return { endpoint: snsEndpoint, stop };
  return sqsEndpoint === undefined ? { endpoint, stop } : startSqs(0, undefined, onExit);
}

/**
 * Makes messages visible that were in flight when the process was killed. Their consumer was that process, and they would
 * stay hidden for minutes. One second, because fauxqs 2.4.1 cannot persist a timeout of 0.
 */
async function releaseInFlight(engine: Engine, urlOf: (name: string) => string): Promise<void> {
  for (const { name } of Object.values(queues)) {
    for (const { receiptHandle } of (await messagesOf(engine, name)).inflight) {
      const message = { QueueUrl: urlOf(name), ReceiptHandle: receiptHandle, VisibilityTimeout: 1 };
      await sqs().send(new ChangeMessageVisibilityCommand(message));
    }
  }
}

async function listen(server: http.Server, port: number): Promise<string> {
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "EADDRINUSE" ? new StartError(portInUse("PORT", port)) : error;
  }
}

const CLOSE_WAIT_MS = 2_000;

/** Stops accepting connections and waits for requests in flight, up to a limit: a silent client may hold a connection. */
async function close(server: http.Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_WAIT_MS);
  await closed;
  clearTimeout(timer);
}
