import { post } from "../../functions/receivers/receiver-client-pool.ts";
import { signatureHeaders } from "../../functions/receivers/signature.ts";
import { BODY, type Delivery, type Way } from "./way.ts";

/* The part of an attempt between reading and recording its row: two signatures, and a POST with all guards. */

/** Returns the same headers as functions/attempts/attempt.ts. */
export function headersOf({ id, target }: Delivery): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "User-Agent": "Deployment-Webhooks/1.0",
    "X-Service-Event": "deploy.succeeded",
    "X-Service-Delivery": id,
    ...signatureHeaders({ deliveryId: id, at: new Date(), body: BODY }, target.secret),
  };
}

export const way: Way = {
  async send(delivery) {
    const { errorCode } = await post(delivery.target.url, headersOf(delivery), BODY);
    return errorCode === undefined;
  },
};
