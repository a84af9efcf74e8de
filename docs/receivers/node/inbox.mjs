/*
 * Responds first, then processes each delivery once, and ignores test deliveries: the `accept` of the examples. It keeps
 * the ids in memory, which suits a single process that may lose work when it restarts. Otherwise insert a row into your
 * database, and process it in a worker:
 *
 *   async function accept({ id, payload }) {
 *     if (payload.data.test === true) return;
 *     await sql`INSERT INTO inbox (id, payload) VALUES (${id}, ${payload}) ON CONFLICT (id) DO NOTHING`;
 *   }
 */

const MAX_IDS = 10_000;

/** @param {(payload: import("./verify-webhook.mjs").Delivery["payload"]) => unknown} handlePayload runs after the response */
export function createInbox(handlePayload) {
  const known = new Set();
  return {
    /** Resolves when the delivery is stored: respond with 2xx then. A known delivery is stored already. */
    async accept({ id, payload }) {
      if (known.has(id) || payload.data?.test === true) return;
      known.add(id);
      if (known.size > MAX_IDS) known.delete(known.values().next().value);
      setImmediate(async () => {
        try {
          await handlePayload(payload);
        } catch (error) {
          // Allows a manual redelivery. There is no automatic retry, because the response was 2xx.
          known.delete(id);
          console.error(`processing the accepted delivery ${id} failed`, error);
        }
      });
    },
  };
}
