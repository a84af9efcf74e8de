import type { ChildProcess } from "node:child_process";
import { ChangeMessageVisibilityCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { startDynamo } from "../../bin/emulator/engines.ts";
import { startQueueEngine } from "../../bin/emulator/queue-engine.ts";
import { createQueues, createTables } from "../../bin/emulator/resources.ts";
import { queues } from "../../functions/foundation/manifest/queues.ts";
import { dynamo, sqs } from "../../functions/foundation/platform/aws.ts";
import type { Webhook } from "../../functions/webhooks/webhook/webhook.ts";
import { closeAfterFile } from "./cleanup.ts";
import { makeDue } from "./deliveries.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { freshDataDir, kill, startProgram } from "./local-run.ts";

/**
 * The service as a process that a test can kill, over engines that keep running in this process. A proxy between the
 * two sees every call, so that a test can kill the service at any of them.
 */
export interface CrashRig {
  proxy: FaultProxy;
  /** Starts the processes that are not running. Returns when they are ready or have ended. */
  start(): Promise<void>;
  kill(): Promise<void>;
  /**
   * Simulates the time after which a dead process is replaced: its messages are visible again, the leases of its lines are
   * over, and what waits is due.
   */
  expireLeases(webhooks: Pick<Webhook, "project_id" | "id">[]): Promise<void>;
  publish(event: object): Promise<void>;
  /** Counts the messages in all queues and dead-letter queues. */
  messagesLeft(): number;
  stop(): Promise<void>;
}

const names = Object.values(queues).flatMap(({ name }) => [name, `${name}-dlq`]);

interface RigOptions {
  /** Processes that share the engines; default: one. */
  processes?: number;
  /** Time between two polls of an empty queue. */
  shortPollMs?: number;
}

export async function startCrashRig(
  settings: Record<string, string>,
  { processes = 1, shortPollMs }: RigOptions = {},
): Promise<CrashRig> {
  const dynamoEngine = await startDynamo(undefined, () => {});
  // In this thread, where looking at the queues costs nothing.
  const sqsEngine = await startQueueEngine(0, undefined);
  const sqsEndpoint = `http://127.0.0.1:${sqsEngine.port}`;
  process.env.AWS_ENDPOINT_URL_DYNAMODB = dynamoEngine.endpoint;
  process.env.AWS_ENDPOINT_URL_SQS = sqsEndpoint;
  const urlOf = (name: string) => `${sqsEndpoint}/000000000000/${name}`;
  Object.assign(process.env, await createTables(dynamo()), await createQueues(sqs(), { urlOf }));

  const release = async (queue: string) => {
    for (const { receiptHandle } of sqsEngine.inspectQueue(queue)?.messages.inflight ?? []) {
      const message = { QueueUrl: urlOf(queue), ReceiptHandle: receiptHandle, VisibilityTimeout: 0 };
      await sqs().send(new ChangeMessageVisibilityCommand(message));
    }
  };
  const hasVisibleMessages = (queue: string): boolean => {
    const now = Date.now();
    const { ready = [], delayed = [], inflight = [] } = sqsEngine.inspectQueue(queue)?.messages ?? {};
    const isDelayOver = delayed.some(({ delayUntil = 0 }) => delayUntil <= now);
    const isTimeoutOver = inflight.some(({ visibilityDeadline }) => visibilityDeadline <= now);
    return ready.length > 0 || isDelayOver || isTimeoutOver;
  };
  const upstream = { dynamo: dynamoEngine.endpoint, sqs: sqsEndpoint, hasVisibleMessages };
  const proxy = await startFaultProxy(upstream, shortPollMs);
  const endpoints = {
    AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint,
    AWS_ENDPOINT_URL_SQS: proxy.endpoint,
    AWS_ENDPOINT_URL_SNS: sqsEndpoint,
  };
  const dataDirs = Array.from({ length: processes }, freshDataDir);
  const children: ChildProcess[] = [];
  const startChild = async (DATA_DIR: string, index: number) => {
    const running = children[index];
    if (running && running.exitCode === null && running.signalCode === null) return;
    const started = startProgram(["bin/local.ts"], { DATA_DIR, ...endpoints, ...settings });
    children[index] = started;
    started.stderr.resume();
    let page = "";
    for await (const text of started.stdout.setEncoding("utf8")) {
      page += text;
      if (/^ready /m.test(page)) break;
    }
  };
  return {
    proxy,
    async start() {
      await Promise.all(dataDirs.map(startChild));
    },
    async kill() {
      await Promise.all(children.map((child) => kill(child)));
      await proxy.idle();
    },
    async expireLeases(webhooks) {
      for (const queue of names) await release(queue);
      await Promise.all(webhooks.map(makeDue));
    },
    async publish(event) {
      const MessageBody = JSON.stringify(event);
      await sqs().send(new SendMessageCommand({ QueueUrl: urlOf(queues.events.name), MessageBody }));
    },
    messagesLeft() {
      const counts = names.map((name) => {
        const messages = sqsEngine.inspectQueue(name)?.messages;
        return messages ? messages.ready.length + messages.delayed.length + messages.inflight.length : 0;
      });
      return counts.reduce((sum, count) => sum + count, 0);
    },
    stop: closeAfterFile(async () => {
      await Promise.all(children.map((child) => kill(child)));
      await proxy.close();
      await Promise.all([sqsEngine.stop(), dynamoEngine.stop()]);
    }),
  };
}
