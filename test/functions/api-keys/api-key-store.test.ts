import { randomBytes } from "node:crypto";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../../../functions/api-keys/api-key.ts";
import { findByHash, insert, list } from "../../../functions/api-keys/api-key-store.ts";
import { ConditionsFailedError } from "../../../functions/platform/aws.ts";
import { freshResources } from "../../support/resources.ts";

beforeAll(freshResources);

const newKey = (user: string) =>
  createApiKey(user, { name: "ci" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES)).apiKey;

test("insert never replaces the key of another user that has the same hash", async () => {
  const first = newKey("user-1");
  await insert(first);
  const error = await insert({ ...newKey("user-2"), key_hash: first.key_hash }).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ConditionsFailedError);
  expect(error).toMatchObject({ items: ["record"] });
  expect(await findByHash(first.key_hash)).toEqual(first);
  expect([await list("user-1"), await list("user-2")]).toEqual([[first], []]);
});
