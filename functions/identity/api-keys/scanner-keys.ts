import { createPublicKey, type KeyObject } from "node:crypto";
import { settings } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { parseJson } from "../../foundation/platform/parse-json.ts";

/*
 * The public keys with which a scanner of secrets signs its reports, as GitHub publishes them:
 * {"public_keys":[{"key_identifier","key" (PEM),"is_current"}]}. One that is not current any more signs what was sent
 * before.
 */

/** The longest time for which a key is accepted that the list does not have any more, while the list can be fetched. */
const REFRESH_AFTER_MS = 3_600_000;
/** The same while it cannot. */
const MAX_STALE_MS = 24 * 3_600_000;
/**
 * Anybody can name an unknown key, and GitHub answers 60 requests an hour and address: a list is not fetched more
 * often.
 */
const FETCH_INTERVAL_MS = 5 * 60_000;
const TIMEOUT_MS = 5_000;
/** GitHub's has 1 KB. */
const MAX_BYTES = 256 * 1024;

interface KeyList {
  keys: ReadonlyMap<string, KeyObject>;
  fetchedAt: number;
}

/** What is known of the list at an address. */
class ScannerKeys {
  readonly #uri: string;
  #list: KeyList | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | undefined;
  #hasFailed = false;

  constructor(uri: string) {
    this.#uri = uri;
  }

  async find(id: string, now: Date): Promise<KeyObject | undefined> {
    const at = now.getTime();
    const isFresh = this.#list !== undefined && at - this.#list.fetchedAt < REFRESH_AFTER_MS;
    const isKnown = isFresh && this.#list?.keys.has(id);
    if (!isKnown && at - this.#triedAt >= FETCH_INTERVAL_MS) {
      this.#triedAt = at;
      this.#fetching = this.#fetch(at);
    }
    await this.#fetching;
    const isUsable = this.#list !== undefined && at - this.#list.fetchedAt < MAX_STALE_MS;
    const key = isUsable ? this.#list?.keys.get(id) : undefined;
    // It may be a new one.
    if (key === undefined && this.#hasFailed) throw unavailable();
    return key;
  }

  async #fetch(at: number): Promise<void> {
    try {
      this.#list = { keys: await download(this.#uri), fetchedAt: at };
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
      log.error("the keys of the secret scanner could not be fetched", error);
    } finally {
      this.#fetching = undefined;
    }
  }
}

const unavailable = () =>
  new ApiError(
    "service_unavailable",
    "The public keys of the scanner cannot be fetched. Nothing was revoked: send it again.",
    {
      headers: { "Retry-After": String(FETCH_INTERVAL_MS / 1000) },
    },
  );

async function download(uri: string): Promise<Map<string, KeyObject>> {
  const headers = { Accept: "application/json", "User-Agent": "deployment-webhooks" };
  const response = await fetch(uri, { headers, redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok || response.body === null) throw new Error(`${uri} returned ${response.status}`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error(`${uri} returned more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  const entries: unknown = Object(parseJson(Buffer.concat(chunks).toString("utf8"))).public_keys;
  if (!Array.isArray(entries)) throw new Error(`${uri} returned no public_keys`);
  const keys = new Map(entries.map((entry) => usableKey(Object(entry))).filter((each) => each !== undefined));
  if (keys.size === 0) throw new Error(`${uri} returned no key of P-256`);
  return keys;
}

/** Returns id and key; undefined for an entry that is no key of P-256, which is ignored. */
function usableKey({ key_identifier: id, key: pem }: Record<string, unknown>): [string, KeyObject] | undefined {
  if (typeof id !== "string" || typeof pem !== "string") return undefined;
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyDetails?.namedCurve === "prime256v1" ? [id, key] : undefined;
  } catch {
    return undefined;
  }
}

const lists = new Map<string, ScannerKeys>();

/**
 * Returns the public key of a scanner with this id; undefined = there is none.
 * @throws ApiError `service_unavailable` when it is unknown, and the list could not be fetched
 */
export function scannerKey(id: string, now: Date): Promise<KeyObject | undefined> {
  const uri = settings.secretScanningKeysUrl();
  const list = lists.get(uri) ?? new ScannerKeys(uri);
  lists.set(uri, list);
  return list.find(id, now);
}
