/** Upper bound on the ids by which a repetition is recognized, in a run of any length. */
const MAX_IDS = 1_000;

/** Adds an id to those that are known, and forgets the oldest one beyond the bound. */
export function remember(known: Set<string>, id: string): void {
  known.add(id);
  const [oldest] = known;
  if (known.size > MAX_IDS && oldest !== undefined) known.delete(oldest);
}
