import * as z from "zod/mini";
import type { Revocation } from "../../foundation/records/revocation.ts";
import { revocationsAfter } from "../../foundation/records/revocation-store.ts";
import { fields, isoTime, parse } from "../../foundation/schema/input.ts";

/** A cursor is the time at which its read began. */
const feedInput = fields({ after: z.optional(isoTime) });

export interface RevocationPage {
  /** In the order of their times. Those of the last minute are returned again by each read. */
  revocations: Revocation[];
  /** The `after` of the next read. */
  cursor: string;
  /** Revocations are missing: `after` is older than a day, or there are too many. Every cached result may be out of date. */
  reset?: true;
}

/**
 * Returns the changes after which a cached result of `credentials-verify` is out of date. The platform invokes this function with
 * IAM credentials.
 * @param input `{after}`: the `cursor` of the last read; absent = begin now, with no revocations
 */
export async function handler(input: unknown): Promise<RevocationPage> {
  const { after } = parse(feedInput, input);
  const now = new Date();
  const cursor = now.toISOString();
  const revocations = after === undefined ? [] : await revocationsAfter(after, now);
  return revocations === undefined ? { revocations: [], cursor, reset: true } : { revocations, cursor };
}
