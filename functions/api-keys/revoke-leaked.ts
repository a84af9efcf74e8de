import { setTimeout as sleep } from "node:timers/promises";
import { chargeAddress } from "../access/request-budget-store.ts";
import { accepted, defineEndpoint } from "../http/define-endpoint.ts";
import { endpoints, REVOCATIONS_PER_MINUTE_PER_ADDRESS } from "../manifest/endpoints.ts";
import { allEnded } from "../platform/parallel.ts";
import { leakInput } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";
import { storedHashOf } from "./stored-hash.ts";

/** Longer than ending one key usually takes, so that the time of the answer does not say whether a key existed. */
const MIN_RESPONSE_MS = 100;

const LIMIT_REACHED = `This address has sent ${REVOCATIONS_PER_MINUTE_PER_ADDRESS} API keys in a minute. Nothing was revoked.`;

/**
 * Ends leaked API keys. Requires no credential: the holder of a key may end it. The answer is the same for unknown,
 * malformed and valid keys. Text without the checksum or the prefix of a key cannot be one: it costs nothing and counts for nothing.
 */
export const handler = defineEndpoint(endpoints.revokeCredentials, {
  input: leakInput,
  async run({ input: { credentials }, actor, now }) {
    const texts = [...new Set(credentials)];
    const hashes = (await allEnded(texts.map(storedHashOf))).filter((hash) => hash !== undefined);
    if (hashes.length > 0) {
      await chargeAddress(
        actor.address ?? "unknown",
        hashes.length,
        REVOCATIONS_PER_MINUTE_PER_ADDRESS,
        now,
        LIMIT_REACHED,
      );
      await allEnded([apiKeys.removeByHash(hashes, "leaked", now, actor), sleep(MIN_RESPONSE_MS)]);
    }
    return accepted({ received: credentials.length });
  },
});
