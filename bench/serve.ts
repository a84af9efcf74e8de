import { createHmac } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "svix";
import { startSqs } from "../bin/emulator/engines.ts";
import type { Arrival, Received, Served } from "./receivers.ts";

/*
 * Receivers, and a queue engine, in a process of their own, so that their CPU time is not counted. The first word of the path
 * selects the response: `/ok…` at once, `/after/<ms>…` after so many milliseconds, `/hang…` never, `/<status>` with this
 * status.
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
    arrivals.push({ at, path, event: deploymentOf(body) });
    const secret = secrets[path];
    if (secret !== undefined) verify(request, body, secret);
    response.statusCode = Number(/^\/(\d{3})\b/.exec(path)?.[1] ?? 200);
    if (path.startsWith("/hang")) return;
    const [, waitMs] = /^\/after\/(\d+)/.exec(path) ?? [];
    if (waitMs === undefined) response.end("ok");
    else setTimeout(() => response.end("ok"), Number(waitMs));
  });
});

const deploymentOf = (body: string): string => /"deployment_id":"([^"]+)"/.exec(body)?.[1] ?? "";

/** Verifies the standard signature, and our own header if it is present. */
function verify({ headers, url }: http.IncomingMessage, body: string, secret: string): void {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
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
