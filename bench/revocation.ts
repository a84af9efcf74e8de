import { setTimeout as sleep } from "node:timers/promises";
import { withStarted } from "./child.ts";
import { type Bench, type Result, type Target, tableOf } from "./harness.ts";
import { callApi, request, type Service, startService } from "./local-service.ts";

/*
 * Ends the validity of keys while many requests use them, and counts the requests that began after the answer of the API (or
 * after the expiry) and were accepted.
 */

const full = {
  /** Requests in flight with the key. */
  parallel: 50,
  /** How long each key is used before and after its end. */
  useMs: 400,
  /** Keys that are ended in each way. A slow machine ends fewer, one at least. */
  keys: 10,
  forMs: 15_000,
};

type Plan = typeof full;

export const bench: Bench = {
  name: "revocation",
  about: "requests with a key after it was deleted, revoked as leaked, rolled or has expired",
  run: () => measureRevocation(full),
};

interface Key {
  id: string;
  key: string;
  expires_at?: string;
}

async function createKey(service: Service, limits: object = {}): Promise<Key> {
  const created = await callApi(service, "/v1/api-keys", { name: "bench", ...limits });
  return ((await created.json()) as { data: Key }).data;
}

/** Enough for a slow machine to create the key and use it. */
const EXPIRES_AFTER_MS = 3_000;

/** Ends the validity of a key. Resolves when it must be rejected. */
type End = (service: Service, key: Key) => Promise<unknown>;

/** A timer may fire one millisecond early. */
export const untilExpired: End = (_, { expires_at = "" }) => sleep(Date.parse(expires_at) - Date.now() + 1);

const ways: Record<string, { limits?: () => object; end: End }> = {
  deleted: { end: (service, { id }) => callApi(service, `/v1/api-keys/${id}`, undefined, "DELETE") },
  "revoked as leaked": {
    end: (service, { key }) => callApi(service, "/v1/credentials/revoke", { credentials: [key] }),
  },
  "rolled without overlap": {
    end: (service, { id }) => callApi(service, `/v1/api-keys/${id}/roll`, { overlap_seconds: 0 }),
  },
  expired: {
    limits: () => ({ expires_at: new Date(Date.now() + EXPIRES_AFTER_MS).toISOString() }),
    end: untilExpired,
  },
};

interface Counts {
  keys: number;
  acceptedBefore: number;
  rejectedAfter: number;
  /** Requests that began after the end of their key and were accepted. */
  acceptedAfter: number;
}

export function measureRevocation(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const service = await start(startService());
    const counts: Record<string, Counts> = {};
    for (const [way, { limits, end }] of Object.entries(ways)) {
      const count = { keys: 0, acceptedBefore: 0, rejectedAfter: 0, acceptedAfter: 0 };
      const endsAt = performance.now() + plan.forMs;
      do {
        await useAndEnd(service, await createKey(service, limits?.()), plan, end, count);
        count.keys += 1;
      } while (count.keys < plan.keys && performance.now() < endsAt);
      counts[way] = count;
    }
    return resultOf(counts, plan.parallel);
  });
}

export async function useAndEnd(service: Service, key: Key, { parallel, useMs }: Plan, end: End, count: Counts) {
  const withKey = { ...service, token: key.key };
  let hasEnded = false;
  let isOver = false;
  /** Returns whether the request began after the end of the key. */
  const useOnce = async () => {
    const isAfter = hasEnded;
    const response = await request(withKey, "/v1/projects");
    await response.text();
    if (response.status !== 200 && response.status !== 401) throw new Error(`A request returned ${response.status}.`);
    const isAccepted = response.status === 200;
    // Neither is wrong for a request that was in flight when the key ended.
    if (isAfter) count[isAccepted ? "acceptedAfter" : "rejectedAfter"] += 1;
    else if (isAccepted) count.acceptedBefore += 1;
    return isAfter;
  };
  // On a busy machine too, a request ends before the end of the key, and one begins after it.
  const use = async () => {
    let isAfter = false;
    while (!isOver || (hasEnded && !isAfter)) isAfter = await useOnce();
  };
  await useOnce();
  const users = Array.from({ length: parallel }, use);
  const running = Promise.all(users);
  try {
    await Promise.race([running, sleep(useMs)]);
    await Promise.race([running, end(service, key)]);
    hasEnded = true;
    await Promise.race([running, sleep(useMs)]);
  } finally {
    isOver = true;
  }
  await running;
}

/** @throws Error when a request was accepted with a key that had ended, or none was tried */
export function resultOf(counts: Record<string, Counts>, parallel: number): Result {
  const wrong = Object.entries(counts).filter(
    ([, { acceptedBefore, rejectedAfter, acceptedAfter }]) => acceptedAfter > 0 || !acceptedBefore || !rejectedAfter,
  );
  if (wrong.length > 0)
    throw new Error(`Keys were not rejected as promised: ${JSON.stringify(Object.fromEntries(wrong))}.`);
  return {
    tables: [
      tableOf(
        `requests with a key, ${parallel} in flight`,
        Object.entries(counts).map(([key, count]) => ({ key, ...count })),
      ),
    ],
    targets: Object.entries(counts).map(([way, { acceptedAfter, rejectedAfter }]): Target => {
      const of = `of ${acceptedAfter + rejectedAfter} requests`;
      return { name: `accepted after: ${way}`, value: acceptedAfter, bound: 0, of };
    }),
  };
}
