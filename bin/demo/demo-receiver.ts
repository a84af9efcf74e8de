import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { StartError } from "../command/start-error.ts";

/* The receiver of the demo and of the smoke test. */

const MAX_WAIT_MS = 15_000;

export interface ReceivedDelivery {
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** Starts a receiver on a free port of 127.0.0.1. It stores each delivery and responds with 200. */
export async function startReceiver() {
  const deliveries: ReceivedDelivery[] = [];
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    deliveries.push({ headers: request.headers, body });
    response.end("ok");
    server.emit("delivery");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    /** Those that `next` has not returned. */
    deliveries,
    /** Returns the oldest delivery that was not returned before. @throws StartError when none arrives within 15 s */
    async next(): Promise<ReceivedDelivery> {
      const signal = AbortSignal.timeout(MAX_WAIT_MS);
      while (deliveries.length === 0) {
        await once(server, "delivery", { signal }).catch(() => {
          throw new StartError(
            `No delivery arrived within ${MAX_WAIT_MS / 1000} s. See the log of the service: npm start prints its path.`,
          );
        });
      }
      return deliveries.shift() as ReceivedDelivery;
    },
    close: () => server.close().closeAllConnections(),
  };
}
