import { verifyWebhook, WebhookVerificationError } from "./verify-webhook.mjs";

/*
 * Next.js, app/webhooks/route.js (and whatever else answers a Request with a Response):
 *   export const POST = webhooks({ secret: process.env.WEBHOOK_SECRET, accept });
 * Serverless hosts stop when the answer is out: there `accept` must put the delivery into a database or a queue.
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
      return Response.json({ error: error.code }, { status: 401 });
    }
  };
}

/** The raw body, or undefined when it is too large: not read to its end then, whatever Content-Length says. */
async function readBody(request, mostBytes) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > mostBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
