/* A list that comes in pages and whose first page is asked for again and again. */

/** The cursor in a `Link` header. Its address is not used: who asks decides where a credential goes. */
export function nextCursorOf(link: string | null): string | undefined {
  const next = /<([^>]*)>\s*;\s*rel="next"/.exec(link ?? "")?.[1] ?? "";
  return new URLSearchParams(next.split("?")[1] ?? "").get("cursor") ?? undefined;
}

export interface Page<Item> {
  items: Item[];
  /** Absent on the last page. */
  nextCursor: string | undefined;
}

/**
 * What is live, and below it what was loaded before. Ids are in order of time: between the live ones nothing of before stays
 * that is no longer among them.
 */
export function merge<Item extends { id: string }>(live: Page<Item>, before: Item[]): Item[] {
  if (live.nextCursor === undefined) return live.items;
  const lowest = live.items.at(-1)?.id;
  return [...live.items, ...before.filter(({ id }) => lowest === undefined || id < lowest)];
}
