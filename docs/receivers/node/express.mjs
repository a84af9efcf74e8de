import express from "express";
import { verifyWebhook, WebhookVerificationError } from "./verify-webhook.mjs";

/*
 * Express 5:
 *   const { accept } = createInbox((payload) => console.log(payload.event));
 *   app.use("/webhooks", webhooks({ secret: process.env.WEBHOOK_SECRET, accept }));
 * Mount it before express.json(), which would consume the raw body.
 */
export function webhooks({ secret, accept }) {
  const router = express.Router();
  router.post("/", express.raw({ type: () => true, limit: "1mb" }), async (request, response) => {
    try {
      await accept(verifyWebhook({ body: request.body ?? "", headers: request.headers, secret }));
      response.sendStatus(204);
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error;
      response.status(error.status).json({ error: error.code });
    }
  });
  return router;
}
