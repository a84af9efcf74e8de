import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { closeAfterFile } from "./cleanup.ts";

const SHORT_POLL_MS = 10;
/** Messages are delayed by at most a second, so that a test does not wait for the next receive of a message. */
const MAX_DELAY_SECONDS = 1;

/** The HTTP endpoints of the engines behind the proxy. */
export interface Upstream {
  dynamo: string;
  sqs: string;
  /** Returns whether a receive from a queue would find messages. A poll that would find none is not forwarded. */
  hasVisibleMessages(queue: string): boolean;
}

/** Runs `act` once, at the nth matching call from now on, before the engine gets the call or after it has responded. */
export interface Trap {
  /**
   * Operation and table (the first of several), index or queue, such as `PutItem deliveries`, `Query backlog/due`,
   * `DeleteMessageBatch deployment-events`.
   */
  call: string;
  nth: number;
  /** Counts only calls whose JSON contains this text. */
  containing?: string | undefined;
  when: "before" | "after";
  act(): Promise<void>;
}

export interface FaultProxy {
  /** The URL for both AWS endpoints of the service. */
  endpoint: string;
  set(trap: Trap): void;
  /** The number of messages that the service has sent to a queue. */
  messagesSentTo(queue: string): number;
  /**
   * The number of messages with a carried delivery that were sent again: the SDK repeats a batch whose response is late,
   * on a machine without time. Each is one more request, which at-least-once delivery allows.
   */
  repeatedFirstAttempts(): number;
  /** Waits until the engines have responded to all forwarded calls. Polls of a killed process have then ended. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

interface Body {
  TableName?: string;
  IndexName?: string;
  RequestItems?: Record<string, unknown>;
  QueueUrl?: string;
  WaitTimeSeconds?: number;
  Entries?: { DelaySeconds?: number; MessageBody?: string }[];
}

/**
 * Starts a proxy between a service and its engines that lets a test act at any call.
 * @param shortPollMs time between two polls of an empty queue
 */
export async function startFaultProxy(upstream: Upstream, shortPollMs = SHORT_POLL_MS): Promise<FaultProxy> {
  const sent = new Map<string, number>();
  const carried: string[] = [];
  const forwarded = new Set<Promise<unknown>>();
  let trap: Trap | undefined;
  let seen = 0;

  const server = http.createServer(async (request, response) => {
    const target = String(request.headers["x-amz-target"]);
    const text = await read(request);
    const body = target.endsWith(".SendMessageBatch") ? countAndHasten(text, sent, carried) : text;
    const isTriggered = isTriggeredBy(nameOf(target, body), body);
    const triggered = isTriggered ? trap : undefined;
    if (triggered) trap = undefined;
    if (triggered?.when === "before") return void (await triggered.act().then(() => response.destroy()));
    const origin = target.startsWith("DynamoDB") ? upstream.dynamo : upstream.sqs;
    const forward = (text: string) => post(origin, request.headers, text);
    const responding = target.endsWith(".ReceiveMessage")
      ? poll(body, forward, upstream.hasVisibleMessages, () => response.destroyed, shortPollMs)
      : forward(body);
    track(responding);
    const result = await responding;
    if (triggered) await triggered.act();
    if (triggered || response.destroyed) return void response.destroy();
    // The SDK calls the host in the URL of the queue, not its endpoint, so the URL must contain the host of the proxy.
    response.writeHead(result.status, result.headers).end(result.body.replace(/http:\/\/[^/"]+\/0{12}/g, queues()));
  });

  function isTriggeredBy(name: string, body: string): boolean {
    if (name !== trap?.call || !body.includes(trap.containing ?? "")) return false;
    seen += 1;
    return seen === trap.nth;
  }
  function track(responding: Promise<unknown>): void {
    const settled: Promise<unknown> = responding.catch(() => {}).then(() => forwarded.delete(settled));
    forwarded.add(settled);
  }
  const endpoint = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const queues = () => `${endpoint()}/000000000000`;

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: endpoint(),
    set(next) {
      trap = next;
      seen = 0;
    },
    messagesSentTo: (queue) => sent.get(queue) ?? 0,
    repeatedFirstAttempts: () => carried.length - new Set(carried).size,
    async idle() {
      while (forwarded.size > 0) await Promise.all(forwarded);
    },
    close: closeAfterFile(async () => {
      await Promise.all(forwarded);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }),
  };
}

/** Counts the messages of a batch by queue. Returns the batch with shorter delays. */
function countAndHasten(text: string, sent: Map<string, number>, carried: string[]): string {
  const { Entries = [], ...rest }: Body = JSON.parse(text);
  const queue = queueOf(rest);
  sent.set(queue, (sent.get(queue) ?? 0) + Entries.length);
  for (const { MessageBody = "" } of Entries) if (MessageBody.includes('"kind":"first"')) carried.push(MessageBody);
  const hastened = Entries.map((entry) => ({
    ...entry,
    DelaySeconds: Math.min(MAX_DELAY_SECONDS, entry.DelaySeconds ?? 0),
  }));
  return JSON.stringify({ ...rest, Entries: hastened });
}

const queueOf = ({ QueueUrl = "" }: { QueueUrl?: string | undefined }): string => QueueUrl.split("/").at(-1) ?? "";

function nameOf(target: string, text: string): string {
  const { TableName, IndexName, RequestItems = {}, QueueUrl } = JSON.parse(text) as Body;
  const [table] = Object.keys(RequestItems);
  const resource = [TableName ?? table ?? queueOf({ QueueUrl }), IndexName].filter(Boolean).join("/");
  return `${target.split(".")[1]} ${resource}`;
}

/**
 * Implements a long poll with short polls. With a long poll the engine would continue to poll for a killed process, and
 * each message of such a poll would count as received. The number of such polls depends on the speed of the machine.
 */
async function poll(
  body: string,
  forward: (body: string) => Promise<EngineResponse>,
  hasVisibleMessages: Upstream["hasVisibleMessages"],
  isDisconnected: () => boolean,
  shortPollMs: number,
): Promise<EngineResponse> {
  const { WaitTimeSeconds = 0, ...rest } = JSON.parse(body) as Body;
  const until = Date.now() + WaitTimeSeconds * 1000;
  const isOver = () => isDisconnected() || Date.now() >= until;
  while (true) {
    while (!hasVisibleMessages(queueOf(rest)) && !isOver()) await sleep(shortPollMs);
    const result = await forward(JSON.stringify({ ...rest, WaitTimeSeconds: 0 }));
    if (result.body.includes("ReceiptHandle") || isOver()) return result;
    await sleep(shortPollMs);
  }
}

async function read(message: http.IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of message.setEncoding("utf8")) text += chunk;
  return text;
}

interface EngineResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Forwards a call. It completes even when the caller has been killed, as on AWS. */
async function post(origin: string, headers: http.IncomingHttpHeaders, body: string): Promise<EngineResponse> {
  const { host: _, connection: __, "content-length": ___, ...rest } = headers;
  const request = http.request(`${origin}/`, { method: "POST", headers: rest as http.OutgoingHttpHeaders, agent });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const text = await read(response);
  const type = response.headers["content-type"] ?? "application/json";
  return { status: response.statusCode ?? 502, headers: { "Content-Type": type }, body: text };
}

const agent = new http.Agent({ keepAlive: false });
