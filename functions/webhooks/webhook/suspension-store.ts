import { platform } from "../../foundation/access/actor.ts";
import { COUNTER, readItems, transactIf } from "../../foundation/platform/dynamo.ts";
import { changing, isAsRead, type Part, when } from "../../foundation/platform/expression.ts";
import { present } from "../../foundation/platform/present.ts";
import { projectAudit } from "../../foundation/records/audit-store.ts";
import { revocationPut } from "../../foundation/records/revocation-store.ts";
import type { Webhook } from "./webhook.ts";
import { webhookKey } from "./webhook-store.ts";

/* The suspension of a project: a mark of the item that counts its webhooks, and of each of them. */

interface Counted {
  /** Time of the suspension; absent = not suspended. */
  suspended_at?: string;
  /** Absent = the project never had a webhook. */
  webhook_count?: number;
}

/** The suspension of a project, and its webhooks, without the subscriptions of assistants. */
export interface ProjectState extends Counted {
  webhooks: Webhook[];
}

/** Reads the counter and the webhooks of a project. Strongly consistent. A project without any item is not suspended. */
export async function projectState(projectId: string): Promise<ProjectState> {
  const items = await readItems<Webhook & Counted>("webhooks", when`project_id = ${projectId}`);
  const counter: Partial<Webhook & Counted> = items.find(({ id }) => id === COUNTER) ?? {};
  return {
    ...present(counter, ["suspended_at", "webhook_count"]),
    // More subscriptions than fit into a transaction, or into a list that reads each: senders read the counter for them.
    webhooks: items.filter(({ id, subscription }) => id !== COUNTER && subscription === undefined),
  };
}

/**
 * Suspends a project or ends its suspension: marks the counter and all webhooks in one transaction, so that of concurrent
 * calls the last one decides for all of them. The marks of the webhooks spare fan-out and senders a read. A create fails
 * while the counter has the mark, and the transaction fails when a webhook was created or deleted since the read. The
 * first suspension keeps its time.
 * @param at time of the suspension in ISO 8601; undefined = end it
 * @returns the project as it was before, with the webhooks that were marked; undefined when its webhooks have changed
 * meanwhile: call it again
 */
export async function markSuspended(projectId: string, at: string | undefined): Promise<ProjectState | undefined> {
  const before = await projectState(projectId);
  const { webhook_count } = before;
  const isMarked = [before, ...before.webhooks].some(({ suspended_at }) => suspended_at !== undefined);
  // Also for an unknown id: ending what never began leaves no item.
  if (at === undefined && !isMarked) return before;
  const mark =
    at === undefined
      ? { remove: ["suspended_at"] }
      : { set: { suspended_at: when`if_not_exists(suspended_at, ${at})` } };
  const markIf = (id: string, condition: Part) => ({
    Update: { ...webhookKey(projectId, id), ...changing({ ...mark, when: condition }) },
  });
  const isChange = (at === undefined) !== (before.suspended_at === undefined);
  const action = at === undefined ? "project.resumed" : "project.suspended";
  const audit = projectAudit(action, platform, { project_id: projectId, id: projectId });
  const isMarkedNow = await transactIf({
    ...Object.fromEntries(before.webhooks.map(({ id }) => [id, markIf(id, when`attribute_exists(id)`)])),
    [COUNTER]: markIf(COUNTER, isAsRead("webhook_count", webhook_count)),
    ...(isChange && { audit }),
    ...(at !== undefined && { revocation: revocationPut({ project_id: projectId }, "project_suspended") }),
  });
  return isMarkedNow ? before : undefined;
}
