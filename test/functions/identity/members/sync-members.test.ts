import { randomUUID } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { mintToken } from "../../../../bin/command/mint-token.ts";
import { demoUser, seedDemoUser } from "../../../../bin/demo/demo-user.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { handler as removeMember } from "../../../../functions/identity/members/remove-member.ts";
import type { SyncResult } from "../../../../functions/identity/members/sync-members.ts";
import { handler as upsertMember } from "../../../../functions/identity/members/upsert-member.ts";
import { beforeTransaction, failDynamo, interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { useService } from "../../../support/service.ts";
import { newServiceAccount } from "../../../support/service-accounts.ts";

const service = useService();

const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
const now = () => secondsAgo(0);

interface Member {
  user_id: string;
  project_id: string;
  name: string;
  role: string;
}
const memberOf = (project_id: string, fields: Partial<Member> = {}): Member => ({
  user_id: `user-${randomUUID()}`,
  project_id,
  name: "Shop",
  role: "admin",
  ...fields,
});

const sync = (members: object[], more: object = {}) =>
  call<SyncResult>("projects-sync-members", { version: now(), members, dry_run: false, ...more });

/** Each test has projects of its own: a page from the id before the first to the last of them. */
function givenProjects(count: number): { ids: [string, ...string[]]; range: { after: string; until: string } } {
  const base = randomUUID().slice(0, 34);
  const idOf = (index: number) => `${base}${index.toString(16).padStart(2, "0")}`;
  const ids = Array.from({ length: count }, (_, index) => idOf(index + 1));
  return { ids: [idOf(1), ...ids.slice(1)], range: { after: idOf(0), until: idOf(count) } };
}
const none = { added: 0, changed: 0, removed: 0, unchanged: 0 };

test("reports the difference and changes nothing, unless it is asked to", async () => {
  const { ids, range } = givenProjects(2);
  const { api, userId } = service.user();
  const members = [memberOf(ids[0], { user_id: userId }), memberOf(ids[1] ?? "")];
  expect(await sync(members, { ...range, dry_run: undefined })).toEqual({ ...none, added: 2, applied: false });
  expect((await api.get("/v1/projects")).body.data).toEqual([]);
  expect(await sync(members, range)).toEqual({ ...none, added: 2, applied: true });
  expect((await api.get("/v1/projects")).body.data).toMatchObject([{ id: ids[0], name: "Shop", role: "admin" }]);
  expect(await sync(members, range)).toEqual({ ...none, unchanged: 2, applied: true });
});

test("changes roles and names, removes members, and their keys are rejected on the next request", async () => {
  const { ids, range } = givenProjects(1);
  const [gone, viewer] = [service.user(), service.user()];
  const others = Array.from({ length: 20 }, () => memberOf(ids[0]));
  const members = [gone, viewer].map(({ userId }) => memberOf(ids[0], { user_id: userId }));
  await sync([...members, ...others], { ...range, version: secondsAgo(1) });
  const { key } = (await gone.api.post("/v1/api-keys", { name: "ci" })).body.data;
  const path = `/v1/projects/${ids[0]}/webhooks`;
  expect((await service.as(key).get(path)).status).toBe(200);
  const next = [...others, memberOf(ids[0], { user_id: viewer.userId, role: "viewer", name: "Store" })];
  expect(await sync(next, range)).toEqual({ added: 0, changed: 1, removed: 1, unchanged: 20, applied: true });
  expect((await service.as(key).get(path)).status).toBe(404);
  expect((await gone.api.get("/v1/projects")).body.data).toEqual([]);
  expect((await viewer.api.get("/v1/projects")).body.data).toMatchObject([{ name: "Store", role: "viewer" }]);
  const { revocations } = await call<{ revocations: object[] }>("credentials-revocations", {
    after: new Date(Date.now() - 60_000).toISOString(),
  });
  for (const [{ userId }, reason] of [[gone, "member_removed"] as const, [viewer, "role_changed"] as const])
    expect(revocations).toContainEqual(expect.objectContaining({ user_id: userId, reason }));
  const admin = service.user();
  await upsertMember(memberOf(ids[0], { user_id: admin.userId }));
  const events = (await admin.api.get(`/v1/projects/${ids[0]}/audit-events?limit=100`)).body.data;
  expect(events).toContainEqual(expect.objectContaining({ action: "member.removed", resource_id: gone.userId }));
});

test("does nothing when it would remove more than a tenth of the members, except with force", async () => {
  const { ids, range } = givenProjects(1);
  const members = Array.from({ length: 9 }, () => memberOf(ids[0]));
  await sync(members, { ...range, version: secondsAgo(1) });
  const fewer = members.slice(1);
  expect(await sync(fewer, range)).toEqual({ ...none, removed: 1, unchanged: 8, applied: false });
  expect(await sync(fewer, { ...range, force: true })).toEqual({ ...none, removed: 1, unchanged: 8, applied: true });
  expect(await sync(fewer, range)).toEqual({ ...none, unchanged: 8, applied: true });
  // More than one page of them.
  interceptDynamo(async ({ command, input }, send) =>
    send(command === "QueryCommand" ? { ...input, Limit: input.Limit ?? 3 } : input),
  );
  expect(await sync([], { ...range, force: true })).toEqual({ ...none, removed: 8, applied: true });
});

test("compares only the projects of its page", async () => {
  const { ids, range } = givenProjects(3);
  const members = ids.map((id) => memberOf(id));
  await sync(members, { ...range, version: secondsAgo(1) });
  expect(await sync([], { after: ids[0], until: ids[1], force: true })).toEqual({ ...none, removed: 1, applied: true });
  expect(await sync(members, { ...range, dry_run: true })).toEqual({ ...none, added: 1, unchanged: 2, applied: false });
});

test("removes neither service accounts nor members that the platform has not reported", async () => {
  const { projectId, createKey } = await newServiceAccount(service);
  const { key } = await createKey();
  const { api, userId } = service.user();
  const Item = { ...memberOf(projectId, { user_id: userId }), created_at: now() };
  await dynamo().send(new PutCommand({ TableName: tableName("projects"), Item }));
  const page = { after: `${projectId.slice(0, 24)}000000000000`, until: projectId };
  expect(await sync([], { ...page, force: true })).toMatchObject({ applied: true });
  const statuses = [service.as(key), api].map(
    async (each) => (await each.get(`/v1/projects/${projectId}/webhooks`)).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200]);
});

