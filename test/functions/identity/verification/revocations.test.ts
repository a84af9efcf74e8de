import { randomUUID } from "node:crypto";
import { jest } from "@jest/globals";
import { firstIdAt } from "../../../../functions/foundation/platform/uuid.ts";
import type { Revocation } from "../../../../functions/foundation/records/revocation.ts";
import { hashApiKey } from "../../../../functions/identity/api-keys/api-key.ts";
import type { RevocationPage } from "../../../../functions/identity/verification/revocations.ts";
import {
  beforeTransaction,
  failDynamo,
  interceptDynamo,
  isCall,
  restoreAws,
  watchDynamo,
} from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { putAll } from "../../../support/put-all.ts";
import { useService } from "../../../support/service.ts";
import { newServiceAccount } from "../../../support/service-accounts.ts";

const service = useService();
afterEach(() => void jest.useRealTimers());

const read = (after?: string) => call<RevocationPage>("credentials-revocations", after === undefined ? {} : { after });

/** Returns the entries that a change adds to the feed, as a follower reads them who followed it before. */
async function addedBy(change: () => Promise<unknown>): Promise<Revocation[]> {
  const { cursor } = await read();
  const known = new Set((await read(cursor)).revocations.map((entry) => JSON.stringify(entry)));
  await change();
  const { revocations } = await read(cursor);
  return revocations.filter((entry) => !known.has(JSON.stringify(entry)));
}

const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
const ofKey = (key_id: string, reason: string, ...keys: string[]) =>
  keys.map((key) => ({ key_hash: hashApiKey(key), key_id, reason, at }));
const ofUser = (user_id: string, reason: string) => ({ user_id, reason, at });

let later = 0;

/** Advances the clock, so that a read does not return the revocations of other tests. A session is valid for an hour. */
function afterAllOthers() {
  const clock = fakeDate();
  later += 900;
  clock.advance(later);
  return clock;
}

async function givenKey() {
  const { api, userId } = service.user();
  const { id, key } = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  const path = `/v1/api-keys/${id}`;
  const roll = async (overlap_seconds: number): Promise<string> =>
    (await api.post(`${path}/roll`, { overlap_seconds })).body.data.key;
  return { api, userId, id, key, path, roll };
}

test("the first read begins now, and a later one has what was changed since", async () => {
  const { api, path, id, key } = await givenKey();
  const first = await read();
  expect(first).toEqual({ revocations: [], cursor: at });
  await api.delete(path);
  const clock = fakeDate();
  const began = new Date().toISOString();
  interceptDynamo((_, send) => {
    clock.advance(1);
    return send();
  });
  expect(await read(first.cursor)).toEqual({ revocations: ofKey(id, "deleted", key), cursor: began });
});

