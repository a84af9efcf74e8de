import { setTimeout as sleep } from "node:timers/promises";
import { accepted, defineEndpoint } from "../http/define-endpoint.ts";
import { allEnded } from "../platform/parallel.ts";
import { hashApiKey, isApiKey } from "./api-key.ts";
import { leakInput } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";

/** Longer than ending one key usually takes, so that the time of the answer does not say whether a key existed. */
const MIN_RESPONSE_MS = 100;

/**
 * Ends leaked API keys. Requires no credential: the holder of a key may end it. The answer is the same for unknown,
 * malformed and valid keys.
 */
export const handler = defineEndpoint("POST /v1/credentials/revoke", {
  input: leakInput,
  async run({ input: { credentials }, now }) {
    const hashes = [...new Set(credentials)].filter(isApiKey).map(hashApiKey);
    await allEnded([apiKeys.removeByHash(hashes, "leaked", now), sleep(MIN_RESPONSE_MS)]);
    return accepted({ received: credentials.length });
  },
});
