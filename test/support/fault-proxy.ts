import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const SHORT_POLL_MS = 10;

/** The HTTP endpoints that a service's calls to AWS go to. */
export interface Upstream {
  dynamo: string;
  sqs: string;
}

/** Acts once, at the nth call of its kind from now on, before the engine sees it or after the engine has answered. */
export interface Trap {
  /** Operation and table (the first of several), index or queue: `PutItem deliveries`, `Query deliveries/due`, `DeleteMessageBatch deployment-events`. */
  call: string;
  nth: number;
  /** Counts only calls whose JSON has this in it. */
  containing?: string | undefined;
  when: "before" | "after";
  act(): Promise<void>;
}

export interface FaultProxy {
  /** What a service gets as both of its AWS endpoints. */
  endpoint: string;
  set(trap: Trap): void;
  /** Waits until what was forwarded has been answered. Polls of a process that is gone have then ended. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

interface Body {
  TableName?: string;
  IndexName?: string;
  RequestItems?: Record<string, unknown>;
  QueueUrl?: string;
  WaitTimeSeconds?: number;
}

/** Stands between a service and its engines, sees every call by name, and lets a test act at any of them. */
export async function startFaultProxy(upstream: Upstream): Promise<FaultProxy> {
  const forwarded = new Set<Promise<unknown>>();
  let trap: Trap | undefined;
  let seen = 0;

  const server = http.createServer(async (request, response) => {
    const body = await read(request);
    const target = String(request.headers["x-amz-target"]);
    const isSprung = isCaught(nameOf(target, body), body);
    const sprung = isSprung ? trap : undefined;
    if (sprung) trap = undefined;
    if (sprung?.when === "before") return void (await sprung.act().then(() => response.destroy()));
    const origin = target.startsWith("DynamoDB") ? upstream.dynamo : upstream.sqs;
    const forward = (text: string) => post(origin, request.headers, text);
    const answering = target.endsWith(".ReceiveMessage")
      ? poll(body, forward, () => response.destroyed)
      : forward(body);
    track(answering);
    const answer = await answering;
    if (sprung) await sprung.act();
    if (sprung || response.destroyed) return void response.destroy();
    // The SDK calls the host of a queue's URL, whatever its endpoint: it has to be ours.
    response.writeHead(answer.status, answer.headers).end(answer.body.replace(/http:\/\/[^/"]+\/0{12}/g, queues()));
  });

  function isCaught(name: string, body: string): boolean {
    if (name !== trap?.call || !body.includes(trap.containing ?? "")) return false;
    seen += 1;
    return seen === trap.nth;
  }
  function track(answering: Promise<unknown>): void {
    const settled: Promise<unknown> = answering.catch(() => {}).then(() => forwarded.delete(settled));
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
    async idle() {
      while (forwarded.size > 0) await Promise.all(forwarded);
    },
    async close() {
      await Promise.all(forwarded);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function nameOf(target: string, text: string): string {
  const { TableName, IndexName, RequestItems = {}, QueueUrl } = JSON.parse(text) as Body;
  const [table] = Object.keys(RequestItems);
  const resource = [TableName ?? table ?? QueueUrl?.split("/").at(-1), IndexName].filter(Boolean).join("/");
  return `${target.split(".")[1]} ${resource}`;
}

/**
 * A long poll, made of short ones: the engine would go on polling for a process that is gone, and each message it hands to
 * nobody counts as received. How often that happens would depend on the machine's speed.
 */
async function poll(body: string, forward: (body: string) => Promise<Answer>, isGone: () => boolean): Promise<Answer> {
  const { WaitTimeSeconds = 0, ...rest } = JSON.parse(body) as Body;
  const until = Date.now() + WaitTimeSeconds * 1000;
  while (true) {
    const answer = await forward(JSON.stringify({ ...rest, WaitTimeSeconds: 0 }));
    if (answer.body.includes("ReceiptHandle") || isGone() || Date.now() >= until) return answer;
    await sleep(SHORT_POLL_MS);
  }
}

async function read(message: http.IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of message.setEncoding("utf8")) text += chunk;
  return text;
}

interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Passes a call on. It goes to its end although the caller may be gone, as it would in a data centre. */
async function post(origin: string, headers: http.IncomingHttpHeaders, body: string): Promise<Answer> {
  const { host: _, connection: __, "content-length": ___, ...rest } = headers;
  const request = http.request(`${origin}/`, { method: "POST", headers: rest as http.OutgoingHttpHeaders, agent });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const answer = await read(response);
  const type = response.headers["content-type"] ?? "application/json";
  return { status: response.statusCode ?? 502, headers: { "Content-Type": type }, body: answer };
}

const agent = new http.Agent({ keepAlive: false });