test("keeps the demo project of a local run", async () => {
  await seedDemoUser();
  const { projectId, userId } = demoUser;
  const page = { after: `${projectId.slice(0, 24)}000000000000`, until: projectId };
  expect(await sync([], { ...page, force: true })).toEqual({ ...none, applied: true });
  expect(
    (await service.as(mintToken(process.env.JWT_SECRET ?? "", userId)).get("/v1/projects")).body.data,
  ).toHaveLength(1);
});

describe("the order of changes", () => {
  test("a snapshot does not add a member that was removed after it was taken", async () => {
    const { ids, range } = givenProjects(1);
    const { api, userId } = service.user();
    const member = memberOf(ids[0], { user_id: userId });
    await upsertMember(member);
    const version = now();
    fakeDate().advance(1);
    await removeMember({ user_id: userId, project_id: ids[0] });
    expect(await sync([member], { ...range, version })).toEqual({ ...none, unchanged: 1, applied: true });
    expect((await api.get("/v1/projects")).body.data).toEqual([]);
    expect(await sync([member], range)).toEqual({ ...none, added: 1, applied: true });
  });

  test("a snapshot does not remove a member who was added, or confirmed, after it was taken", async () => {
    const { ids, range } = givenProjects(1);
    const [added, confirmed] = [memberOf(ids[0]), memberOf(ids[0])];
    await upsertMember(confirmed);
    fakeDate().advance(1);
    const version = now();
    fakeDate().advance(2);
    for (const member of [added, confirmed]) await upsertMember(member);
    expect(await sync([], { ...range, version, force: true })).toEqual({ ...none, applied: true });
    expect(await sync([], { ...range, force: true })).toEqual({ ...none, removed: 2, applied: true });
  });

  test("a snapshot with a number counts as taken when the first call with the number began", async () => {
    const { ids, range } = givenProjects(1);
    const { api, userId } = service.user();
    const member = memberOf(ids[0], { user_id: userId });
    const first = Math.floor(Date.now() / 1000);
    const number = (index: number) => ({ ...range, version: first + index, force: true });
    expect(await sync([member], number(1))).toEqual({ ...none, added: 1, applied: true });
    fakeDate().advance(1);
    expect(await sync([], number(3))).toEqual({ ...none, removed: 1, applied: true });
    fakeDate().advance(1);
    expect(await sync([member], number(1))).toEqual({ ...none, unchanged: 1, applied: true });
    await expect(sync([member], number(2))).rejects.toThrow("version must be greater than that of an earlier snapshot");
    expect((await api.get("/v1/projects")).body.data).toEqual([]);
    expect(await sync([member], number(4))).toEqual({ ...none, added: 1, applied: true });
  });

  test("a version in milliseconds since 1970 is a time", async () => {
    const { ids, range } = givenProjects(1);
    const member = memberOf(ids[0]);
    await upsertMember(member);
    expect(await sync([], { ...range, version: Date.now() - 1000, force: true })).toEqual({ ...none, applied: true });
    await expect(sync([], { ...range, version: Date.now() + 600_000 })).rejects.toThrow("must not be in the future");
  });

  test("a snapshot changes nothing in projects that a later snapshot has covered, and is applied in the others", async () => {
    const { ids, range } = givenProjects(2);
    const [first, second = ""] = ids;
    const [kept, added, other] = [memberOf(first), memberOf(first), memberOf(second)];
    await sync([kept, memberOf(second)], { ...range, version: secondsAgo(60), force: true });
    await sync([], { ...givenProjects(1).range, version: secondsAgo(35) });
    await sync([kept], { ...range, until: first, version: secondsAgo(30) });
    // As if each page of those that were applied had one.
    interceptDynamo(({ input }, send) => {
      const isOfApplied = JSON.stringify(input).includes('"applied-');
      return send({ ...input, ...(isOfApplied && "KeyConditionExpression" in input && { Limit: 1 }) });
    });
    const late = { ...range, version: secondsAgo(40), force: true };
    expect(await sync([added, other], late)).toEqual({ added: 1, changed: 0, removed: 1, unchanged: 1, applied: true });
    expect(await sync([kept, other], range)).toEqual({ ...none, unchanged: 2, applied: true });
  });

  test("an addition that arrives after a later removal is refused, and one without a version is made", async () => {
    const { ids, range } = givenProjects(1);
    const { api, userId } = service.user();
    const member = memberOf(ids[0], { user_id: userId });
    await sync([member], { ...range, version: secondsAgo(60) });
    await sync([], { ...range, version: secondsAgo(30), force: true });
    await expect(upsertMember({ ...member, version: secondsAgo(40) })).rejects.toMatchObject({ code: "conflict" });
    expect((await api.get("/v1/projects")).body.data).toEqual([]);
    await upsertMember({ ...member, version: secondsAgo(20) });
    expect((await api.get("/v1/projects")).body.data).toHaveLength(1);
    await sync([], { ...range, force: true });
    await upsertMember(member);
    expect((await api.get("/v1/projects")).body.data).toHaveLength(1);
  });

  test("an addition that arrives after a removal of a user who was no member is refused", async () => {
    const [project_id] = givenProjects(1).ids;
    const member = memberOf(project_id);
    const { user_id } = member;
    expect(await removeMember({ user_id, project_id, version: secondsAgo(10) })).toEqual({ removed: false });
    await expect(upsertMember({ ...member, version: secondsAgo(20) })).rejects.toMatchObject({ code: "conflict" });
  });

  test("a removal that arrives after a later addition is not made, nor a role that is out of date", async () => {
    const [project_id] = givenProjects(1).ids;
    const member = memberOf(project_id, { role: "viewer" });
    const { user_id } = member;
    await upsertMember({ ...member, version: secondsAgo(10) });
    expect(await removeMember({ user_id, project_id, version: secondsAgo(20) })).toEqual({ removed: false });
    expect(await upsertMember({ ...member, role: "admin", version: secondsAgo(20) })).toMatchObject({ role: "viewer" });
    expect(await removeMember({ user_id, project_id, version: secondsAgo(5) })).toEqual({ removed: true });
  });

  test("a change that is made while a snapshot is applied wins", async () => {
    const { ids, range } = givenProjects(1);
    const members = Array.from({ length: 30 }, () => memberOf(ids[0]));
    const [first] = members;
    if (first === undefined) throw new Error("no member");
    const version = secondsAgo(10);
    const removed = memberOf(ids[0]);
    await upsertMember({ ...removed, version: secondsAgo(20) });
    beforeTransaction(async () => {
      for (const each of [first, removed]) await upsertMember({ ...each, role: "viewer", version: secondsAgo(5) });
    });
    const result = { ...none, added: 30, removed: 1, applied: true };
    expect(await sync(members, { ...range, version, force: true })).toEqual(result);
    expect(await upsertMember({ ...first, version })).toMatchObject({ role: "viewer" });
    const left = await sync([...members, { ...removed, role: "viewer" }], { ...range, dry_run: true });
    expect(left).toEqual({ ...none, changed: 1, unchanged: 30, applied: false });
  });

  test("a snapshot that cannot be remembered changes nothing: an earlier one would undo it", async () => {
    const { ids, range } = givenProjects(1);
    failDynamo(({ command, input }) => command === "UpdateItemCommand" && JSON.stringify(input).includes('"applied-'));
    await expect(sync([memberOf(ids[0])], range)).rejects.toThrow("slow down");
    restoreAws();
    expect(await sync([], { ...range, dry_run: true })).toEqual({ ...none, applied: false });
  });
});

