import { createHash } from "node:crypto";

/** The result for a valid credential, as `credentials-verify` returns it: docs/verify-credentials.md#results. */
export interface ValidCredential {
  readonly valid: true;
  readonly type: "api_key" | "jwt" | "workflow";
  readonly user_id: string;
  /** null unless it is an API key. */
  readonly key_id: string | null;
  /** null = all of the user. */
  readonly permissions: readonly string[] | null;
  /** null = all of the user. */
  readonly project_ids: readonly string[] | null;
  /** The role in the project that was asked about; null without one, and for a workflow. */
  readonly role: "admin" | "viewer" | null;
  /** The first moment at which the credential is rejected, ISO 8601; null = none. */
  readonly expires_at: string | null;
}

/** The result for a credential that is rejected. `malformed` is a mistake of the caller: respond with 400. */
export interface InvalidCredential {
  readonly valid: false;
  /** Respond with 401 unless it is `forbidden` (403), `not_found` (404) or `malformed` (400). */
  readonly code: string;
}

export type Verification = ValidCredential | InvalidCredential;

/** What an AWS SDK returns for `InvokeCommand`. */
export interface InvokeResponse {
  Payload?: Uint8Array | undefined;
}

export interface VerifierOptions {
  /** Invokes a Lambda function and waits for its response. The signal ends the call after five seconds. */
  invoke(functionName: string, payload: string, abortSignal: AbortSignal): Promise<InvokeResponse>;
  /** The output `CredentialsVerifyFunctionName` of the stack; in a local run `credentials-verify`. */
  verifyFunction: string;
  /** The output `CredentialsRevocationsFunctionName` of the stack; in a local run `credentials-revocations`. */
  revocationsFunction: string;
  /** Upper bound on the time from a revocation to the last use of a cached result, in seconds. Default: 5. */
  maxStaleSeconds?: number;
  /**
   * Upper bound on the age of a cached result, in seconds. It limits what is not in the feed of revocations, and `last_used_at` of a
   * key is at most this old while the key is used. Default: 300.
   */
  maxAgeSeconds?: number;
  /** Upper bound on cached results. The oldest is dropped first. A result takes about 1 KB. Default: 10,000. */
  maxEntries?: number;
  /** Called when the feed of revocations could not be read. The cache is not used until it can. Default: nothing. */
  onFeedError?(error: unknown): void;
}

export interface Question {
  /** The permission that the credential needs; absent = none. */
  permission?: string | undefined;
  /** The project that the request is about; absent = none. */
  projectId?: string | undefined;
}

/** The credential could not be checked, and may be valid: respond with 503, not with 401. */
export class VerificationUnavailableError extends Error {
  override readonly name = "VerificationUnavailableError";
}

const CALL_TIMEOUT_MS = 5_000;
/** The feed is followed for this long after the last verification. */
const IDLE_SECONDS = 60;
/** The service accepts no longer token. */
const MAX_TOKEN_CHARACTERS = 8_192;
const BEARER_TOKEN = /^[A-Za-z0-9._~+/=-]+$/;
/** For how long, and for how many credentials, a rejection answers the same question again. */
const REJECTION_SECONDS = 1;
const MAX_REJECTIONS = 1_000;
/** The rejections that are about the credential alone. Any other depends on whether the user is a member, and a new member is accepted at once. */
const CREDENTIAL_CODES = ["invalid_api_key", "api_key_expired", "invalid_token", "token_expired"];
/** Share of `maxStaleSeconds` between two reads of the feed: one may fail without a gap. */
const POLL_SHARE = 0.4;

interface CachedResult {
  result: ValidCredential;
  /** What revocations name: the key, the user and the projects that the result is about. */
  names: string[];
  askedAt: Moment;
  /** From then on. Not a time: the clock may be set back before it. */
  usableSeconds: number;
}

interface PendingCall {
  askedAt: Moment;
  result: Promise<Verification>;
}

/**
 * Verifies credentials by the function `credentials-verify`, and caches the results of valid ones. While it is in use it follows
 * the feed of revocations. A cached result is used only if the feed was read completely in the last `maxStaleSeconds`.
 */
