import { verifyWebhook, WebhookVerificationError } from "./verify-webhook.mjs";

/*
 * Fastify 4 or 5:
 *   const { accept } = createInbox((payload) => console.log(payload.event));
 *   app.register(webhooks, { prefix: "/webhooks", secret: process.env.WEBHOOK_SECRET, accept });
 * As a plugin, it reads raw bodies for its own route only. The rest of the app still parses JSON.
 */
export async function webhooks(app, { secret, accept }) {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: 1_000_000 }, (_request, body, done) =>
    done(null, body),
  );
  app.post("/", async (request, reply) => {
    try {
      await accept(verifyWebhook({ body: request.body ?? "", headers: request.headers, secret }));
      return reply.code(204).send();
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error;
      return reply.code(error.status).send({ error: error.code });
    }
  });
}