describe("two snapshots at the same moment", () => {
  const writes = /^TransactWrite/;
  const looksForOthers = /^Query.*"current-/;

  /** Applies a snapshot, and calls another function when it is about to make this call, by default to write its changes. */
  async function syncAround(members: object[], more: object, other: () => Promise<unknown>, moment = writes) {
    let isFirst = true;
    interceptDynamo(async ({ command, input }, send) => {
      if (moment.test(command + JSON.stringify(input)) && isFirst) {
        isFirst = false;
        await other();
      }
      return send();
    });
    return sync(members, more);
  }
  const conflict = { code: "conflict" };

  test("the earlier does not remove a member whom the later one leaves as it is", async () => {
    const { ids, range } = givenProjects(1);
    const { api, userId } = service.user();
    const member = memberOf(ids[0], { user_id: userId });
    await sync([member], { ...range, version: secondsAgo(60) });
    const earlier = { ...range, version: secondsAgo(30), force: true };
    const later = () => expect(sync([member], range)).rejects.toMatchObject(conflict);
    const result = await syncAround([], earlier, later, looksForOthers);
    expect(result).toEqual({ ...none, removed: 1, applied: true });
    expect(await sync([member], range)).toEqual({ ...none, added: 1, applied: true });
    expect((await api.get("/v1/projects")).body.data).toHaveLength(1);
  });

  test("the earlier changes nothing while the later one is applied, nor after it", async () => {
    const { ids, range } = givenProjects(1);
    const [kept, added] = [memberOf(ids[0]), memberOf(ids[0])];
    await sync([kept], { ...range, version: secondsAgo(60) });
    const earlier = () => sync([], { ...range, version: secondsAgo(30), force: true });
    const isRefused = () => expect(earlier()).rejects.toMatchObject(conflict);
    expect(await syncAround([kept, added], range, isRefused)).toEqual({
      ...none,
      added: 1,
      unchanged: 1,
      applied: true,
    });
    expect(await earlier()).toEqual({ ...none, applied: true });
    expect(await sync([kept, added], { ...range, dry_run: true })).toMatchObject({ unchanged: 2 });
  });

  test("both are applied if they have different projects, or are pages with the same version", async () => {
    const { ids, range } = givenProjects(2);
    const [first, second = ""] = ids;
    const firstPage = { ...range, until: first, version: secondsAgo(30) };
    for (const version of [secondsAgo(20), firstPage.version]) {
      const other = () => sync([memberOf(second)], { ...range, after: first, version, force: true });
      expect(await syncAround([memberOf(first)], { ...firstPage, force: true }, other)).toMatchObject({
        applied: true,
      });
    }
    const again = () => sync([memberOf(first)], { ...firstPage, force: true });
    expect(await syncAround([memberOf(first)], { ...firstPage, force: true }, again)).toMatchObject({ applied: true });
  });

  test("are in the order of their numbers if these were first used in the same millisecond", async () => {
    const { ids, range } = givenProjects(1);
    const member = memberOf(ids[0]);
    const first = Date.now() % 1e11;
    fakeDate();
    for (const [members, version] of [[[], first] as const, [[member], first + 1] as const])
      await sync([...members], { ...range, version, force: true });
    expect(await sync([], { ...range, version: first, force: true })).toMatchObject({ removed: 0 });
  });

  test("the later one is refused for a minute if the process of the earlier was killed, which can be repeated at once", async () => {
    const { ids, range } = givenProjects(1);
    const member = memberOf(ids[0]);
    interceptDynamo(({ command }, send) =>
      command === "TransactWriteItemsCommand" || command === "DeleteItemCommand" ? Promise.reject(new Error()) : send(),
    );
    const earlier = { ...range, version: secondsAgo(30) };
    await expect(sync([member], earlier)).rejects.toThrow();
    restoreAws();
    expect(await sync([member], earlier)).toEqual({ ...none, added: 1, applied: true });
    await expect(sync([member], range)).rejects.toMatchObject(conflict);
    fakeDate().advance(61);
    expect(await sync([member], range)).toEqual({ ...none, unchanged: 1, applied: true });
    const oldest = { ...range, version: secondsAgo(60 * 86_400), dry_run: true };
    expect(await sync([], oldest)).toEqual({ ...none, applied: false });
  });
});

