import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { signatureHeaders } from "../../functions/receivers/signature.ts";
import { CheckFailed } from "./findings.ts";

interface Arrived {
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** A receiver on this machine, that checks who is calling as a receiver should. */
export interface Listener {
  url: string;
  /** @throws Unkept unless the delivery has come, and every signature is the one that these secrets make */
  verify(deliveryId: string, secret: string, previous?: string[]): void;
  close(): void;
}

export async function listen(): Promise<Listener> {
  const arrived = new Map<string, Arrived>();
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { headers } = request;
    arrived.set(String(headers["x-service-delivery"]), { headers, body: Buffer.concat(chunks).toString("utf8") });
    response.end("thank you");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    verify(deliveryId, secret, previous = []) {
      const delivery = arrived.get(deliveryId);
      if (!delivery) throw new CheckFailed("the delivery is said to have succeeded, and never came here");
      const at = new Date(1000 * Number(delivery.headers["webhook-timestamp"]));
      const expected = signatureHeaders({ deliveryId, at, body: delivery.body }, secret, previous);
      for (const [name, value] of Object.entries(expected)) {
        const isSame = delivery.headers[name.toLowerCase()] === value;
        if (!isSame) throw new CheckFailed(`the delivery came, and its ${name} does not match the secret`);
      }
    },
    close: () => server.close().closeAllConnections(),
  };
}
