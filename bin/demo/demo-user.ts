import { updateIf } from "../../functions/foundation/platform/dynamo.ts";
import { tableName } from "../../functions/foundation/platform/env.ts";
import { changing, when } from "../../functions/foundation/platform/expression.ts";

/** The user and the project of a new local run. */
export const demoUser = { userId: "demo-user", projectId: "01930000-0000-7000-8000-00000000d301" };

/**
 * Puts the demo user into the demo project. Idempotent. It is none of the members that the platform has reported, so that
 * a snapshot of the platform's members does not remove it.
 */
export async function seedDemoUser(): Promise<void> {
  const Key = { user_id: demoUser.userId, project_id: demoUser.projectId };
  const created_at = when`if_not_exists(created_at, ${new Date().toISOString()})`;
  const change = changing({ set: { name: "Demo project", role: "admin", created_at } });
  await updateIf({ TableName: tableName("projects"), Key }, change);
}