describe("an entry", () => {
  test("for a user who is removed or gets another role, and none for a new member or another name", async () => {
    const { userId: user_id } = service.user();
    const member = { user_id, project_id: randomUUID(), name: "Shop" };
    const upsert = (more: object) => () => call("projects-upsert-member", { ...member, ...more });
    expect(await addedBy(upsert({ role: "viewer" }))).toEqual([]);
    expect(await addedBy(upsert({ role: "viewer", name: "Store" }))).toEqual([]);
    expect(await addedBy(upsert({ role: "admin" }))).toEqual([ofUser(user_id, "role_changed")]);
    const { project_id } = member;
    const remove = () => call("projects-remove-member", { user_id, project_id });
    expect(await addedBy(remove)).toEqual([ofUser(user_id, "member_removed")]);
    expect(await addedBy(remove)).toEqual([]);
  });

  test("for a project that is suspended, and none for the end of the suspension", async () => {
    const project_id = randomUUID();
    const suspend = (suspended: boolean) => () => call("projects-suspend", { project_id, suspended });
    expect(await addedBy(suspend(true))).toEqual([{ project_id, reason: "project_suspended", at }]);
    expect(await addedBy(suspend(false))).toEqual([]);
  });

  test("for each secret that a roll ends, or gives an end", async () => {
    const { id, key, roll } = await givenKey();
    const rolled: string[] = [];
    const rollWith = (overlapSeconds: number) => async () => rolled.push(await roll(overlapSeconds));
    expect(await addedBy(rollWith(600))).toEqual(ofKey(id, "rolled", key));
    expect(await addedBy(rollWith(0))).toEqual(ofKey(id, "rolled", String(rolled[0]), key));
  });

  test("names the user once for each ten keys that are deleted together, whatever their secrets", async () => {
    const { admin, path, accountId, createKey } = await newServiceAccount(service);
    const user = service.user();
    for (let count = 0; count < 11; count++) {
      const { id } = await createKey();
      if (count < 3) await admin.api.post(`${path}/api-keys/${id}/roll`, { overlap_seconds: 600 });
      await user.api.post("/v1/api-keys", { name: "ci" });
    }
    const ofAccount = ofUser(`service-account:${accountId}`, "service_account_deleted");
    expect(await addedBy(() => admin.api.delete(path))).toEqual(Array(3).fill(ofAccount));
    const revokeAll = () => call("api-keys-revoke-all", { user_id: user.userId });
    expect(await addedBy(revokeAll)).toEqual(Array(2).fill(ofUser(user.userId, "revoked_by_platform")));
  });

  test("of any partition, and of an earlier release, which writes to the first one, is returned in the order of time", async () => {
    const { api, path, id, key } = await givenKey();
    const clock = afterAllOthers();
    const { cursor } = await read();
    await api.delete(path);
    const entries: object[] = ofKey(id, "deleted", key);
    for (const partition of ["", "#3", ""]) {
      clock.advance(1);
      const entry = { user_id: randomUUID(), reason: "member_removed", at: new Date().toISOString() };
      const day = entry.at.slice(0, 10) + partition;
      await putAll("revocations", [{ ...entry, day, id: firstIdAt(Date.parse(entry.at)) }]);
      entries.push(entry);
    }
    expect((await read(cursor)).revocations).toEqual(entries);
  });

  test("is not added for a new or renamed key, nor for a change that failed", async () => {
    const { api, path } = await givenKey();
    expect(await addedBy(() => api.patch(path, { name: "other" }))).toEqual([]);
    failDynamo(({ command }) => command === "TransactWriteItemsCommand");
    const statuses: number[] = [];
    expect(await addedBy(async () => statuses.push((await api.delete(path)).status))).toEqual([]);
    restoreAws();
    expect(statuses).not.toContain(204);
    expect((await api.get("/v1/api-keys")).status).toBe(200);
  });
});

test("a role that another call changes between the read and the write of a member is in the feed", async () => {
  const { userId: user_id } = service.user();
  const member = { user_id, project_id: randomUUID(), name: "Shop" };
  await call("projects-upsert-member", { ...member, role: "viewer" });
  beforeTransaction(() => call("projects-upsert-member", { ...member, role: "admin" }));
  const toViewer = () => call("projects-upsert-member", { ...member, name: "Store", role: "viewer" });
  expect(await addedBy(toViewer)).toEqual(Array(2).fill(ofUser(user_id, "role_changed")));
});

test("a change that takes effect long after its time is not skipped by a read in between", async () => {
  const { api, path, id, key } = await givenKey();
  const clock = afterAllOthers();
  const { cursor } = await read();
  let between: RevocationPage | undefined;
  interceptDynamo(async ({ command }, send) => {
    if (command === "TransactWriteItemsCommand") {
      clock.advance(55);
      between = await read(cursor);
      clock.advance(1);
    }
    return send();
  });
  await api.delete(path);
  expect(between?.revocations).toEqual([]);
  expect((await read(between?.cursor)).revocations).toEqual(ofKey(id, "deleted", key));
});

