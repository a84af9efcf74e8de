import { Webhook } from "svix";
import { BODY, type Way } from "./way.ts";

/* The simple way: one signature by a library, sent with fetch. Its only guard is a deadline. */

export const way: Way = {
  async send({ id, target }) {
    const at = new Date();
    try {
      const response = await fetch(target.url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "webhook-id": id,
          "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
          "webhook-signature": new Webhook(target.secret).sign(id, at, BODY),
        },
        body: BODY,
        signal: AbortSignal.timeout(15_000),
      });
      await response.text();
      return response.ok;
    } catch {
      return false;
    }
  },
};
