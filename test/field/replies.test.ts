import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";
import { causeOf } from "../../functions/webhooks/receiver/failure-cause.ts";
import { failureHint } from "../../functions/webhooks/receiver/failure-hints.ts";
import { parseCidrs } from "../../functions/webhooks/receiver/receiver-address.ts";
import { createReceiverClient, DEFAULT_LIMITS } from "../../functions/webhooks/receiver/receiver-client.ts";
import { forwardDelivery } from "../../packages/cli/src/listen/forward.ts";
import { fixFor } from "../../packages/cli/src/mcp/explain.ts";
import { deliveryLine } from "../../packages/cli/src/views/delivery-view.ts";
import { attempt } from "../support/attempts.ts";
import { closeAfterFile } from "../support/cleanup.ts";
import { givenWebhook, newDelivery } from "../support/deliveries.ts";
import { useScenario } from "../support/scenario.ts";
import { useService } from "../support/service.ts";
import { errors, type Idle, idle, type Reply, type Row, replies } from "./replies.ts";

/* What real receivers answer, through the sender, the API and the command line. */

const service = useService();
const scenario = useScenario(service);

type Answer = (socket: net.Socket, connection: number, request: number) => void;

/** Starts a receiver that answers each complete request. */
async function listen(answer: Answer, server = net.createServer()): Promise<string> {
  let connections = 0;
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => {
    connections += 1;
    sockets.add(socket);
    const connection = connections;
    let [text, requests] = ["", 0];
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      const head = /^.*?\r\n\r\n/s.exec(text)?.[0];
      const end = (head?.length ?? Number.NaN) + Number(/content-length: (\d+)/i.exec(head ?? "")?.[1] ?? 0);
      if (!(text.length >= end)) return;
      text = text.slice(end);
      requests += 1;
      answer(socket, connection, requests);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closeAfterFile(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

async function write(socket: net.Socket, { parts, end }: Reply): Promise<void> {
  for (const [index, part] of parts.entries()) {
    if (index > 0) await sleep(30);
    await new Promise((done) => socket.write(part, done));
  }
  if (end === "closes") socket.end();
  if (end === "resets") setTimeout(() => socket.resetAndDestroy(), 20);
}

/** Shown in the words of a row. */
const resultOf = (status: number | null | undefined, code: string | null | undefined): string =>
  [status ?? "-", ...(code ? [code] : [])].join(" ");

const titled = <Titled extends Row | Idle>(rows: Titled[]) =>
  rows.map((row) => ({ title: `${row[1]} (${row[0]})`, row }));

test("each row has a name of its own and a source", () => {
  expect(new Set(replies.map(([, name]) => name)).size).toBe(replies.length);
  expect([...replies, ...idle, ...errors].filter(([source]) => source.length < 3)).toEqual([]);
});

test.each(titled(replies))("$title", async ({ row: [, , given, result, hint, excerpt] }) => {
  const reply = typeof given === "string" || Buffer.isBuffer(given) ? { parts: [given] } : given;
  const url = await listen((socket) => write(socket, reply));
  const deadlineMs = result.endsWith("timeout") ? 300 : 15_000;

  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]), { ...DEFAULT_LIMITS, deadlineMs });
  const outcome = await client.post(url, {}, "{}");
  await client.close();
  expect(resultOf(outcome.statusCode, outcome.errorCode)).toBe(result);
  const { errorCode: error_code, statusCode: status_code, detail } = outcome;
  const sentence = failureHint({ error_code, status_code, detail }) ?? "";
  expect(sentence).toContain(hint ?? "");
  expect(sentence === "").toBe(hint === undefined && error_code === undefined);
  if (excerpt !== undefined) expect(outcome.excerpt).toBe(excerpt);

  const local = { id: randomUUID(), event: "deploy.failed", body: Buffer.from("{}") };
  const forwarded = await forwardDelivery(local, { url: new URL(url), secrets: ["secret"], timeoutMs: deadlineMs });
  const { status_code: status, error_code: code, hint: shown, response_excerpt } = forwarded;
  expect({ result: resultOf(status, code), hint: shown ?? "", excerpt: response_excerpt ?? undefined }).toEqual({
    result,
    hint: sentence,
    excerpt: outcome.excerpt,
  });
  if (error_code === "timeout") return;

  const { webhook } = await givenWebhook({ url, projectId: scenario.projectId });
  const delivery = newDelivery(webhook);
  await attempt(delivery);
  const path = `/v1/projects/${scenario.projectId}/webhooks/${webhook.id}/deliveries/${delivery.id}`;
  const { data } = (await scenario.api.get(path)).body;
  const [recorded] = data.attempts;
  expect(resultOf(recorded.status_code, recorded.error_code)).toBe(result);
  expect([recorded.hint ?? "", recorded.response_excerpt ?? undefined]).toEqual([sentence, outcome.excerpt]);
  expect(deliveryLine(data, recorded)).toContain(sentence);
  // Assistants take it for a text of the service: it must have none of the receiver.
  if (sentence !== "") expect(fixFor(recorded)).not.toMatch(/example\.com|google|cloudflareaccess|Ignore/);
});

