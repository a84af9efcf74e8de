import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { StartError } from "./engines.ts";

/* The far end of the demo: a receiver, and what a receiver does to know who is calling. */

const PATIENCE_MS = 15_000;

export interface Arrived {
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** What a receiver has to do to trust a delivery: compute the signature of the body as it came, compare in constant time. */
export function isFromService({ headers, body }: Arrived, secret: string): boolean {
  const expected = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  return isSame(expected, String(headers["x-service-signature"]));
}

export function isStandardWebhook({ headers, body }: Arrived, secret: string): boolean {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return isSame(
    `v1,${createHmac("sha256", key).update(signed).digest("base64")}`,
    String(headers["webhook-signature"]),
  );
}

function isSame(expected: string, actual: string): boolean {
  return expected.length === actual.length && timingSafeEqual(Buffer.from(expected), Buffer.from(actual));
}

/** Keeps what arrives, on a free port of this machine. */
export async function startReceiver() {
  const deliveries: Arrived[] = [];
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    deliveries.push({ headers: request.headers, body });
    response.end("thank you");
    server.emit("delivery");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async next(): Promise<Arrived> {
      const signal = AbortSignal.timeout(PATIENCE_MS);
      while (deliveries.length === 0) {
        await once(server, "delivery", { signal }).catch(() => {
          throw new StartError(`Nothing arrived within ${PATIENCE_MS / 1000} s. The service's log says why.`);
        });
      }
      return deliveries.shift() as Arrived;
    },
    close: () => server.close().closeAllConnections(),
  };
}
