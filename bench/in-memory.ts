import fastify from "fastify";
import PQueue from "p-queue";
import { Webhook } from "svix";

/*
 * The simple design: an HTTP server that accepts events, a queue in memory, and fetch with a signature by a library. Without
 * durability and retries: events in flight are lost when the process ends, and failed ones are not sent again.
 */

const [url = "", secret = ""] = process.argv.slice(2);

interface Event {
  event: string;
  deployment_id: string;
}

const CONCURRENCY = 50;
const queue = new PQueue({ concurrency: CONCURRENCY });
const app = fastify();

app.post<{ Body: Event }>("/events", async ({ body }, reply) => {
  void queue.add(() => send(body).catch((error: unknown) => console.error(error)));
  return reply.code(202).send({ ok: true });
});

async function send(event: Event): Promise<void> {
  const id = `msg_${event.deployment_id}`;
  const at = new Date();
  const body = JSON.stringify(event);
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
      "webhook-signature": new Webhook(secret).sign(id, at, body),
    },
    body,
    signal: AbortSignal.timeout(15_000),
  });
  await response.text();
}

process.send?.(await app.listen({ host: "127.0.0.1", port: 0 }));
process.on("disconnect", () => process.exit());
