import { type MemberRef, snapshotInput } from "../../foundation/access/member.ts";
import { log } from "../../foundation/platform/log.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { invalidField, parse } from "../../foundation/schema/input.ts";
import {
  type Difference,
  differenceOf,
  isWithin,
  memberName,
  type ProjectRange,
  REMOVALS_KEPT_SECONDS,
  storedVersion,
} from "./member-difference.ts";
import * as snapshots from "./member-snapshot-store.ts";

/** `applied`: false = nothing was changed. */
export type SyncResult = Difference & { applied: boolean };

/**
 * Compares the members of a range of projects with those of the platform, and makes them the same. A change that the
 * platform has reported later wins. Idempotent. The platform invokes this function with IAM credentials.
 * @throws ApiError `conflict` when another snapshot is being applied to some of these projects
 * @param input `{version, members: [{user_id, project_id, name, role}], after, until, dry_run, force}`. `members` are all members
 *   of all projects with an id greater than `after`, up to `until`; absent = without a bound. `dry_run` is true by default.
 *   Without `force`, nothing is changed when more than a tenth of the members in the range would be removed
 */
export async function handler(input: unknown): Promise<SyncResult> {
  const { version: given, members: snapshot, dry_run = true, force = false, ...range } = parse(snapshotInput, input);
  requireComplete(snapshot, range);
  const now = new Date();
  const version = typeof given === "number" ? await snapshots.versionOfNumber(given, now) : storedVersion(given, now);
  if (version < addSeconds(now, -REMOVALS_KEPT_SECONDS))
    throw invalidField("version", "must be at most 60 days ago: take a new snapshot");
  const compare = async () => {
    const { changes, difference, removesTooMany } = differenceOf(
      snapshot,
      version,
      await snapshots.versionsIn(range),
      await snapshots.membersOf(snapshot),
      await snapshots.appliedAfter(version),
    );
    const applied = !dry_run && (force || !removesTooMany);
    if (applied) await snapshots.applySnapshot(changes, version, range, now);
    return { ...difference, applied };
  };
  const result = await (dry_run ? compare() : snapshots.whileAlone(version, range, now, compare));
  log.info("members compared", { version, ...range, ...result });
  return result;
}

/** @throws ApiError `validation_error` for a member that is not in the range, or twice in the list */
function requireComplete(snapshot: MemberRef[], range: ProjectRange): void {
  if (range.after && range.until && range.until < range.after)
    throw invalidField("until", "must not be less than after");
  const seen = new Set<string>();
  for (const [index, member] of snapshot.entries()) {
    if (!isWithin(range, member.project_id))
      throw invalidField(`members.${index}.project_id`, "is not between after and until");
    if (seen.has(memberName(member))) throw invalidField(`members.${index}`, "is in the list before");
    seen.add(memberName(member));
  }
}
