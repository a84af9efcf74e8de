import type { MemberRef, MemberState } from "../../foundation/access/member.ts";
import { invalidField } from "../../foundation/schema/input.ts";

/* The order of the platform's changes of members, and what a snapshot changes. Pure. */

/** The projects of a page: those whose id is greater than `after`, up to and including `until`; absent = without a bound. */
export interface ProjectRange {
  after?: string | undefined;
  until?: string | undefined;
}

export const isWithin = ({ after = "", until }: ProjectRange, projectId: string): boolean =>
  projectId > after && (until === undefined || projectId <= until);

export const overlaps = (one: ProjectRange, other: ProjectRange): boolean =>
  isBefore(one.after, other.until) && isBefore(other.after, one.until);
const isBefore = (after = "", until: string | undefined): boolean => until === undefined || after < until;

/** When the platform last changed a member, and how. */
export interface MemberVersion {
  /** As `memberName` returns it. */
  member: string;
  /** A time in ISO 8601; of a snapshot with a number, `#` and the number follow. */
  version: string;
  /** The member is removed; absent = is a member. */
  removed?: true;
}

/** A change of a member. `before` absent = is added; `after` absent = is removed. */
export interface MemberChange extends MemberRef {
  before?: MemberState | undefined;
  after?: MemberState;
}

/** Returns the name of a member. Names are in the order of the projects. */
export const memberName = ({ project_id, user_id }: MemberRef): string => `${project_id}#${user_id}`;

const ID_CHARACTERS = 36;
const refOf = ({ member }: MemberVersion): MemberRef => ({
  project_id: member.slice(0, ID_CHARACTERS),
  user_id: member.slice(ID_CHARACTERS + 1),
});

export const isSame = (one: MemberState | undefined, other: MemberState | undefined): boolean =>
  one?.name === other?.name && one?.role === other?.role;

/** How long the version of a removed member is stored. An older snapshot is refused: it could add the member again. */
export const REMOVALS_KEPT_SECONDS = 60 * 24 * 3600;
const MAX_CLOCK_SKEW_MS = 60_000;

/**
 * Returns a version as it is stored. Clocks differ, so one that is less than a minute in the future counts as now.
 * @throws ApiError `validation_error` when it is later
 */
export function storedVersion(version: Date, now: Date): string {
  if (version.getTime() > now.getTime() + MAX_CLOCK_SKEW_MS) throw invalidField("version", "must not be in the future");
  return (version < now ? version : now).toISOString();
}

export interface Difference {
  added: number;
  changed: number;
  removed: number;
  unchanged: number;
}

/**
 * Compares a snapshot with the members in its range. A change that the platform has made later than the snapshot wins.
 * @param version of the snapshot, as it is stored
 * @param versions of the members in the range that the platform has reported, by name: no others are removed
 * @param current the stored members of the snapshot, by name
 * @param later the ranges of later snapshots: their projects stay as they are
 * @returns `changes` has the removals first, and an entry without a difference for a member that has no version yet
 */
export function differenceOf(
  snapshot: (MemberRef & MemberState)[],
  version: string,
  versions: Map<string, MemberVersion>,
  current: Map<string, MemberState>,
  later: ProjectRange[],
): { changes: MemberChange[]; difference: Difference; removesTooMany: boolean } {
  const named = new Set(snapshot.map(memberName));
  const reported = [...versions.values()].filter(({ removed }) => !removed);
  const isSettled = ({ project_id }: MemberRef) => later.some((range) => isWithin(range, project_id));
  const removed = reported
    .filter((each) => !named.has(each.member) && each.version <= version)
    .map(refOf)
    .filter((ref) => !isSettled(ref));
  const changes: MemberChange[] = [...removed];
  const difference = { added: 0, changed: 0, removed: removed.length, unchanged: 0 };
  for (const { user_id, project_id, name, role } of snapshot) {
    const member = memberName({ user_id, project_id });
    const [stored, before, after] = [versions.get(member), current.get(member), { name, role }];
    const isLater = isSettled({ user_id, project_id }) || (stored !== undefined && stored.version > version);
    if (isLater || isSame(before, after)) difference.unchanged += 1;
    else if (before) difference.changed += 1;
    else difference.added += 1;
    if (!isLater && !(stored && isSame(before, after))) changes.push({ user_id, project_id, before, after });
  }
  return { changes, difference, removesTooMany: removed.length * 10 > reported.length };
}
