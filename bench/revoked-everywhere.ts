import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { mintToken } from "../bin/command/mint-token.ts";
import { Verifier } from "../packages/verifier/src/index.ts";
import { withStarted } from "./child.ts";
import { type Bench, percentile, type Result, tableOf } from "./harness.ts";
import { callApi, type Service, startService } from "./local-service.ts";

/*
 * Three callers verify credentials all the time, each with a cache of its own, while credentials are revoked in all ways, first
 * with the feed of revocations and then without. Counts the revocations after which a caller used the old result for too long.
 */

/** The functions by their names in a local run. */
const functions = { verifyFunction: "credentials-verify", revocationsFunction: "credentials-revocations" };

const full = {
  callers: 3,
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
  about: "credentials in the caches of three callers after they were revoked",
  run: () => measureRevokedEverywhere(full),
};

/** The use of a result. Times are those of `Date.now()`. */
export interface Use {
  id: string;
  /** When the call began that returned the result. */
  askedAt: number;
  /** When the last verification began that accepted the credential with this result. */
  lastAt: number;
}

/** A service of the platform that verifies credentials, with a cache of its own. */
interface Caller {
  /** Calls to these functions fail. */
  cut: Set<string>;
  uses: Map<string, Use>;
  /** Times of the verifications that the cache answered, in microseconds. */
  hits: number[];
  verify(owned: Owned): Promise<void>;
}

function callerOf(lambda: LambdaClient, maxStaleSeconds: number): Caller {
  const cut = new Set<string>();
  const uses = new Map<string, Use>();
  const hits: number[] = [];
  const askedAt = new Map<string, number>();
  const verifier = new Verifier({
    ...functions,
    maxStaleSeconds,
    async invoke(FunctionName, Payload, abortSignal) {
      if (cut.has(FunctionName)) throw new Error("The connection is cut.");
      const begunAt = Date.now();
      const response = await lambda.send(new InvokeCommand({ FunctionName, Payload }), { abortSignal });
      if (FunctionName === functions.verifyFunction) askedAt.set(JSON.parse(Payload).credentials[0].token, begunAt);
      return response;
    },
  });
  const verify = async ({ id, token, projectId }: Owned): Promise<void> => {
    const asked = askedAt.get(token);
    const [begunAt, begun] = [Date.now(), performance.now()];
    const result = await verifier.verify(token, { projectId }).catch(() => undefined);
    const micros = (performance.now() - begun) * 1000;
    if (!result?.valid) return;
    const answered = askedAt.get(token) ?? Number.NaN;
    if (answered === asked) hits.push(micros);
    uses.set(`${id} ${answered}`, { id, askedAt: answered, lastAt: begunAt });
  };
  return { cut, uses, hits, verify };
}

/** Verifications between two pauses, so that all callers and the service share the CPU. */
const BURST = 20;
const PAUSE_MS = 5;

async function verifyUntil(signal: AbortSignal, { verify }: Caller, credentials: Owned[]): Promise<void> {
  for (let count = 1; !signal.aborted; count++) {
    const credential = credentials[Math.floor(Math.random() * credentials.length)];
    if (credential) await verify(credential);
    if (count % BURST === 0) await sleep(PAUSE_MS);
  }
}

interface Owned {
  id: string;
  token: string;
  projectId: string;
  userId: string;
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
  deleted: ({ owner, id }) => callApi(owner, `/v1/api-keys/${id}`, undefined, "DELETE"),
  rolled: ({ owner, id }) => callApi(owner, `/v1/api-keys/${id}/roll`, { overlap_seconds: 0 }),
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
  return { id: data.id, token: data.key, projectId, userId, owner };
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
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    const lambda = new LambdaClient({ endpoint: service.baseUrl, region: "local", credentials });
    const callers = Array.from({ length: plan.callers }, () => callerOf(lambda, plan.staleSeconds));
    const cutAll = (name: string) => callers.forEach(({ cut }) => void cut.add(name));

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
    const used = [...expiring, ...all, ...unchanged];
    // Twice: the first result may not be cached, because the first read of the feed ended during its call.
    for (const caller of callers) for (const credential of [...used, ...used]) await caller.verify(credential);
    const stopping = new AbortController();
    const verifying = Promise.all(callers.map((caller) => verifyUntil(stopping.signal, caller, used)));

    const staleMs = plan.staleSeconds * 1000;
    const followed = await revokeAll(withFeed, plan.changeForMs);
    await sleep(2 * staleMs);
    cutAll(functions.revocationsFunction);
    const cut = await revokeAll(withoutFeed, plan.changeForMs);
    await sleep(2 * staleMs);
    cutAll(functions.verifyFunction);
    const cutAt = Date.now();
    await sleep(staleMs);
    stopping.abort();
    await verifying;

    const expired = expiring.map(({ id }): Change => {
      // No use of it is allowed from its time on.
      const endedAt = Date.parse(expiresAt) - staleMs - 1;
      return { kind: "expired", id, begunAt: endedAt, endedAt, isStillValid: false };
    });
    const unreachable = unchanged.map(
      ({ id }): Change => ({ kind: "unreachable", id, begunAt: cutAt, endedAt: cutAt - staleMs, isStillValid: false }),
    );
    const changes = [...followed, ...expired, ...cut, ...unreachable];
    return resultOf(changes, callers, staleMs);
  });
}

type Counted = Pick<Caller, "uses" | "hits">;

/** @throws Error when a caller used a result for too long, or had no result of a credential */
export function resultOf(changes: Change[], callers: Counted[], staleMs: number): Result {
  const usesOf = callers.map(({ uses }) => [...uses.values()]);
  const late = changes.flatMap((change) => usesOf.flatMap((uses) => lateUses(uses, change, staleMs)));
  if (late.length > 0) throw new Error(`Results were used for too long: ${JSON.stringify({ late, changes })}.`);
  const missing = changes.filter(({ id }) => !usesOf.every((uses) => uses.some((use) => use.id === id)));
  if (missing.length > 0) throw new Error(`Credentials were not accepted before: ${JSON.stringify(missing)}.`);
  const kindsOf = [...Map.groupBy(changes, ({ kind }) => kind)].map(([kind, { length }]) => ({
    kind,
    changes: length,
  }));
  const of = `of ${changes.length} in ${callers.length} caches`;
  const hitMicros = Math.max(...callers.map(({ hits }) => percentile(50, hits)));
  return {
    tables: [tableOf(`in ${callers.length} caches, none used later than ${staleMs / 1000} s`, kindsOf)],
    targets: [
      { name: "used too long after a revocation", value: late.length, bound: 0, of },
      { name: "verification from the cache, p50", value: hitMicros, bound: 50, unit: "µs" },
    ],
  };
}
