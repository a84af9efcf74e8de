import { signatureHeaders } from "../../functions/receivers/signature.ts";
import { startReceiver } from "../local/demo-receiver.ts";
import { CheckFailed } from "./findings.ts";

/** A receiver on this machine that records deliveries and verifies their signatures. */
export interface Listener {
  url: string;
  /** @throws CheckFailed unless the delivery arrived with exactly the signatures that these secrets produce */
  verify(deliveryId: string, secret: string, previous?: string[]): void;
  close(): void;
}

export async function listen(): Promise<Listener> {
  const { url, deliveries, close } = await startReceiver();
  return {
    url,
    verify(deliveryId, secret, previous = []) {
      const delivery = deliveries.findLast(({ headers }) => headers["x-service-delivery"] === deliveryId);
      if (!delivery) throw new CheckFailed("the stage reports the delivery as succeeded, but it did not arrive here");
      const at = new Date(1000 * Number(delivery.headers["webhook-timestamp"]));
      const expected = signatureHeaders({ deliveryId, at, body: delivery.body }, secret, previous);
      for (const [name, value] of Object.entries(expected)) {
        const isSame = delivery.headers[name.toLowerCase()] === value;
        if (!isSame) throw new CheckFailed(`the delivery arrived, but its ${name} does not match the secret`);
      }
    },
    close,
  };
}
