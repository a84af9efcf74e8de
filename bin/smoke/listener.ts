import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { signatureHeaders } from "../../functions/receivers/signature.ts";
import { CheckFailed } from "./findings.ts";

interface ReceivedDelivery {
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** A receiver on this machine that records deliveries and verifies their signatures. */
export interface Listener {
  url: string;
  /** @throws CheckFailed unless the delivery arrived with exactly the signatures that these secrets produce */
  verify(deliveryId: string, secret: string, previous?: string[]): void;
  close(): void;
}

export async function listen(): Promise<Listener> {
  const received = new Map<string, ReceivedDelivery>();
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { headers } = request;
    received.set(String(headers["x-service-delivery"]), { headers, body: Buffer.concat(chunks).toString("utf8") });
    response.end("received");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    verify(deliveryId, secret, previous = []) {
      const delivery = received.get(deliveryId);
      if (!delivery) throw new CheckFailed("the stage reports the delivery as succeeded, but it did not arrive here");
      const at = new Date(1000 * Number(delivery.headers["webhook-timestamp"]));
      const expected = signatureHeaders({ deliveryId, at, body: delivery.body }, secret, previous);
      for (const [name, value] of Object.entries(expected)) {
        const isSame = delivery.headers[name.toLowerCase()] === value;
        if (!isSame) throw new CheckFailed(`the delivery arrived, but its ${name} does not match the secret`);
      }
    },
    close: () => server.close().closeAllConnections(),
  };
}
