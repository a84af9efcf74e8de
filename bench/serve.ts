import { createHmac } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "svix";
import { startSqs } from "../bin/local/engines.ts";
import type { Arrival, Received, Served } from "./receivers.ts";

/*
 * Receivers, and a queue engine, in a process of their own, so that their CPU time is not counted. The first word of the path
 * selects the response: `/ok…` at once, `/after/<ms>…` after so many milliseconds, `/alternate/<ms>…` every second one after
 * so many, `/drip…` one byte a second, `/hang…` never, `/<status>` with this status.
 * Signatures are verified with a library and node:crypto, not with our own code.
 */

let arrivals: Arrival[] = [];
let invalid: string[] = [];
let verified = 0;
/** Secrets by path; requests to other paths are not verified. */
let secrets: Record<string, string> = {};

const server = http.createServer((request, response) => {
  const at = performance.timeOrigin + performance.now();
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const path = request.url ?? "";
    const body = Buffer.concat(chunks).toString();
    arrivals.push({ at, path, id: String(request.headers["webhook-id"]), event: deploymentOf(body) });
    const secret = secrets[path];
    if (secret !== undefined) verify(request, body, secret);
    response.statusCode = Number(/^\/(\d{3})\b/.exec(path)?.[1] ?? 200);
    if (path.startsWith("/hang")) return;
    if (path.startsWith("/drip")) return drip(response);
    const [, kind, givenMs = "0"] = /^\/(after|alternate)\/(\d+)/.exec(path) ?? [];
    const waitMs = kind === "alternate" && arrivals.length % 2 === 0 ? "0" : givenMs;
    if (waitMs === "0") response.end("ok");
    else setTimeout(() => response.end("ok"), Number(waitMs));
  });
});

/** Sends a byte of the body each second, until the other side closes the connection. */
function drip(response: http.ServerResponse): void {
  const timer = setInterval(() => response.write("."), 1_000);
  response.on("close", () => clearInterval(timer));
}

const deploymentOf = (body: string): string => /"deployment_id":"([^"]+)"/.exec(body)?.[1] ?? "";

/** Verifies the standard signature, and our own header if it is present. */
function verify({ headers, url }: http.IncomingMessage, body: string, secret: string): void {
  try {
    // An imported secret is itself the key.
    const webhook = secret.startsWith("whsec_")
      ? new Webhook(secret)
      : new Webhook(Buffer.from(secret), { format: "raw" });
    webhook.verify(body, headers as Record<string, string>);
    const signature = headers["x-service-signature"];
    const expected = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
    if (signature !== undefined && signature !== expected) throw new Error(`X-Service-Signature is ${signature}`);
    verified += 1;
  } catch (error) {
    invalid.push(`${url}: ${(error as Error).message}`);
  }
}

server.keepAliveTimeout = 60_000;
server.listen({ host: "127.0.0.1", port: 0, backlog: 1024 });
await once(server, "listening");
const engine = process.argv.includes("sqs") ? await startSqs(0, undefined, () => {}) : undefined;
const served: Served = {
  origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  sqsEndpoint: engine?.endpoint,
};
process.send?.(served);

process.on("message", (next: { secrets: Record<string, string> }) => {
  const received: Received = { arrivals, verified, invalid };
  process.send?.(received);
  [arrivals, verified, invalid, secrets] = [[], 0, [], next.secrets];
});
process.on("disconnect", () => process.exit());
