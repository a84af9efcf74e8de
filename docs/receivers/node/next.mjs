import { verifyWebhook, WebhookVerificationError } from "./verify-webhook.mjs";

/*
 * Next.js, app/webhooks/route.js (and other frameworks whose handlers turn a Request into a Response):
 *   export const POST = webhooks({ secret: process.env.WEBHOOK_SECRET, accept });
 * Serverless hosts stop after the response: there, `accept` must store the delivery in a database or a queue.
 */
export function webhooks({ secret, accept }) {
  return async (request) => {
    const body = await readBody(request, 1_000_000);
    if (body === undefined) return new Response(null, { status: 413 });
    try {
      await accept(verifyWebhook({ body, headers: request.headers, secret }));
      return new Response(null, { status: 204 });
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error;
      return Response.json({ error: error.code }, { status: error.status });
    }
  };
}

/** Reads the raw body. Returns undefined as soon as it exceeds the limit, independent of Content-Length. */
async function readBody(request, maxBytes) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
