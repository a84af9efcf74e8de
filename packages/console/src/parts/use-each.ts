import type { Client } from "../../../client/src/client.ts";
import { useLoaded } from "./use-loaded.ts";

/** Upper bound on the requests at the same time. */
const MAX_PARALLEL = 4;

/**
 * Loads something of each row of a list, by the row's id. One that fails is left out.
 * @param key identifies the list
 */
export function useEach<Data>(
  key: string,
  ids: string[],
  load: (client: Client, id: string) => Promise<Data>,
  intervalMs: number,
): Map<string, Data> {
  const { data } = useLoaded(
    `${key} ${ids.join(" ")}`,
    async (client) => {
      const found = new Map<string, Data>();
      const left = [...ids];
      const work = async () => {
        for (let id = left.shift(); id !== undefined; id = left.shift()) {
          const loaded = await load(client, id).catch(() => undefined);
          if (loaded !== undefined) found.set(id, loaded);
        }
      };
      await Promise.all(Array.from({ length: MAX_PARALLEL }, work));
      return found;
    },
    intervalMs,
  );
  return data ?? new Map();
}
