import { createHash, randomBytes } from "node:crypto";
import { ApiError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { forRow, type ImportResult } from "../schema/import-rows.ts";
import { invalidField, parse } from "../schema/input.ts";
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
  const now = new Date();
  const schema = importedKeyInput();
  const result: ImportResult = { imported: 0, unchanged: 0, refused: [] };
  const rows: Row[] = [];
  for (const [index, key] of keys.entries()) {
    await forRow(result, index, () => {
      const values = parse(schema, key);
      rows.push({ index, values, row: fingerprintOf(values) });
    });
  }
  const known = await apiKeys.importsOf(rows.map(({ values }) => values.hash));
  const added: NewRow[] = [];
  const others: Row[] = [];
  const seen = new Set(known.keys());
  for (const row of rows) {
    await forRow(result, row.index, () => {
      if (seen.has(row.values.hash)) return void others.push(row);
      added.push({ ...row, apiKey: importApiKey(row.values, now, randomBytes(16)) });
      seen.add(row.values.hash);
    });
  }

  const store = dry_run ? await dryStore(added) : apiKeys.insertImported;
  const isStored = async (batch: NewRow[]): Promise<boolean> => {
    if (!(await store(batch))) return false;
    for (const { values, row } of batch) known.set(values.hash, row);
    result.imported += batch.length;
    return true;
  };
  const batchSize = dry_run ? 1 : apiKeys.MAX_KEYS_PER_IMPORT;
  // One after the other: concurrent transactions on the counter of a user cancel each other.
  for (let start = 0; start < added.length; start += batchSize) {
    const batch = added.slice(start, start + batchSize);
    if (batch.length > 1 && (await isStored(batch).catch(isAboutRow))) continue;
    // At least one cannot be stored.
    for (const row of batch) {
      await forRow(result, row.index, async () => {
        if (!(await isStored([row]))) others.push(row);
      });
    }
  }
  const late = others.flatMap(({ values }) => (known.has(values.hash) ? [] : values.hash));
  for (const [hash, row] of await apiKeys.importsOf(late)) known.set(hash, row);
  for (const { index, values, row } of others) {
    await forRow(result, index, () => {
      requireSame(known.get(values.hash), row);
      result.unchanged += 1;
    });
  }

  result.refused.sort((a, b) => a.index - b.index);
  const { imported, unchanged, refused } = result;
  if (!dry_run) log.info("api keys imported", { imported, unchanged, refused: refused.length });
  return result;
}

interface Row {
  index: number;
  values: ImportedKeyInput;
  /** A hash of all values. */
  row: string;
}
type NewRow = Row & apiKeys.ImportedKey;

function fingerprintOf({ user_id, name, key_prefix, created_at, expires_at, permissions }: ImportedKeyInput): string {
  const values = [user_id, name, key_prefix, created_at ?? null, expires_at ?? null, permissions?.toSorted() ?? null];
  return createHash("sha256").update(JSON.stringify(values)).digest("base64url");
}

const isAboutRow = (error: unknown): false => {
  if (error instanceof ApiError) return false;
  throw error;
};

/** @param known what was imported for the hash: empty = nothing, undefined = the hash is not stored */
function requireSame(known: string | undefined, row: string): void {
  if (known === row) return;
  if (known === undefined) throw invalidField("hash", "is that of a row before it, which is refused");
  if (known === "") throw invalidField("hash", "is that of a key of this service");
  const message = "was imported before with another user_id, name, key_prefix, time or permissions";
  throw invalidField("hash", `${message}. Change the key with the API instead`);
}

/** Returns the store of a dry run, which enforces the limit of keys per user and stores nothing. */
async function dryStore(added: NewRow[]): Promise<typeof apiKeys.insertImported> {
  const counts = await apiKeys.countsOf([...new Set(added.map(({ apiKey }) => apiKey.user_id))]);
  return async (keys) => {
    for (const { apiKey } of keys) {
      const count = counts.get(apiKey.user_id) ?? 0;
      if (count >= MAX_KEYS_PER_USER) throw apiKeys.limitReached();
      counts.set(apiKey.user_id, count + 1);
    }
    return true;
  };
}
