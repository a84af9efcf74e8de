import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mintToken } from "../bin/local/mint-token.ts";
import { asDeployed, billedMs } from "./billed-time.ts";
import { startChild, withStarted } from "./child.ts";
import { type Bench, type Result, tableOf } from "./harness.ts";
import { callApi, type Service, startService } from "./local-service.ts";
import { dollarsFor } from "./prices.ts";
import { readUnits } from "./units.ts";
import type { Credential, Message, Report, Use } from "./verifier-process.ts";

/*
 * Three processes verify credentials with caches of their own, while credentials are revoked in all ways, first with the feed of
 * revocations and then without. Counts the revocations after which a process used the old result for too long.
 */

/** The functions by their names in a local run. */
export const functions = { verifyFunction: "credentials-verify", revocationsFunction: "credentials-revocations" };

const full = {
  processes: 3,
  /** The bound: `maxStaleSeconds` of the verifiers. */
  staleSeconds: 5,
  /** Credentials that are revoked in each way, with the feed and again without. */
  ofEachKind: 5,
  /** Credentials that expire while the feed is read. They must be in the caches by then. */
  expiring: 5,
  /** Credentials that stay as they are. */
  unchanged: 30,
  changeForMs: 8_000,
};

export type Plan = typeof full;

export const bench: Bench = {
  name: "revoked-everywhere",
  about: "credentials in the caches of three processes after they were revoked",
  run: () => measureRevokedEverywhere(full),
};

interface Owned extends Credential {
  userId: string;
  keyId: string;
  /** A service whose token is the JWT of the owner. */
  owner: Service;
}

/** A revocation of a credential. Times are those of `Date.now()`. */
export interface Change {
  kind: string;
  id: string;
  begunAt: number;
  /** When the API had confirmed it. */
  endedAt: number;
  /** The credential stays valid, but a result from before the change is out of date. */
  isStillValid: boolean;
}

async function invoke({ baseUrl }: Service, name: string, payload: object): Promise<void> {
  const url = `${baseUrl}/2015-03-31/functions/${name}/invocations`;
  const response = await fetch(url, { method: "POST", body: JSON.stringify(payload) });
  const text = await response.text();
  if (!response.ok || response.headers.has("x-amz-function-error")) throw new Error(`${name}: ${text}`);
}

type Revoke = (owned: Owned) => Promise<unknown>;
const stillValid = ["other role", "suspended"];
const kinds: Record<string, Revoke> = {
  deleted: ({ owner, keyId }) => callApi(owner, `/v1/api-keys/${keyId}`, undefined, "DELETE"),
  rolled: ({ owner, keyId }) => callApi(owner, `/v1/api-keys/${keyId}/roll`, { overlap_seconds: 0 }),
  leaked: ({ owner, token }) => callApi(owner, "/v1/credentials/revoke", { credentials: [token] }),
  "member removed": ({ owner, userId: user_id, projectId: project_id }) =>
    invoke(owner, "projects-remove-member", { user_id, project_id }),
  "other role": ({ owner, userId: user_id, projectId: project_id }) =>
    invoke(owner, "projects-upsert-member", { user_id, project_id, name: "Bench", role: "viewer" }),
  suspended: ({ owner, projectId: project_id }) => invoke(owner, "projects-suspend", { project_id, suspended: true }),
};

async function createCredential(service: Service, secret: string, expiresAt?: string): Promise<Owned> {
  const [userId, projectId] = [`user-${randomUUID()}`, randomUUID()];
  const owner = { ...service, token: mintToken(secret, userId) };
  await invoke(service, "projects-upsert-member", { user_id: userId, project_id: projectId, name: "Bench" });
  const body = { name: "bench", ...(expiresAt && { expires_at: expiresAt }) };
  const created = await callApi(owner, "/v1/api-keys", body);
  const { data } = (await created.json()) as { data: { id: string; key: string } };
  return { id: data.id, keyId: data.id, token: data.key, projectId, userId, owner };
}

/** Revokes credentials in a random order, spread over a time. */
async function revokeAll(owned: { kind: string; credential: Owned }[], forMs: number): Promise<Change[]> {
  const changes: Change[] = [];
  for (const { kind, credential } of owned.toSorted(() => Math.random() - 0.5)) {
    const begunAt = Date.now();
    await kinds[kind]?.(credential);
    const isStillValid = stillValid.includes(kind);
    changes.push({ kind, id: credential.id, begunAt, endedAt: Date.now(), isStillValid });
    await sleep((Math.random() * 2 * forMs) / owned.length);
  }
  return changes;
}

/** Returns the uses of a result that was out of date for longer than allowed. */
export const lateUses = (uses: Use[], change: Change, staleMs: number): Use[] =>
  uses.filter(
    ({ id, askedAt, lastAt }) =>
      id === change.id && lastAt > change.endedAt + staleMs && (!change.isStillValid || askedAt < change.begunAt),
  );

