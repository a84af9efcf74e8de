import type { DeliveryPage } from "../../../client/src/client.ts";

/** Items of a list that is ordered by id, newest first. */
export type PageOf<Item> = Pick<DeliveryPage, "nextCursor"> & { items: Item[] };

/**
 * Merges the first page, which is reloaded at an interval, with what was loaded before. Within the range of the first page
 * only its own items are kept: the others are no longer in the list.
 */
export function mergePages<Item extends { id: string }>(first: PageOf<Item>, older?: PageOf<Item>): PageOf<Item> {
  if (first.nextCursor === undefined || older === undefined) return first;
  const lowestId = first.items.at(-1)?.id;
  const items = [...first.items, ...older.items.filter(({ id }) => lowestId === undefined || id < lowestId)];
  return { ...older, items };
}
