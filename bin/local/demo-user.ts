import { handler as upsertMember } from "../../functions/projects/upsert-member.ts";

/** The user and the project of a new local run. */
export const demoUser = { userId: "demo-user", projectId: "01930000-0000-7000-8000-00000000d301" };

/** Puts the demo user into the demo project. Idempotent. */
export async function seedDemoUser(): Promise<void> {
  await upsertMember({ user_id: demoUser.userId, project_id: demoUser.projectId, name: "Demo project" });
}
