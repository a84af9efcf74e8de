import { randomUUID } from "node:crypto";
import { setImmediate as immediate } from "node:timers/promises";
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { jest } from "@jest/globals";
import type { Verification as ServiceVerification } from "../../../functions/identity/verification/verify.ts";
import {
  type InvokeResponse,
  type Verification,
  VerificationUnavailableError,
  Verifier,
  type VerifierOptions,
} from "../../../packages/verifier/src/index.ts";
import { unknownApiKey } from "../../support/api-keys.ts";
import { call } from "../../support/call.ts";
import { startCiSystem } from "../../support/ci-system.ts";
import { eventually } from "../../support/eventually.ts";
import { fakeDate } from "../../support/fake-date.ts";
import { useService } from "../../support/service.ts";

const service = useService();
const opened: Verifier[] = [];
afterEach(() => {
  for (const verifier of opened.splice(0)) verifier.close();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

const functions = { verifyFunction: "credentials-verify", revocationsFunction: "credentials-revocations" };
type Respond = () => Promise<InvokeResponse>;

/** Creates a verifier that invokes the functions of the service by an AWS SDK. `link` shows and changes what it sends. */
function givenVerifier(options: Partial<VerifierOptions> = {}) {
  const lambda = new LambdaClient({ endpoint: service.baseUrl, maxAttempts: 1 });
  const link = {
    /** Calls that were begun, reads of the feed that were begun, and how many the last one was of those that ended. */
    verifications: 0,
    begun: 0,
    ended: 0,
    /** Runs instead of each call. */
    verify: (respond: Respond) => respond(),
    read: (respond: Respond) => respond(),
  };
  const verifier = new Verifier({
    async invoke(FunctionName, Payload, abortSignal) {
      const respond = () => lambda.send(new InvokeCommand({ FunctionName, Payload }), { abortSignal });
      if (FunctionName === functions.verifyFunction) {
        link.verifications += 1;
        return link.verify(respond);
      }
      link.begun += 1;
      const read = link.begun;
      return link.read(respond).finally(() => (link.ended = read));
    },
    ...functions,
    maxStaleSeconds: 1,
    ...options,
  });
  opened.push(verifier);
  /** Returns how many calls of `credentials-verify` a piece of work causes. */
  const verificationsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const before = link.verifications;
    await work();
    return link.verifications - before;
  };
  return {
    verifier,
    link,
    verificationsOf,
    /** Verifies a credential until its result is cached. */
    async cached(token: string, question: { permission?: string; projectId?: string } = {}): Promise<Verification> {
      return eventually(async () => {
        let result: Verification | undefined;
        const calls = await verificationsOf(async () => (result = await verifier.verify(token, question)));
        expect(calls).toBe(0);
        return result as Verification;
      });
    },
    /** Waits for a read of the feed that begins after this. */
    async nextRead(): Promise<void> {
      const { begun } = link;
      await eventually(() => expect(link.ended).toBeGreaterThan(begun));
    },
  };
}

async function givenKey(limits: object = {}) {
  const { api, userId, token: session } = service.user();
  const projectId = await service.project(userId);
  const { id, key } = (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data;
  return { api, userId, session, projectId, id, key, path: `/v1/api-keys/${id}` };
}

const never = () => new Promise<never>(() => {});
const outage = () => Promise.reject(new Error("connect ECONNREFUSED"));
const rejected = (code: string) => ({ valid: false, code });
const payload = (value: unknown): InvokeResponse => ({ Payload: new TextEncoder().encode(JSON.stringify(value)) });

describe("a result", () => {
  test("is that of the function, first from it and then from the cache", async () => {
    const { key, session, projectId } = await givenKey({ permissions: ["webhooks:read"] });
    for (const token of [key, session]) {
      const { verifier, cached } = givenVerifier();
      const question = { permission: "webhooks:read", project_id: projectId };
      // The types are the same, too.
      const { results }: { results: Verification[] } = await call<{ results: ServiceVerification[] }>(
        "credentials-verify",
        {
          credentials: [{ token, ...question }],
        },
      );
      const first = await verifier.verify(token, { permission: "webhooks:read", projectId });
      expect([first]).toEqual(results);
      expect([await cached(token, { permission: "webhooks:read", projectId })]).toEqual(results);
    }
  });

  test("is for its permission and its project alone, and a cached one cannot be changed by its callers", async () => {
    const { key, projectId } = await givenKey({ permissions: ["webhooks:read"] });
    const { verifier, cached } = givenVerifier();
    const result = await cached(key, { permission: "webhooks:read", projectId });
    expect(() => Object.assign(result, { role: "admin" })).toThrow(TypeError);
    expect(() => Object.assign(result, { permissions: ["webhooks:write"] })).toThrow(TypeError);
    expect(() => Object.assign(Object(result).permissions, ["webhooks:write"])).toThrow(TypeError);
    expect(await verifier.verify(key, { permission: "webhooks:write", projectId })).toEqual(rejected("forbidden"));
    expect(await verifier.verify(key, { permission: "webhooks:raed", projectId })).toEqual(rejected("malformed"));
    const elsewhere = { permission: "webhooks:read", projectId: randomUUID() };
    expect(await verifier.verify(key, elsewhere)).toEqual(rejected("not_found"));
  });

  test("of a user who is no member is asked for each time, so that a new member is accepted at once", async () => {
    const { key, userId } = await givenKey();
    const projectId = randomUUID();
    const { verifier, cached } = givenVerifier();
    await cached(key);
    expect(await verifier.verify(key, { projectId })).toEqual(rejected("not_found"));
    await service.project(userId, { projectId });
    expect(await verifier.verify(key, { projectId })).toMatchObject({ valid: true });
  });

  const key = unknownApiKey();
  const impossible: [string, unknown][] = [
    ["an empty text", ""],
    ["a token with spaces around it", ` ${key} `],
    ["a token with a line break", `${key}\n`],
    ["a scheme before a token", `Bearer ${key}`],
    ["a token that is not ASCII", `${key}\u00e9`],
    ["a key with a wrong checksum", key.replace(/.$/, (last) => (last === "0" ? "1" : "0"))],
    ["a key that is too short", key.slice(0, -1)],
    ["a key that is too long", `${key}0`],
    ["a key in upper case", `svc_${key.slice(4).toUpperCase()}`],
    ["the prefix alone", "svc_"],
    ["the prefix of a key of an earlier service after ours", "svc_acme_0123456789"],
    ["a number", 5],
    ["null", null],
    ["nothing", undefined],
    ["a JWT of 8,193 characters", "a.b.".padEnd(8_193, "c")],
    ["a key of 100 KB", `svc_${"0".repeat(100_000)}`],
  ];

  test.each(impossible)("of %s is that of the service, without a call", async (_title, token) => {
    const { results } = await call<{ results: object[] }>("credentials-verify", { credentials: [{ token }] });
    const { verifier, link } = givenVerifier();
    expect([await verifier.verify(token as string)]).toEqual(results);
    expect(link).toMatchObject({ verifications: 0, begun: 0 });
  });

  test("of a key of an earlier service, a partner key and a JWT is asked for, whatever they look like", async () => {
    const { verifier, verificationsOf } = givenVerifier();
    const tokens = ["acme_1", `svcp_${"0".repeat(64)}`, "svc-1", "svc", "SVC_1", "a.b.".padEnd(8_192, "c")];
    for (const token of tokens) expect(await verificationsOf(() => verifier.verify(token))).toBe(1);
  });

  test("that rejects a credential is shared for a second, and asked for again after it", async () => {
    const { verifier, link, verificationsOf } = givenVerifier({ maxStaleSeconds: 5_000 });
    const clock = fakeDate();
    for (const code of ["invalid_api_key", "api_key_expired", "invalid_token", "token_expired"]) {
      link.verify = async () => payload({ results: [rejected(code)] });
      const again = () => Promise.all(Array.from({ length: 50 }, () => verifier.verify(code)));
      expect(await verificationsOf(again)).toBe(1);
      expect(await verificationsOf(again)).toBe(0);
      expect(await verificationsOf(() => verifier.verify(code, { permission: "webhooks:read" }))).toBe(1);
      link.verify = async () => payload({ results: [{ valid: true, user_id: "alice", expires_at: null }] });
      clock.advance(1);
      expect(await verifier.verify(code)).toMatchObject({ valid: true });
    }
    for (const code of ["not_found", "forbidden", "malformed"]) {
      link.verify = async () => payload({ results: [rejected(code)] });
      for (let count = 0; count < 3; count++) expect(await verificationsOf(() => verifier.verify("a"))).toBe(1);
    }
  });

  test("that rejects a credential is kept for the last thousand credentials, and not after an outage or a close", async () => {
    const { verifier, link, verificationsOf } = givenVerifier();
    fakeDate();
    link.verify = async () => payload({ results: [rejected("invalid_token")] });
    for (let count = 0; count <= 1_000; count++) await verifier.verify(`token-${count}`);
    expect(await verificationsOf(() => verifier.verify("token-1"))).toBe(0);
    expect(await verificationsOf(() => verifier.verify("token-0"))).toBe(1);
    link.verify = outage;
    for (let count = 0; count < 2; count++)
      await expect(verifier.verify("down")).rejects.toThrow(VerificationUnavailableError);
    expect(link.verifications).toBe(1_001 + 1 + 2);
    link.verify = async () => payload({ results: [rejected("invalid_token")] });
    verifier.close();
    expect(await verificationsOf(() => verifier.verify("token-0"))).toBe(1);
  });

  test("of a workflow is cached for a project only, and dropped when the project no longer trusts it", async () => {
    const { trust, token } = await startCiSystem("ci");
    const { api, projectId } = await givenKey();
    const trusts = `/v1/projects/${projectId}/trusted-workflows`;
    const { id } = (await api.post(trusts, trust)).body.data;
    const workflow = token();
    const { verifier, cached, verificationsOf } = givenVerifier();
    expect(await cached(workflow, { projectId })).toMatchObject({ type: "workflow" });
    expect(await verificationsOf(() => verifier.verify(workflow))).toBe(1);
    expect(await verificationsOf(() => verifier.verify(workflow))).toBe(1);
    await api.delete(`${trusts}/${id}`);
    await eventually(async () =>
      expect(await verifier.verify(workflow, { projectId })).toEqual(rejected("invalid_token")),
    );
  });

  test("is never used from its expires_at on", async () => {
    const expires_at = new Date(Date.now() + 3_000_000).toISOString();
    const { key } = await givenKey({ expires_at });
    const { verifier, cached } = givenVerifier({ maxStaleSeconds: 5_000, maxAgeSeconds: 5_000 });
    expect(await cached(key)).toMatchObject({ expires_at });
    fakeDate().advance(3_000.001);
    expect(await verifier.verify(key)).toEqual(rejected("api_key_expired"));
  });

  test("is not used from its expires_at on when its call took some of the time until then", async () => {
    const clock = fakeDate();
    const expires_at = new Date(Date.now() + 100_000).toISOString();
    const { verifier, link, verificationsOf } = givenVerifier({ maxStaleSeconds: 5_000 });
    link.verify = async () => {
      clock.advance(4);
      return payload({ results: [{ valid: true, user_id: "alice", expires_at }] });
    };
    link.read = async () => payload({ revocations: [], cursor: "2026-11-22T09:30:00.000Z" });
    await verifier.verify("a");
    await immediate();
    await verifier.verify("a");
    clock.advance(91);
    expect(await verificationsOf(() => verifier.verify("a"))).toBe(0);
    clock.advance(1);
    expect(await verificationsOf(() => verifier.verify("a"))).toBe(1);
  });

  test("is used no longer than until its expires_at when the clock is set back", async () => {
    const { key } = await givenKey({ expires_at: new Date(Date.now() + 3_000_000).toISOString() });
    const { verifier, cached, verificationsOf } = givenVerifier({ maxStaleSeconds: 5_000, maxAgeSeconds: 5_000 });
    await cached(key);
    const elapsed = performance.now.bind(performance);
    jest.spyOn(performance, "now").mockImplementation(() => elapsed() + 3_000_001);
    fakeDate().advance(-3_600);
    expect(await verificationsOf(() => verifier.verify(key))).toBe(1);
  });

  test("is not that of an absent project or permission for a null, which is malformed", async () => {
    const { key } = await givenKey();
    const { verifier, cached } = givenVerifier();
    await cached(key);
    for (const question of [{ projectId: null }, { permission: null }])
      expect(await verifier.verify(key, question as object)).toEqual(rejected("malformed"));
  });

  test("is asked for again when it is older than its upper bound, and the oldest is dropped above another", async () => {
    const keys = await Promise.all([givenKey(), givenKey(), givenKey()]);
    const [first = "", second = "", third = ""] = keys.map(({ key }) => key);
    const { verifier, cached, verificationsOf } = givenVerifier({ maxStaleSeconds: 5_000, maxEntries: 2 });
    for (const key of [first, second, third]) await cached(key);
    expect(await verificationsOf(() => verifier.verify(second))).toBe(0);
    expect(await verificationsOf(() => verifier.verify(first))).toBe(1);
    fakeDate().advance(200);
    expect(await verificationsOf(() => verifier.verify(third))).toBe(0);
    jest.setSystemTime(Date.now() + 101_000);
    expect(await verificationsOf(() => verifier.verify(third))).toBe(1);
  });
});

test("the spellings of a project id share one result", async () => {
  const { key, projectId } = await givenKey();
  const { cached, verifier, verificationsOf } = givenVerifier({ maxStaleSeconds: 5_000 });
  await cached(key, { projectId });
  expect(await verificationsOf(() => verifier.verify(key, { projectId: projectId.toUpperCase() }))).toBe(0);
});

describe("a revocation", () => {
  type Given = Awaited<ReturnType<typeof givenKey>>;
  const rolled = (overlap_seconds: number) => (given: Given) =>
    given.api.post(`${given.path}/roll`, { overlap_seconds });
  const changes: Record<string, (given: Given) => Promise<unknown>> = {
    deleted: ({ api, path }) => api.delete(path),
    rolled: rolled(0),
    leaked: ({ api, key }) => api.post("/v1/credentials/revoke", { credentials: [key] }),
    "revoked by the platform": ({ userId }) => call("api-keys-revoke-all", { user_id: userId }),
    "member removed": ({ userId, projectId }) =>
      call("projects-remove-member", { user_id: userId, project_id: projectId }),
    "other role": ({ userId, projectId }) => service.project(userId, { projectId, role: "viewer" }),
    "rolled with an overlap": rolled(600),
  };

  test("of each kind is not in the cache after the next read of the feed", async () => {
    const { verifier, cached, nextRead } = givenVerifier({ maxStaleSeconds: 4 });
    const given = Object.fromEntries(
      await Promise.all(Object.keys(changes).map(async (kind) => [kind, await givenKey()] as const)),
    );
    const valid = { valid: true, role: "admin", expires_at: null };
    for (const { key, projectId } of Object.values(given))
      expect(await cached(key, { projectId })).toMatchObject(valid);
    await Promise.all(Object.entries(given).map(([kind, each]) => changes[kind]?.(each)));
    await nextRead();
    const results = Object.entries(given).map(async ([kind, { key, projectId }]) => [
      kind,
      await verifier.verify(key, { projectId }),
    ]);
    expect(Object.fromEntries(await Promise.all(results))).toMatchObject({
      deleted: rejected("invalid_api_key"),
      rolled: rejected("invalid_api_key"),
      leaked: rejected("invalid_api_key"),
      "revoked by the platform": rejected("invalid_api_key"),
      "member removed": rejected("not_found"),
      "other role": { ...valid, role: "viewer" },
      "rolled with an overlap": { ...valid, expires_at: expect.any(String) },
    });
  });

  test("of a suspended project drops the results in it, and those of other projects stay", async () => {
    const { key, projectId: project_id } = await givenKey();
    const other = await givenKey();
    const { verifier, cached, nextRead, verificationsOf } = givenVerifier({ maxStaleSeconds: 4 });
    await cached(key, { projectId: project_id.toUpperCase() });
    await cached(other.key, { projectId: other.projectId });
    await call("projects-suspend", { project_id, suspended: true });
    await nextRead();
    expect(await verificationsOf(() => verifier.verify(key, { projectId: project_id.toUpperCase() }))).toBe(1);
    expect(await verificationsOf(() => verifier.verify(other.key, { projectId: other.projectId }))).toBe(0);
  });

  test("that is read during a verification prevents the result from being cached", async () => {
    const { api, key, path } = await givenKey();
    const { verifier, link, nextRead } = givenVerifier({ maxStaleSeconds: 4 });
    await verifier.verify(unknownApiKey());
    await nextRead();
    link.verify = async (respond) => {
      link.verify = (next) => next();
      const response = await respond();
      await api.delete(path);
      await nextRead();
      // No later read: only this one has the revocation.
      link.read = outage;
      return response;
    };
    expect(await verifier.verify(key)).toMatchObject({ valid: true });
    expect(await verifier.verify(key)).toEqual(rejected("invalid_api_key"));
  });

  test.each([
    ["a reset", { revocations: [], reset: true }],
    [
      "an entry of an unknown kind",
      { revocations: [{ region: "eu", reason: "moved", at: "2026-11-22T09:30:00.000Z" }] },
    ],
  ])("that is %s drops all results", async (_title, page) => {
    const { key } = await givenKey();
    const { verifier, link, cached, nextRead, verificationsOf } = givenVerifier({ maxStaleSeconds: 4 });
    await cached(key);
    link.read = async () => payload({ ...page, cursor: new Date().toISOString() });
    await nextRead();
    expect(await verificationsOf(() => verifier.verify(key))).toBe(1);
  });
});

describe("without the feed", () => {
  test("cached results are used until maxStaleSeconds after the begin of the last read, and then the service is asked", async () => {
    const { api, key, path } = await givenKey();
    const errors: unknown[] = [];
    const { verifier, link, cached } = givenVerifier({ onFeedError: (error) => errors.push(error) });
    await cached(key);
    link.read = outage;
    await api.delete(path);
    const deletedAt = performance.now();
    for (let isValid = true; isValid; ) {
      const begunAt = performance.now();
      isValid = (await verifier.verify(key)).valid;
      if (isValid) expect(begunAt - deletedAt).toBeLessThan(1_000);
      await immediate();
    }
    await eventually(() => expect(errors.length).toBeGreaterThan(0));
    expect(errors[0]).toBeInstanceOf(VerificationUnavailableError);
  });

  test("a read counts from when it was begun, however late its response is", async () => {
    const { key } = await givenKey();
    const { verifier, link, cached, verificationsOf } = givenVerifier();
    await cached(key);
    const held = Promise.withResolvers<void>();
    let begunAt = Number.POSITIVE_INFINITY;
    link.read = async (respond) => {
      begunAt = performance.now();
      const page = await respond();
      await held.promise;
      return page;
    };
    await eventually(() => expect(performance.now() - begunAt > 1_000).toBe(true));
    link.read = outage;
    const { ended } = link;
    held.resolve();
    await eventually(() => expect(link.ended).toBeGreaterThan(ended));
    await immediate();
    expect(await verificationsOf(() => verifier.verify(key))).toBe(1);
  });

  test("and without verify, every verification is an error", async () => {
    const { key } = await givenKey();
    const { verifier, link, cached } = givenVerifier();
    await cached(key);
    link.read = outage;
    link.verify = outage;
    await eventually(() => expect(verifier.verify(key)).rejects.toThrow(VerificationUnavailableError));
    await expect(verifier.verify(key)).rejects.toThrow(
      "credentials-verify did not respond. Error: connect ECONNREFUSED",
    );
  });

  test("a result is not cached, and when the feed is back it is", async () => {
    const { key } = await givenKey();
    const { verifier, link, cached, verificationsOf } = givenVerifier();
    link.read = outage;
    expect(await verificationsOf(() => verifier.verify(key))).toBe(1);
    expect(await verificationsOf(() => verifier.verify(key))).toBe(1);
    link.read = (respond) => respond();
    expect(await cached(key)).toMatchObject({ valid: true });
  });

  test("a revocation of that time is not in the cache when the feed is back", async () => {
    const { api, key, path } = await givenKey();
    const { verifier, link, cached, nextRead } = givenVerifier({ maxStaleSeconds: 4 });
    await cached(key);
    link.read = outage;
    await nextRead();
    await api.delete(path);
    link.read = (respond) => respond();
    await nextRead();
    expect(await verifier.verify(key)).toEqual(rejected("invalid_api_key"));
  });

  test("a machine that slept does not use its cache before it has read the feed", async () => {
    const { key } = await givenKey();
    const { verifier, link, cached, verificationsOf } = givenVerifier({ maxStaleSeconds: 60 });
    await cached(key);
    link.read = never;
    fakeDate().advance(61);
    expect(await verificationsOf(() => verifier.verify(key))).toBe(1);
  });

  test.each([
    ["an error of the function", async () => payload({ errorType: "Error", errorMessage: "no" })],
    ["no results and no cursor", async () => payload({ results: [], revocations: [] })],
    ["a result without its fields", async () => payload({ results: [{ valid: true }] })],
    ["a rejection without its code", async () => payload({ results: [{ valid: false }] })],
    ["no payload", async () => ({})],
  ])("that returns %s, nothing is cached, and verify that does is an error", async (_title, respond) => {
    const { key } = await givenKey();
    const { verifier, link, verificationsOf } = givenVerifier();
    link.read = respond;
    await verifier.verify(key);
    await eventually(() => expect(link.ended).toBeGreaterThan(0));
    expect(await verificationsOf(() => verifier.verify(key))).toBe(1);
    link.verify = respond;
    await expect(verifier.verify(key)).rejects.toThrow(VerificationUnavailableError);
  });
});

test("a call that ignores its signal ends with it, after five seconds", async () => {
  const late = new AbortController();
  const timeout = jest.spyOn(AbortSignal, "timeout").mockReturnValue(late.signal);
  const invoke = jest.fn(never);
  const verified = givenVerifier({ invoke }).verifier.verify("a");
  late.abort(new Error("late"));
  await expect(verified).rejects.toThrow("credentials-verify did not respond. Error: late");
  expect(timeout).toHaveBeenLastCalledWith(5_000);
  expect(invoke).toHaveBeenLastCalledWith(functions.verifyFunction, expect.anything(), late.signal);
});

describe("verifications at the same time", () => {
  test("of one credential are one call, which fails for all of them alike", async () => {
    const { key } = await givenKey();
    const { verifier, link, verificationsOf } = givenVerifier();
    const many = () => Promise.allSettled(Array.from({ length: 50 }, () => verifier.verify(key)));
    expect(await verificationsOf(many)).toBe(1);
    link.verify = outage;
    link.read = outage;
    await eventually(async () =>
      expect((await many()).map(({ status }) => status)).toEqual(Array(50).fill("rejected")),
    );
  });

  test("do not share a call that began longer ago than a cached result may be stale, also after that call has ended", async () => {
    const { key } = await givenKey();
    const { verifier, link } = givenVerifier();
    const ends: (() => void)[] = [];
    // Without the feed, nothing is cached.
    link.read = never;
    link.verify = async (respond) => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return respond();
    };
    const results = [verifier.verify(key)];
    await eventually(() => expect(link.verifications).toBe(1));
    const clock = fakeDate();
    for (const seconds of [0.5, 1]) {
      clock.advance(seconds);
      results.push(verifier.verify(key));
    }
    expect(link.verifications).toBe(2);
    ends[0]?.();
    await Promise.all(results.slice(0, 2));
    results.push(verifier.verify(key));
    expect(link.verifications).toBe(2);
    ends[1]?.();
    expect(await Promise.all(results)).toMatchObject(Array(4).fill({ valid: true }));
  });
});

describe("with timers that the test advances", () => {
  const valid = { valid: true, type: "jwt", user_id: "alice", key_id: null, expires_at: null };
  function givenQuietVerifier() {
    jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask", "setImmediate"] });
    const given = givenVerifier({ maxStaleSeconds: 5 });
    given.link.verify = async () => payload({ results: [valid] });
    given.link.read = async () => payload({ revocations: [], cursor: new Date().toISOString() });
    return given;
  }

  test("the feed is read every two seconds, until a minute after the last verification, also by the cache, and again with the next", async () => {
    const { verifier, link, verificationsOf } = givenQuietVerifier();
    await verifier.verify("a");
    await jest.advanceTimersByTimeAsync(2_000);
    await verifier.verify("a");
    await jest.advanceTimersByTimeAsync(18_000);
    expect(link.begun).toBe(11);
    expect(await verificationsOf(() => verifier.verify("a"))).toBe(0);
    await jest.advanceTimersByTimeAsync(600_000);
    expect(link.begun).toBe(11 + 30);
    await verifier.verify("a");
    await jest.advanceTimersByTimeAsync(2_000);
    expect(link.begun).toBe(11 + 30 + 2);
  });

  test("a credential that was rejected while the feed could not be read is not accepted from the cache later", async () => {
    const { verifier, link, verificationsOf } = givenQuietVerifier();
    await verifier.verify("a");
    await jest.advanceTimersByTimeAsync(2_000);
    await verifier.verify("a");
    const { read } = link;
    link.read = outage;
    await jest.advanceTimersByTimeAsync(6_000);
    link.verify = async () => payload({ results: [rejected("invalid_token")] });
    await verifier.verify("a");
    link.read = read;
    await jest.advanceTimersByTimeAsync(2_000);
    expect(await verificationsOf(() => verifier.verify("a"))).toBe(1);
  });

  test("a revocation of a project drops the results of credentials that are limited to it", async () => {
    const { verifier, link, verificationsOf } = givenQuietVerifier();
    link.verify = async () => payload({ results: [{ ...valid, project_ids: ["p-1", "p-2"] }] });
    await verifier.verify("a");
    await jest.advanceTimersByTimeAsync(2_000);
    await verifier.verify("a");
    expect(await verificationsOf(() => verifier.verify("a"))).toBe(0);
    link.read = async () => payload({ revocations: [{ project_id: "p-2" }], cursor: new Date().toISOString() });
    await jest.advanceTimersByTimeAsync(2_000);
    expect(await verificationsOf(() => verifier.verify("a"))).toBe(1);
  });

  test("a verifier that is closed between two reads or before the first one does not read the feed", async () => {
    const { verifier, link } = givenQuietVerifier();
    await verifier.verify("a");
    await jest.advanceTimersByTimeAsync(1_000);
    verifier.close();
    await jest.advanceTimersByTimeAsync(10_000);
    expect(link.begun).toBe(1);
    const { verifier: unused, link: ofUnused } = givenQuietVerifier();
    unused.close();
    expect(await unused.verify("a")).toMatchObject({ valid: true });
    expect(ofUnused.begun).toBe(0);
  });

  test("a closed verifier reads the feed no more, uses no read that was begun before, and asks the service each time", async () => {
    const { verifier, link, verificationsOf } = givenQuietVerifier();
    await verifier.verify("a");
    await jest.advanceTimersByTimeAsync(2_000);
    await verifier.verify("a");
    expect(await verificationsOf(() => verifier.verify("a"))).toBe(0);
    const held = Promise.withResolvers<InvokeResponse>();
    link.read = () => held.promise;
    await jest.advanceTimersByTimeAsync(2_000);
    const { begun } = link;
    verifier.close();
    held.resolve(payload({ revocations: [], cursor: "2026-11-22T09:30:00.000Z" }));
    for (let count = 0; count < 3; count++) expect(await verificationsOf(() => verifier.verify("a"))).toBe(1);
    await jest.advanceTimersByTimeAsync(600_000);
    expect(link.begun).toBe(begun);
  });
});

test.each([0, 0.5, -1, Number.NaN])("maxStaleSeconds of %d is refused", (maxStaleSeconds) => {
  expect(() => givenVerifier({ maxStaleSeconds })).toThrow(RangeError);
});