export function measureRevokedEverywhere(plan: Plan): Promise<Result> {
  return withStarted(async (start) => {
    const secret = randomBytes(32).toString("hex");
    const service = await start(startService({ JWT_SECRET: secret }));
    const program = join(import.meta.dirname, "verifier-process.ts");
    const args = [service.baseUrl, String(plan.staleSeconds)];
    const processes = await Promise.all(
      Array.from({ length: plan.processes }, () => start(startChild<true>(program, { args }))),
    );
    const toAll = <Reply>(message: Message) => Promise.all(processes.map((each) => each.request<Reply>(message)));

    const ofKinds = async () => {
      const names = Object.keys(kinds).flatMap((kind) => Array<string>(plan.ofEachKind).fill(kind));
      return Promise.all(names.map(async (kind) => ({ kind, credential: await createCredential(service, secret) })));
    };
    const [withFeed, withoutFeed] = [await ofKinds(), await ofKinds()];
    const unchanged = await Promise.all(
      Array.from({ length: plan.unchanged }, () => createCredential(service, secret)),
    );
    const expiresAt = new Date(Date.now() + plan.changeForMs).toISOString();
    const expiring = await Promise.all(
      Array.from({ length: plan.expiring }, () => createCredential(service, secret, expiresAt)),
    );
    const all = [...withFeed, ...withoutFeed].map(({ credential }) => credential);
    const use = [...expiring, ...all, ...unchanged].map(({ id, token, projectId }) => ({ id, token, projectId }));
    await toAll<true>({ use });

    const staleMs = plan.staleSeconds * 1000;
    const followed = await revokeAll(withFeed, plan.changeForMs);
    await sleep(2 * staleMs);
    const reports = await toAll<Report>("report");
    await toAll<true>({ cut: [functions.revocationsFunction] });
    const cut = await revokeAll(withoutFeed, plan.changeForMs);
    await sleep(2 * staleMs);
    await toAll<true>({ cut: [functions.verifyFunction] });
    const cutAt = Date.now();
    await sleep(staleMs);

    const expired = expiring.map(({ id }): Change => {
      // No use of it is allowed from its time on.
      const endedAt = Date.parse(expiresAt) - staleMs - 1;
      return { kind: "expired", id, begunAt: endedAt, endedAt, isStillValid: false };
    });
    const unreachable = unchanged.map(
      ({ id }): Change => ({ kind: "unreachable", id, begunAt: cutAt, endedAt: cutAt - staleMs, isStillValid: false }),
    );
    const changes = [...followed, ...expired, ...cut, ...unreachable];
    return resultOf(changes, reports, await toAll<Report>("report"), staleMs);
  });
}

/**
 * @param followed reports at the end of the part with the feed
 * @param ended reports at the end
 * @throws Error when a process used a result for too long, or had no result of a credential
 */
export function resultOf(changes: Change[], followed: Report[], ended: Report[], staleMs: number): Result {
  const late = changes.flatMap((change) => ended.flatMap(({ uses }) => lateUses(uses, change, staleMs)));
  if (late.length > 0) throw new Error(`Results were used for too long: ${JSON.stringify({ late, changes })}.`);
  const missing = changes.filter(({ id }) => !ended.every(({ uses }) => uses.some((use) => use.id === id)));
  if (missing.length > 0) throw new Error(`Credentials were not accepted before: ${JSON.stringify(missing)}.`);
  const sumOf = (key: "verifications" | "hits" | "calls" | "reads") =>
    followed.reduce((sum, report) => sum + report[key], 0);
  const perMillion = (count: number) => (count * 1_000_000) / sumOf("verifications");
  const [call, read] = pricesPerCall();
  const kindsOf = [...Map.groupBy(changes, ({ kind }) => kind)].map(([kind, { length }]) => ({
    kind,
    changes: length,
  }));
  return {
    tables: [
      tableOf(`in the caches of ${ended.length} processes, none used later than ${staleMs / 1000} s`, kindsOf),
      tableOf("with the feed", [
        {
          verifications: sumOf("verifications"),
          "from the cache": `${((100 * sumOf("hits")) / sumOf("verifications")).toFixed(2)} %`,
          "$ per million": perMillion(sumOf("calls")) * call + perMillion(sumOf("reads")) * read,
          "$ per million without a cache": 1_000_000 * call,
        },
      ]),
    ],
    targets: [
      {
        name: "used too long after a revocation",
        value: late.length,
        bound: 0,
        of: `of ${changes.length} in ${ended.length} processes`,
      },
      {
        name: "verification from the cache, p50",
        value: Math.max(...ended.map(({ hitMicros }) => hitMicros)),
        bound: 50,
        unit: "µs",
      },
      { name: "verification without a cache, $ per million", value: 1_000_000 * call, bound: 1 },
    ],
    notes: ["Time is assumed, as for the authorizer. Clerk has announced $10 per million verifications of API keys."],
  };
}

/** Returns the price of a verification of a key in a project, and of a read of the feed, in dollars. */
function pricesPerCall(): [call: number, read: number] {
  const units = readUnits();
  const config = asDeployed(units);
  // Verify makes the reads of the authorizer and of the membership, one after the other; the feed is one query.
  const usage = units.calls.keyAuthorizer;
  const priceOf = (reads: number, memoryMb: number) =>
    dollarsFor("invocation", 1) +
    dollarsFor("read", reads) +
    dollarsFor("armSecond", (memoryMb / 1024) * (billedMs(usage, reads, 0, memoryMb, config) / 1000));
  return [priceOf(2, 512), priceOf(1, 256)];
}
