import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { startSqs } from "../bin/local/engines.ts";

/*
 * Runs a queue engine and a receiver in a separate process, so that their CPU time and memory are not counted. Ends when its
 * standard input ends. The receiver responds with the status in the path: `/200`, `/500`.
 */

export interface Loopback {
  sqsEndpoint: string;
  receiverUrl: string;
  pid: number;
}

const engine = await startSqs(0, undefined);
const receiver = http.createServer((request, response) => {
  const status = Number(/^\/(\d{3})/.exec(request.url ?? "")?.[1] ?? 200);
  request.resume().once("end", () => response.writeHead(status).end("ok"));
});
receiver.keepAliveTimeout = 60_000;
receiver.listen(0, "127.0.0.1");
await once(receiver, "listening");
const addresses: Loopback = {
  sqsEndpoint: engine.endpoint,
  receiverUrl: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`,
  pid: process.pid,
};
console.log(JSON.stringify(addresses));
process.stdin.resume().once("end", () => process.exit(0));
