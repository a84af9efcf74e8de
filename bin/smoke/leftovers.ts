import { randomBytes } from "node:crypto";
import * as z from "zod/mini";
import { expectData, expectStatus } from "./assertions.ts";
import type { CheckContext } from "./context.ts";

/*
 * Nothing is left behind. What a run makes carries its mark and is found by it, so that it is found too when the answer to
 * its creation was lost, or when the run was killed: then the next one removes it.
 */

const MARK = /^smoke-\d{8}T\d{6}Z-[0-9a-f]{6}$/;
/** No run lasts so long. */
const ABANDONED_AFTER_MS = 3600 * 1000;

export const newMark = (now: Date): string =>
  `smoke-${now.toISOString().replaceAll(/[-:]|\.\d+/g, "")}-${randomBytes(3).toString("hex")}`;

/** A list that may hold something of ours, and where an entry has its mark. */
interface Place {
  kind: string;
  path: string;
  markOf(entry: Entry): string | undefined;
}

type Entry = z.output<typeof entry>;
const entry = z.object({
  id: z.string(),
  created_at: z.string(),
  name: z.optional(z.string()),
  url: z.optional(z.string()),
});

function placesOf({ project }: CheckContext): Place[] {
  const keys: Place = { kind: "API key", path: "/v1/api-keys", markOf: ({ name }) => name };
  if (!project) return [keys];
  const path = `/v1/projects/${project.id}/webhooks`;
  return [keys, { kind: "webhook", path, markOf: ({ url }) => url?.split("#")[1] }];
}

export interface Removal {
  count: number;
  /** What is still there, each with the request that removes it. */
  left: string[];
}

/** Removes what this run has made and what earlier ones have abandoned. */
export async function removeAll(scene: CheckContext, now: Date): Promise<Removal> {
  const { send, mark, options, made } = scene;
  const { token } = options;
  const left: string[] = [];
  const isOurs = (found: string, { created_at }: Entry) =>
    found === mark || (MARK.test(found) && now.getTime() - Date.parse(created_at) > ABANDONED_AFTER_MS);
  // What is known to have been made is removed even if no list shows it.
  const due = new Map(made);

  for (const { kind, path, markOf } of placesOf(scene)) {
    try {
      const entries = expectData(await send("GET", path, { token }), 200, z.array(entry));
      for (const each of entries) if (isOurs(markOf(each) ?? "", each)) due.set(`${path}/${each.id}`, kind);
    } catch (error) {
      left.push(`any ${kind} marked ${mark} (${(error as Error).message})`);
    }
  }
  await Promise.all(
    [...due].map(async ([path, kind]) => {
      try {
        const answer = await send("DELETE", path, { token });
        // Somebody else was faster.
        if (answer.status !== 404) expectStatus(answer, 204);
      } catch (error) {
        left.push(`${kind}: DELETE ${path} (${(error as Error).message})`);
        due.delete(path);
      }
    }),
  );
  return { count: due.size, left };
}
