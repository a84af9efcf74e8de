import { createHash, randomBytes } from "node:crypto";
import { inBatches } from "../../foundation/platform/parallel.ts";
import { forRow, type ImportResult, importRows, type Row } from "../../foundation/schema/import-rows.ts";
import { invalidField, parse } from "../../foundation/schema/input.ts";
import { importApiKey, MAX_KEYS_PER_USER } from "./api-key.ts";
import { type ImportedKeyInput, importedKeyInput, importInput } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";

/**
 * Stores keys of the platform's earlier service by their hashes. They are then keys like any other. A key is imported once: the
 * same row again changes nothing, also if the key was renamed, rolled or deleted since. The platform invokes this function with
 * IAM credentials.
 * @param input `{keys: [{hash, user_id, name, key_prefix, created_at, expires_at, permissions}], dry_run}`, at most 1,000
 * @returns the index of each row that is refused, with the reason. The others are imported
 */
export async function handler(input: unknown): Promise<ImportResult> {
  const { keys, dry_run = false } = parse(importInput, input);
  return importRows(keys, importedKeyInput(), dry_run, (rows, result) => importKeys(rows, result, dry_run));
}

type KeyRow = Row<ImportedKeyInput>;

async function importKeys(rows: KeyRow[], result: ImportResult, isDryRun: boolean): Promise<void> {
  const now = new Date();
  const known = await apiKeys.importsOf(rows.map(({ values }) => values.hash));
  const counts = await apiKeys.countsOf(rows.map(({ values }) => values.user_id));
  const added: (KeyRow & apiKeys.ImportedKey)[] = [];
  for (const { index, values } of rows) {
    await forRow(result, index, () => {
      const { hash, user_id } = values;
      const row = fingerprintOf(values);
      if (known.has(hash)) {
        requireSame(known.get(hash), row);
        result.unchanged += 1;
        return;
      }
      const apiKey = importApiKey(values, now, randomBytes(16));
      const count = counts.get(user_id) ?? 0;
      if (count >= MAX_KEYS_PER_USER) throw apiKeys.limitReached();
      counts.set(user_id, count + 1);
      known.set(hash, row);
      added.push({ index, values, apiKey, row });
    });
  }
  // One after the other: concurrent transactions on the counter of a user cancel each other.
  for (const batch of inBatches(added, apiKeys.MAX_KEYS_PER_IMPORT)) {
    if (isDryRun || (await apiKeys.insertImported(batch))) result.imported += batch.length;
    // Another call has stored one of these keys, or others of their users.
    else await importKeys(batch, result, isDryRun);
  }
}

/** Returns a hash of all values but the hash of the key. */
function fingerprintOf({ user_id, name, key_prefix, created_at, expires_at, permissions }: ImportedKeyInput): string {
  const values = [user_id, name, key_prefix, created_at ?? null, expires_at ?? null, permissions?.toSorted() ?? null];
  return createHash("sha256").update(JSON.stringify(values)).digest("base64url");
}

/** @param known what was imported for the hash; empty = nothing */
function requireSame(known: string | undefined, row: string): void {
  if (known === row) return;
  if (known === "") throw invalidField("hash", "is that of a key of this service");
  const message = "was imported before with another user_id, name, key_prefix, time or permissions";
  throw invalidField("hash", `${message}. Change the key with the API instead`);
}
