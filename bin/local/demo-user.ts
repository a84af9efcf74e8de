import { handler as putMember } from "../../functions/projects/upsert-member.ts";

/** Whom a fresh local run knows. */
export const demoUser = { userId: "demo-user", projectId: "01930000-0000-7000-8000-00000000d301" };

/** Makes sure that the demo user has the demo project. Repeating it changes nothing. */
export async function seedDemoUser(): Promise<void> {
  await putMember({ user_id: demoUser.userId, project_id: demoUser.projectId, name: "Demo project" });
}