test("unchanged members cost reads only, one for a hundred", async () => {
  const { ids, range } = givenProjects(1);
  const members = Array.from({ length: 250 }, () => memberOf(ids[0]));
  await sync(members, range);
  const calls: string[] = [];
  interceptDynamo(({ command }, send) => {
    calls.push(command);
    return send();
  });
  expect(await sync(members, range)).toEqual({ ...none, unchanged: 250, applied: true });
  const counted = Object.fromEntries(
    [...Map.groupBy(calls, (each) => each)].map(([name, { length }]) => [name, length]),
  );
  // The writes are those of the snapshot itself: it begins, is applied, and ends.
  expect(counted).toEqual({ QueryCommand: 18, UpdateItemCommand: 2, DeleteItemCommand: 1, BatchGetItemCommand: 3 });
});

const valid = memberOf("01930000-0000-7000-8000-00000000d301");
test.each([
  ["no version", { version: undefined }, "version is required"],
  [
    "a version that is neither a time nor a number",
    { version: "2" },
    "version must be an ISO 8601 time with a time zone, or",
  ],
  ["a negative version", { version: -1 }, "version must be an ISO 8601 time with a time zone, or"],
  ["a version that a double cannot hold", { version: 1e300 }, "version must be an ISO 8601 time with a time zone, or"],
  ["a version after the last time", { version: 9e15 }, "version must be an ISO 8601 time with a time zone, or"],
  ["a version in the future", { version: "2999-01-01T00:00:00Z" }, "version must not be in the future"],
  [
    "a version of more than 60 days ago",
    { version: secondsAgo(60 * 86_400 + 0.001) },
    "version must be at most 60 days ago",
  ],
  ["no list", { members: {} }, "members must be an array"],
  ["5,001 members", { members: Array(5_001).fill(valid) }, "members must have at most 5000 entries"],
  ["a service account", { members: [{ ...valid, user_id: "service-account:1" }] }, "members.0.user_id must not begin"],
  ["a member without a role", { members: [{ ...valid, role: undefined }] }, "members.0.role is required"],
  ["an unknown role", { members: [{ ...valid, role: "owner" }] }, 'members.0.role must be "admin" or "viewer"'],
  ["a member twice", { members: [valid, valid] }, "members.1 is in the list before"],
  ["a member before its page", { after: valid.project_id }, "members.0.project_id is not between after and until"],
  ["a member after its page", { until: valid.project_id.replace("d", "c") }, "members.0.project_id is not between"],
  [
    "a page that ends before it begins",
    { members: [], after: valid.project_id, until: valid.project_id.replace("d", "c") },
    "until must not be less than after",
  ],
  ["null as the beginning of a page, which absent would be the first", { after: null }, "after must be a UUID"],
  ["a text as force", { force: "yes" }, "force must be true or false"],
  ["an unknown field", { pages: 2 }, "pages is not a known field"],
])("throws validation_error for %s, and changes nothing", async (_title, fields, message) => {
  await expect(sync([valid], fields)).rejects.toThrow(message);
});