test.each(titled(idle))(
  "$title on an idle connection is not the next response",
  async ({ row: [, , first, late, end] }) => {
    const url = await listen(async (socket) => {
      await write(socket, { parts: [first, late], ...(end && { end }) });
    });
    const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]));
    for (let sent = 0; sent < 4; sent++) {
      const { errorCode, statusCode } = await client.post(url, {}, "{}");
      expect({ errorCode, statusCode }).toEqual({ errorCode: undefined, statusCode: Number(first.slice(9, 12)) });
      await sleep(60);
    }
    await client.close();
  },
);

test("a request that meets the late body of the response before is sent again once, on a new connection", async () => {
  const seen: string[] = [];
  // The body of the first response arrives when the second request does, on each connection.
  const url = await listen((socket, connection, request) => {
    seen.push(`${connection}.${request}`);
    socket.write(request === 1 ? "HTTP/1.1 204 N\r\nContent-Length: 2\r\n\r\n" : "OK");
  });
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]));
  const outcomes = [];
  for (let sent = 0; sent < 3; sent++) outcomes.push(await client.post(url, {}, "{}"));
  await client.close();
  const anyTime = { durationMs: expect.any(Number), statusCode: 204 };
  expect(outcomes).toEqual([anyTime, { ...anyTime, requestCount: 2 }, anyTime]);
  expect(seen).toEqual(["1.1", "1.2", "2.1", "3.1"]);
});

test.each(errors)("%s: %j while %s is %s: %s", (_source, error, phase, code, hint) => {
  const { errorCode, detail } = causeOf(error, phase);
  expect(errorCode).toBe(code);
  expect(failureHint({ error_code: errorCode, detail })).toContain(hint);
});

const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url));
const identity = { cert: fixture("tls-cert.pem"), key: fixture("tls-key.pem") };
const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT:@SECLEVEL=0" } as const;

test.each<[string, () => net.Server, string, string]>([
  ["plain http", () => net.createServer(), "tls_error", "(wrong version number): the port does not serve TLS"],
  ["TLS 1.1", () => tls.createServer({ ...identity, ...old }), "tls_error", "enable TLS 1.2 or 1.3"],
  [
    "a client certificate",
    () => tls.createServer({ ...identity, requestCert: true, maxVersion: "TLSv1.2" }),
    "tls_error",
    "require no client certificate",
  ],
  ["a certificate of its own", () => tls.createServer(identity), "tls_error", "from a public authority"],
  [
    "a closed port",
    () => net.createServer((socket) => socket.destroy()),
    "connection_reset",
    "during the TLS handshake",
  ],
])("https to a receiver with %s", async (_name, serverOf, code, hint) => {
  const server = serverOf().on("tlsClientError", () => {});
  const url = (await listen((socket) => socket.end("HTTP/1.1 400 B\r\n\r\n"), server)).replace("http:", "https:");
  const raw = server instanceof tls.Server ? undefined : server;
  raw?.on("connection", (socket) => socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")));
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]));
  const { errorCode: error_code, detail } = await client.post(url, {}, "{}");
  await client.close();
  expect(error_code).toBe(code);
  expect(failureHint({ error_code, detail })).toContain(hint);
  const local = { id: randomUUID(), event: "deploy.failed", body: Buffer.from("{}") };
  const forwarded = await forwardDelivery(local, { url: new URL(url), secrets: ["secret"] });
  expect([forwarded.error_code, forwarded.hint]).toEqual([error_code, failureHint({ error_code, detail })]);
});

test("the name of the TLS handshake has no root dot, also of a URL that was stored with one (golang/go#63117)", async () => {
  const asked: string[] = [];
  const SNICallback = (name: string, done: (error: Error) => void) => {
    asked.push(name);
    done(new Error("no certificate"));
  };
  const server = tls.createServer({ ...identity, SNICallback }).on("tlsClientError", () => {});
  const { port } = new URL(await listen(() => {}, server));
  const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
  const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]), DEFAULT_LIMITS, resolve);
  await client.post(`https://a.hooks.example.:${port}/`, {}, "{}");
  await client.close();
  expect(asked).toEqual(["a.hooks.example"]);
});
