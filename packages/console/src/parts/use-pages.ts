import { useRef, useState } from "preact/hooks";
import type { Client } from "../../../client/src/client.ts";
import { mergePages, type PageOf } from "../data/delivery-pages.ts";
import { useAction } from "./use-action.ts";
import { useLoaded } from "./use-loaded.ts";

interface PagesOptions<Item> {
  /** Loads the newest items, or those after the cursor. */
  load(client: Client, page: { limit: number; cursor?: string }): Promise<PageOf<Item>>;
  intervalMs(items: Item[]): number;
  pageSize: number;
  /** The most items that are reloaded at an interval. */
  maxLiveCount: number;
}

/** The first page of a list, reloaded at an interval, with the older pages loaded so far. @param key identifies the list */
export function usePages<Item extends { id: string }>(key: string, options: PagesOptions<Item>) {
  const { load, intervalMs, pageSize, maxLiveCount } = options;
  /** Everything shown when "Load more" was last used. */
  const [loaded, setLoaded] = useState<PageOf<Item> & { key: string }>();
  const older = loaded?.key === key ? loaded : undefined;
  const live = useRef({ key, count: pageSize });
  if (live.current.key !== key) live.current = { key, count: pageSize };

  const loading = useLoaded(
    key,
    (client) => load(client, { limit: live.current.count }),
    ({ items }) => intervalMs(items),
  );
  const { data: first, error, reload } = loading;
  const { items: shown, nextCursor }: PageOf<Item> = first ? mergePages(first, older) : { items: [] };

  const loadMore = useAction(async (client) => {
    const page = await load(client, { limit: pageSize, ...(nextCursor !== undefined && { cursor: nextCursor }) });
    const items = [...shown, ...page.items];
    if (live.current.key === key) live.current.count = Math.min(maxLiveCount, Math.max(pageSize, items.length));
    setLoaded({ ...page, items, key });
  });

  return {
    shown,
    isLoaded: first !== undefined,
    error,
    reload,
    /** Undefined on the last page. */
    loadMore: nextCursor === undefined ? undefined : loadMore,
  };
}
