/*
 * Answer first, work afterwards, and once: what `accept` does in all the examples. This one keeps ids in memory: fine for
 * one process whose work may be forgotten. Where it may not, put a row into your database instead, and let a worker take it:
 *
 *   async function accept({ id, payload }) {
 *     await sql`INSERT INTO inbox (id, payload) VALUES (${id}, ${payload}) ON CONFLICT (id) DO NOTHING`;
 *   }
 */

const MOST_IDS = 10_000;

/** @param {(payload: import("./verify-webhook.mjs").DeploymentEvent) => unknown} work is done after the answer */
export function createInbox(work) {
  const known = new Set();
  return {
    /** Resolves when the delivery is kept, which is when to answer 2xx. One that is known is kept already. */
    async accept({ id, payload }) {
      if (known.has(id)) return;
      known.add(id);
      if (known.size > MOST_IDS) known.delete(known.values().next().value);
      setImmediate(async () => {
        try {
          await work(payload);
        } catch (error) {
          // Forgotten, so that it may be redelivered. Nobody does that by itself: the answer was 2xx.
          known.delete(id);
          console.error(`delivery ${id} was accepted and could not be worked on`, error);
        }
      });
    },
  };
}
