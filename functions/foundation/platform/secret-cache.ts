import { secretVersions } from "./aws.ts";
import { log } from "./log.ts";

const CACHE_TTL_MS = 5 * 60_000;
/** Minimum time between two refreshes, also when the last one failed. */
const MIN_REFRESH_INTERVAL_MS = 30_000;
/** Time for which a failed first read is not repeated: callers keep sending credentials during an outage. */
const FAILURE_CACHE_TTL_MS = 5_000;

type Versions = Awaited<ReturnType<typeof secretVersions>>;

interface Read<Value> {
  value: Promise<Value>;
  hasFailed: boolean;
  /** Epoch milliseconds: when the secret is read again, and from when on `refresh` may read it. */
  expiresAt: number;
  refreshableAt: number;
}

/**
 * Caches what is derived from a secret in Secrets Manager for five minutes. Concurrent callers share a read.
 * @param name of the secret in the log
 * @param stages of the versions; absent = the current and the previous one
 * @param parse throws when the secret cannot be used, which counts as a failed read
 */
export function secretCache<Value>(
  name: string,
  parse: (versions: Versions, arn: string) => Value,
  stages?: Parameters<typeof secretVersions>[1],
) {
  const reads = new Map<string, Read<Value>>();

  function read(arn: string, at: number): Promise<Value> {
    const stale = reads.get(arn);
    const load = async () => parse(await secretVersions(arn, stages), arn);
    const value = load().catch((error: unknown) => {
      if (stale === undefined || stale.hasFailed) {
        Object.assign(latest, { hasFailed: true, expiresAt: at + FAILURE_CACHE_TTL_MS });
        throw error;
      }
      // Serve the stale value if the refresh fails.
      log.error(`${name} could not be refreshed`, error);
      latest.expiresAt = Math.max(stale.expiresAt, latest.refreshableAt);
      return stale.value;
    });
    const latest = {
      value,
      hasFailed: false,
      expiresAt: at + CACHE_TTL_MS,
      refreshableAt: at + MIN_REFRESH_INTERVAL_MS,
    };
    reads.set(arn, latest);
    return value;
  }

  return {
    /** @throws the error of the read when it fails, and there is no earlier value */
    get(arn: string, now: Date): Promise<Value> {
      const last = reads.get(arn);
      return last && now.getTime() < last.expiresAt ? last.value : read(arn, now.getTime());
    },
    /** Reads a secret again that may have changed; undefined = it was never read, or the last read is too recent. */
    async refresh(arn: string, now: Date): Promise<Value | undefined> {
      const last = reads.get(arn);
      return last && now.getTime() >= last.refreshableAt ? read(arn, now.getTime()) : undefined;
    },
  };
}