export class Verifier {
  readonly #options: Required<VerifierOptions>;
  readonly #cache = new Map<string, CachedResult>();
  readonly #pending = new Map<string, PendingCall>();
  readonly #rejected = new Map<string, { result: InvalidCredential; at: Moment }>();
  #cursor: string | undefined;
  /** When the last read of the feed that succeeded was begun; undefined = none. */
  #followedAt: Moment | undefined;
  #usedAt: Moment = now();
  #isFollowing = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  /** @throws RangeError when `maxStaleSeconds` is less than 1 */
  constructor({
    maxStaleSeconds = 5,
    maxAgeSeconds = 300,
    maxEntries = 10_000,
    onFeedError,
    ...rest
  }: VerifierOptions) {
    if (!(maxStaleSeconds >= 1)) throw new RangeError(`maxStaleSeconds must be at least 1, not ${maxStaleSeconds}.`);
    this.#options = { maxStaleSeconds, maxAgeSeconds, maxEntries, onFeedError: onFeedError ?? (() => {}), ...rest };
  }

  /**
   * Verifies a credential. Only valid results are cached, so that a new member is accepted at once. A rejected credential is
   * asked about once a second, and text that cannot be a credential is rejected without a call.
   * @param token without `Bearer`
   * @throws VerificationUnavailableError when neither the cache nor the service has a result
   */
  async verify(token: string, { permission, projectId }: Question = {}): Promise<Verification> {
    const rejection = rejectionOf(token);
    if (rejection) return rejection;
    // Otherwise the many spellings of one id would displace other results. A null is left to the service, which refuses it:
    // as an absent project, it would skip the check that the user is a member.
    const entry = { token, permission, project_id: isText(projectId) ? projectId.toLowerCase() : projectId };
    this.#usedAt = now();
    if (!this.#isFollowing && !this.#isClosed) void this.#follow();
    // A result is cached for the whole question: the service knows the permissions, and which names are mistyped.
    const key = createHash("sha256").update(JSON.stringify(entry)).digest("base64");
    const cached = this.#cache.get(key);
    if (cached && this.#isUsable(cached)) return cached.result;
    const shared = this.#rejected.get(key);
    if (shared && secondsSince(shared.at) < REJECTION_SECONDS) return shared.result;
    const pending = this.#pending.get(key);
    if (pending && secondsSince(pending.askedAt) < this.#options.maxStaleSeconds) return pending.result;
    const askedAt = now();
    const result = this.#ask(key, entry, askedAt);
    this.#pending.set(key, { askedAt, result });
    try {
      return await result;
    } finally {
      if (this.#pending.get(key)?.result === result) this.#pending.delete(key);
    }
  }

  /** Stops following the feed, for good. Later verifications use no cache. */
  close(): void {
    this.#isClosed = true;
    this.#followedAt = undefined;
    this.#cache.clear();
    this.#rejected.clear();
    clearTimeout(this.#timer);
  }

  #isUsable({ askedAt, usableSeconds }: CachedResult): boolean {
    return this.#isFollowed() && secondsSince(askedAt) < usableSeconds;
  }

  #isFollowed(): boolean {
    return this.#followedAt !== undefined && secondsSince(this.#followedAt) < this.#options.maxStaleSeconds;
  }

  /** Asks the service about one credential. In a batch, one that cannot be checked would fail the others. */
  async #ask(key: string, entry: { project_id: string | undefined }, askedAt: Moment): Promise<Verification> {
    const followedBefore = this.#followedAt;
    const { results } = await this.#call(this.#options.verifyFunction, { credentials: [entry] }, isVerifyOutput);
    const [result] = results;
    // Callers share it.
    for (const value of [result, ...Object.values(result)]) Object.freeze(value);
    this.#cache.delete(key);
    if (!result.valid && CREDENTIAL_CODES.includes(result.code)) {
      put(this.#rejected, key, { result, at: now() }, MAX_REJECTIONS);
    }
    // A read of the feed during the call may have had a revocation that the result does not reflect.
    if (result.valid && this.#isFollowed() && this.#followedAt === followedBefore) {
      this.#store(key, result, entry.project_id, askedAt);
    }
    return result;
  }

  #store(key: string, result: ValidCredential, projectId: string | undefined, askedAt: Moment): void {
    // Without a project, any project that trusts the repository changes what a workflow may do.
    if (result.type === "workflow" && projectId === undefined) return;
    const { user_id, key_id, project_ids, expires_at } = result;
    const lifetime = expires_at === null ? Number.POSITIVE_INFINITY : (Date.parse(expires_at) - askedAt.wall) / 1000;
    const names = [user_id, key_id, projectId, ...(project_ids ?? [])].filter(isText);
    const usableSeconds = Math.min(this.#options.maxAgeSeconds, lifetime);
    put(this.#cache, key, { result, names, askedAt, usableSeconds }, this.#options.maxEntries);
  }

  /** Reads the feed, and plans the next read while the verifier is in use. */
  async #follow(): Promise<void> {
    this.#isFollowing = true;
    const begunAt = now();
    const input = this.#cursor === undefined ? {} : { after: this.#cursor };
    const page = await this.#call(this.#options.revocationsFunction, input, isRevocationPage).catch(
      (error: unknown) => {
        this.#options.onFeedError(error);
        return undefined;
      },
    );
    if (this.#isClosed) return;
    if (page) {
      this.#drop(page);
      this.#cursor = page.cursor;
      this.#followedAt = begunAt;
    }
    this.#isFollowing = secondsSince(this.#usedAt) < IDLE_SECONDS;
    if (!this.#isFollowing) return;
    this.#timer = setTimeout(() => void this.#follow(), this.#options.maxStaleSeconds * POLL_SHARE * 1000);
    // The feed does not keep the process running.
    this.#timer.unref();
  }

  #drop({ revocations, reset }: RevocationPage): void {
    const named = revocations.map((revocation) =>
      [revocation.key_id, revocation.user_id, revocation.project_id].find(isText),
    );
    // Everything, if entries are missing or of a kind that this release does not know.
    if (reset || named.includes(undefined)) this.#cache.clear();
    const revoked = new Set(named);
    if (revoked.size === 0) return;
    for (const [key, { names }] of this.#cache) if (names.some((name) => revoked.has(name))) this.#cache.delete(key);
  }

  /** @throws VerificationUnavailableError when the function fails, takes too long or returns something else */
  async #call<Output>(functionName: string, input: object, isExpected: (output: unknown) => output is Output) {
    const signal = AbortSignal.timeout(CALL_TIMEOUT_MS);
    try {
      const invoked = this.#options.invoke(functionName, JSON.stringify(input), signal);
      const { Payload } = await Promise.race([invoked, rejectionBy(signal)]);
      const output: unknown = JSON.parse(new TextDecoder().decode(Payload));
      // Also the description of an error of the function.
      if (!isExpected(output)) throw new Error(`It returned ${JSON.stringify(output)}.`);
      return output;
    } catch (cause) {
      throw new VerificationUnavailableError(`${functionName} did not respond. ${cause}`, { cause });
    }
  }
}

/** Stores an entry as the newest one. Above the maximum, the oldest is dropped. */
function put<Value>(entries: Map<string, Value>, key: string, value: Value, max: number): void {
  entries.delete(key);
  const [oldest] = entries.keys();
  if (oldest !== undefined && entries.size >= max) entries.delete(oldest);
  entries.set(key, value);
}

/** Returns the result for text that the service rejects without looking it up; undefined = ask the service. */
function rejectionOf(token: unknown): InvalidCredential | undefined {
  const isKey = isText(token) && token.startsWith("svc_");
  if (isText(token) && token.length > MAX_TOKEN_CHARACTERS)
    return rejected(isKey ? "invalid_api_key" : "invalid_token");
  if (!isText(token) || !BEARER_TOKEN.test(token)) return rejected("malformed");
  return isKey && !hasChecksum(token) ? rejected("invalid_api_key") : undefined;
}

const rejected = (code: string): InvalidCredential => Object.freeze({ valid: false, code });

/** Returns whether a text that begins with `svc_`, which no key of an earlier service does, is 60 characters and their CRC-32. */
function hasChecksum(key: string): boolean {
  if (!/^svc_[0-9a-f]{64}$/.test(key)) return false;
  let crc = -1;
  for (const character of key.slice(0, -8)) {
    crc ^= character.charCodeAt(0);
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return Number.parseInt(key.slice(-8), 16) === ~crc >>> 0;
}

/** A point in time on two clocks: one may stand still while a machine sleeps, and the other may be set back. */
interface Moment {
  monotonic: number;
  wall: number;
}

const now = (): Moment => ({ monotonic: performance.now(), wall: Date.now() });

const secondsSince = ({ monotonic, wall }: Moment): number =>
  Math.max(performance.now() - monotonic, Date.now() - wall) / 1000;

const rejectionBy = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));

const isText = (value: unknown): value is string => typeof value === "string";
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

interface VerifyOutput {
  results: [Verification];
}

function isVerifyOutput(output: unknown): output is VerifyOutput {
  const [result] = isRecord(output) && Array.isArray(output.results) ? output.results : [];
  if (!isRecord(result)) return false;
  return result.valid === true ? isText(result.user_id) : result.valid === false && isText(result.code);
}

interface RevocationPage {
  revocations: Record<string, unknown>[];
  cursor: string;
  reset?: boolean;
}

const isRevocationPage = (page: unknown): page is RevocationPage =>
  isRecord(page) && isText(page.cursor) && Array.isArray(page.revocations) && page.revocations.every(isRecord);
