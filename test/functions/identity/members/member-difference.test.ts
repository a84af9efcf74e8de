import { differenceOf, memberName, storedVersion } from "../../../../functions/identity/members/member-difference.ts";

const project_id = "01930000-0000-7000-8000-00000000d301";
const version = "2026-11-22T12:00:00.000Z";
const before = "2026-11-22T11:59:59.999Z";
const after = "2026-11-22T12:00:00.001Z";
const ref = (user_id: string) => ({ user_id, project_id });
const state = { name: "Shop", role: "admin" } as const;
const byName = <Item extends { user_id: string }>(items: Item[]) =>
  new Map(items.map((item) => [memberName({ ...item, project_id }), item]));
const versionOf = (user_id: string, at: string, removed?: true) => ({
  user_id,
  member: memberName(ref(user_id)),
  version: at,
  ...(removed && { removed }),
});

test.each([
  ["a new member is added", [{}], [], [], { added: 1 }, 1],
  ["the same one is unchanged, and is not written", [{}], [versionOf("u", before)], [state], { unchanged: 1 }, 0],
  ["the same one without a version gets one", [{}], [], [state], { unchanged: 1 }, 1],
  ["one with another role is changed", [{ role: "viewer" }], [versionOf("u", before)], [state], { changed: 1 }, 1],
  ["one with another name is changed", [{ name: "Store" }], [versionOf("u", before)], [state], { changed: 1 }, 1],
  ["one that changed later is unchanged", [{ role: "viewer" }], [versionOf("u", after)], [state], { unchanged: 1 }, 0],
  ["one that was removed before is added", [{}], [versionOf("u", before, true)], [], { added: 1 }, 1],
  ["one that was removed at that time is added", [{}], [versionOf("u", version, true)], [], { added: 1 }, 1],
  ["one that was removed later is not added", [{}], [versionOf("u", after, true)], [], { unchanged: 1 }, 0],
  ["one that is missing is removed", [], [versionOf("u", before)], [], { removed: 1 }, 1],
  ["one that is missing and was added later is kept", [], [versionOf("u", after)], [], {}, 0],
  ["one that is missing and was removed is no difference", [], [versionOf("u", before, true)], [], {}, 0],
  ["one that the platform did not report is kept", [], [], [state], {}, 0],
] as const)("%s", (_title, snapshot, versions, current, expected, writes) => {
  const { changes, difference } = differenceOf(
    snapshot.map((each) => ({ ...ref("u"), ...state, ...each })),
    version,
    byName([...versions]),
    byName(current.map((each) => ({ user_id: "u", ...each }))),
    [],
  );
  expect(difference).toEqual({ added: 0, changed: 0, removed: 0, unchanged: 0, ...expected });
  expect(changes).toHaveLength(writes);
});

test.each([
  [1, 10, 0, false],
  [1, 9, 0, true],
  [2, 19, 0, true],
  [0, 0, 0, false],
  [1, 9, 10, true],
])(
  "%i removals of %i members are too many, with %i who were removed before: %j",
  (removals, members, former, expected) => {
    const users = Array.from({ length: members }, (_, index) => `user-${index}#`);
    const snapshot = users.slice(removals).map((user) => ({ ...ref(user), ...state }));
    const removed = Array.from({ length: former }, (_, index) => versionOf(`former-${index}#`, before, true));
    const versions = byName([...users.map((user) => versionOf(user, before)), ...removed]);
    const { changes, removesTooMany } = differenceOf(snapshot, version, versions, byName(snapshot), []);
    expect(removesTooMany).toBe(expected);
    expect(changes).toEqual(users.slice(0, removals).map(ref));
  },
);

test("a version is ISO 8601 in UTC; one of a clock that is ahead counts as now, and one in the future is refused", () => {
  const now = new Date(version);
  expect(storedVersion(new Date("2026-11-22T12:59:59.999+01:00"), now)).toBe(before);
  expect(storedVersion(new Date(now.getTime() + 60_000), now)).toBe(version);
  expect(() => storedVersion(new Date(now.getTime() + 60_001), now)).toThrow("version must not be in the future");
});
