import { snapshotInput } from "../access/membership.ts";
import { log } from "../platform/log.ts";
import { invalidField, parse } from "../schema/input.ts";
import {
  type Difference,
  differenceOf,
  isWithin,
  memberName,
  REMOVALS_KEPT_SECONDS,
  storedVersion,
} from "./member-difference.ts";
import * as snapshots from "./member-snapshot-store.ts";

/** `applied`: false = nothing was changed. */
export type SyncResult = Difference & { applied: boolean };

/**
 * Compares the memberships of a range of projects with those of the platform, and makes them the same. A change that the
 * platform has reported later wins. Idempotent. The platform invokes this function with IAM credentials.
 * @param input `{version, members: [{user_id, project_id, name, role}], after, until, dry_run, force}`. `members` are all members
 *   of all projects with an id greater than `after`, up to `until`; absent = without a bound. `dry_run` is true by default.
 *   Without `force`, nothing is changed when more than a tenth of the members in the range would be removed
 */
export async function handler(input: unknown): Promise<SyncResult> {
  const { version: given, members: snapshot, dry_run = true, force = false, ...range } = parse(snapshotInput, input);
  if (range.after && range.until && range.until < range.after)
    throw invalidField("until", "must not be less than after");
  const now = new Date();
  const takenAt = typeof given === "number" ? await snapshots.timeOfSnapshot(given, now) : given;
  if (now.getTime() - takenAt.getTime() > REMOVALS_KEPT_SECONDS * 1000)
    throw invalidField("version", "must be at most 60 days ago: take a new snapshot");
  const seen = new Set<string>();
  for (const [index, member] of snapshot.entries()) {
    if (!isWithin(range, member.project_id))
      throw invalidField(`members.${index}.project_id`, "is not between after and until");
    if (seen.has(memberName(member))) throw invalidField(`members.${index}`, "is in the list before");
    seen.add(memberName(member));
  }
  const version = storedVersion(takenAt, now);
  const versions = await snapshots.versionsIn(range);
  const { changes, difference, removesTooMany } = differenceOf(
    snapshot,
    version,
    versions,
    await snapshots.membersOf(snapshot),
    await snapshots.appliedAfter(version),
  );
  const applied = !dry_run && (force || !removesTooMany);
  if (applied) await snapshots.applySnapshot(changes, version, range, now);
  log.info("members compared", { version, ...range, ...difference, applied });
  return { ...difference, applied };
}
