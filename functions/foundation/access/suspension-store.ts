import { COUNTER, readItem } from "../platform/dynamo.ts";
import { tableName } from "../platform/env.ts";
import { projectSuspended } from "../platform/errors.ts";

/**
 * Rejects a request for a suspended project that reads none of its webhooks, which have the mark too. One strongly consistent read.
 * @throws ApiError `project_suspended`
 */
export async function requireActive(project_id: string): Promise<void> {
  const counter = await readItem({ TableName: tableName("webhooks"), Key: { project_id, id: COUNTER } });
  if (counter?.suspended_at !== undefined) throw projectSuspended();
}