test("a read returns recent entries again, and old ones once", async () => {
  const { api, path, id, key } = await givenKey();
  const clock = afterAllOthers();
  const { cursor } = await read();
  await api.delete(path);
  const entries = ofKey(id, "deleted", key);
  const second = await read(cursor);
  const third = await read(second.cursor);
  expect([second.revocations, third.revocations]).toEqual([entries, entries]);
  clock.advance(61);
  const fourth = await read(third.cursor);
  expect([fourth.revocations, (await read(fourth.cursor)).revocations]).toEqual([entries, []]);
});

test("a cursor of a day ago gets a reset instead of revocations", async () => {
  const { cursor } = await read();
  const clock = fakeDate();
  clock.advance(24 * 3600 - 61);
  expect(await read(cursor)).not.toHaveProperty("reset");
  clock.advance(2);
  const { cursor: later, ...page } = await read(cursor);
  expect(page).toEqual({ revocations: [], reset: true });
  expect(later > cursor).toBe(true);
});

test("a read after midnight has the revocations of the seconds before it", async () => {
  const clock = fakeDate();
  jest.setSystemTime(new Date().setUTCHours(23, 59, 58));
  const { api, path, id, key } = await givenKey();
  const { cursor } = await read();
  await api.delete(path);
  clock.advance(5);
  const { revocations } = await read(cursor);
  expect(revocations).toEqual(expect.arrayContaining(ofKey(id, "deleted", key)));
});

test("more than 10,000 entries are a reset, and fewer are read in all pages", async () => {
  const { api, path, id, key } = await givenKey();
  const { cursor } = await read();
  const second = await givenKey();
  for (const each of [{ api, path }, second]) await each.api.delete(each.path);
  interceptDynamo((aws, send) => send(isCall(aws, "Query", "revocations") ? { ...aws.input, Limit: 1 } : aws.input));
  const both = [...ofKey(id, "deleted", key), ...ofKey(second.id, "deleted", second.key)];
  expect((await read(cursor)).revocations).toEqual(expect.arrayContaining(both));
  restoreAws();
  let rows = 10_000;
  interceptDynamo(async (aws, send) => {
    const row = { user_id: "alice", reason: "member_removed", at: cursor };
    if (!isCall(aws, "Query", "revocations")) return send();
    if (JSON.stringify(aws.input).match(/#[123]"/)) return { Items: [] };
    const [count, LastEvaluatedKey] = aws.input.ExclusiveStartKey ? [rows - 6_000] : [6_000, { day: "", id: "" }];
    return { Items: Array(count).fill(row), LastEvaluatedKey };
  });
  expect((await read(cursor)).revocations).toHaveLength(10_000);
  rows += 1;
  expect(await read(cursor)).toMatchObject({ revocations: [], reset: true });
});

test("a read without a change costs one read unit for each of four partitions, and the first read none", async () => {
  // Away from midnight, when a read has two days, and from the revocations of other tests.
  fakeDate();
  jest.setSystemTime(Date.parse("2030-06-01T12:00:00Z"));
  const seen = watchDynamo();
  const { cursor } = await read();
  expect(seen).toEqual([]);
  await read(cursor);
  expect(seen).toEqual(Array(4).fill({ command: "QueryCommand", units: 1 }));
});

test.each([
  ["a text that is no cursor", { after: "yesterday" }],
  ["a number", { after: 5 }],
  ["null", { after: null }],
  ["an unknown field", { cursor: "2026-11-22T00:00:00.000Z" }],
])("throws validation_error for %s", async (_title, input) => {
  await expect(call("credentials-revocations", input)).rejects.toMatchObject({ code: "validation_error" });
});

test("throws during an outage", async () => {
  const { cursor } = await read();
  failDynamo((aws) => isCall(aws, "Query", "revocations"));
  await expect(read(cursor)).rejects.toMatchObject({ name: "ThrottlingException" });
});
