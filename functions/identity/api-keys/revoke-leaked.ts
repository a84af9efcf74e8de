import { setTimeout as sleep } from "node:timers/promises";
import { chargeAddress } from "../../foundation/budgets/request-budget-store.ts";
import { accepted, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints, REVOCATIONS_PER_MINUTE_PER_ADDRESS } from "../../foundation/manifest/endpoints.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { invalidField } from "../../foundation/schema/input.ts";
import { leakInput, MAX_REVOKED_CREDENTIALS } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";
import { importedKeyKinds } from "./imported-keys.ts";
import { formsOf, keysIn } from "./key-format.ts";
import { answerScanner } from "./scanner-report.ts";
import { storedHashOf } from "./stored-hash.ts";

/** Longer than ending one key usually takes, so that the time of the answer does not say whether a key existed. */
const MIN_RESPONSE_MS = 100;

const LIMIT_REACHED = `This address has sent ${REVOCATIONS_PER_MINUTE_PER_ADDRESS} API keys in a minute. Nothing was revoked.`;

/**
 * Revokes the API keys in the given texts. Requires no credential: the holder of a key may revoke it. The response is the same
 * whether a key exists or not. Text without the checksum or the prefix of a key contains none, which anybody can compute: it
 * costs nothing, and is rejected if no text has a key, so that a finder does not believe that one was revoked. A scanner that signs
 * its reports gets another answer.
 */
export const handler = defineEndpoint(endpoints.revokeCredentials, {
  input: leakInput,
  answerForeign: answerScanner,
  async run({ input: { credentials }, actor, now }) {
    const prefixes = importedKeyKinds().map(({ prefix }) => prefix);
    const keysOfTexts = credentials.map((text) => keysIn(text, prefixes)).filter((keys) => keys.length > 0);
    if (keysOfTexts.length === 0) throw invalidField("credentials", "contain no API key with a valid checksum");
    const keys = [...new Set(keysOfTexts.flat())];
    if (keys.length > MAX_REVOKED_CREDENTIALS) {
      const message = `contain ${keys.length} API keys: send at most ${MAX_REVOKED_CREDENTIALS} in a request`;
      throw invalidField("credentials", message);
    }
    const hashed = await allEnded(keys.flatMap(formsOf).map(storedHashOf));
    const hashes = [...new Set(hashed.filter((hash) => hash !== undefined))];
    const address = actor.address ?? "unknown";
    await chargeAddress(address, hashes.length, REVOCATIONS_PER_MINUTE_PER_ADDRESS, now, LIMIT_REACHED);
    await allEnded([apiKeys.removeByHash(hashes, "leaked", now, actor), sleep(MIN_RESPONSE_MS)]);
    return accepted({ received: keysOfTexts.length });
  },
});
