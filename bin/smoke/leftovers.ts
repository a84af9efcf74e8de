import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { expectData, expectStatus } from "./assertions.ts";
import type { CheckContext } from "./context.ts";

/*
 * Removes the resources that smoke tests created. Each one carries the mark of its run, so it is also found when the
 * response to its creation was lost, or when the run was killed: a later run then removes it.
 */

const MARK = /^smoke-\d{8}T\d{6}Z-[0-9a-f]{6}$/;
/** Age from which a marked resource belongs to a killed run. A run takes about a minute. */
const ABANDONED_AFTER_MS = 3600 * 1000;

export const newMark = (now: Date): string =>
  `smoke-${now.toISOString().replaceAll(/[-:]|\.\d+/g, "")}-${randomBytes(3).toString("hex")}`;

/** A list that may contain marked resources. */
interface MarkedList {
  kind: string;
  path: string;
  /** Returns the text of an entry that would be its mark; undefined = the entry has none. */
  markOf(entry: Entry): string | undefined;
}

type Entry = z.output<typeof entry>;
const entry = z.object({
  id: z.string(),
  created_at: z.string(),
  name: z.optional(z.string()),
  url: z.optional(z.string()),
});

function markedLists({ project }: CheckContext): MarkedList[] {
  const keys: MarkedList = { kind: "API key", path: "/v1/api-keys", markOf: ({ name }) => name };
  if (!project) return [keys];
  const path = `/v1/projects/${project.id}/webhooks`;
  return [keys, { kind: "webhook", path, markOf: ({ url }) => url?.split("#")[1] }];
}

export interface Removal {
  /** Number of removed resources, if there are no failures. */
  count: number;
  /** Descriptions of the resources that could not be removed, each with the request that removes it. */
  failures: string[];
}

/** Removes the resources of this run, and those that killed runs left behind. */
export async function removeAll(context: CheckContext, now: Date): Promise<Removal> {
  const { sendAsUser, mark, created } = context;
  const failures: string[] = [];
  const isRemovable = (found: string, { created_at }: Entry) =>
    found === mark || (MARK.test(found) && now.getTime() - Date.parse(created_at) > ABANDONED_AFTER_MS);
  // Starts with the resources known to exist: a list may fail to show them.
  const due = new Map(created);

  for (const { kind, path, markOf } of markedLists(context)) {
    try {
      const entries = expectData(await sendAsUser("GET", path), 200, z.array(entry));
      for (const each of entries) if (isRemovable(markOf(each) ?? "", each)) due.set(`${path}/${each.id}`, kind);
    } catch (error) {
      failures.push(`any ${kind} marked ${mark} (${(error as Error).message})`);
    }
  }
  await Promise.all(
    [...due].map(async ([path, kind]) => {
      try {
        const response = await sendAsUser("DELETE", path);
        // 404: already deleted, for example by a parallel run.
        if (response.status !== 404) expectStatus(response, 204);
      } catch (error) {
        failures.push(`${kind}: DELETE ${path} (${(error as Error).message})`);
      }
    }),
  );
  return { count: due.size, failures };
}
