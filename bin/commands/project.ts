import { randomUUID } from "node:crypto";
import { tables } from "../../functions/manifest/tables.ts";
import { handler as upsertMember } from "../../functions/projects/upsert-member.ts";
import { command } from "../local/command.ts";
import { connect } from "../local/connect.ts";
import { settingRows } from "../local/settings.ts";

const help = {
  name: "npm run --silent project",
  about: `Puts a user into a project of the running service and prints the project's id.
With the id of an existing project it adds the user, or changes the user's role and the name that the user sees.`,
  options: {
    user: { value: "<id>", about: "user id, any text", isRequired: true },
    name: { value: "<name>", about: "name of the project", isRequired: true },
    id: { value: "<uuid>", about: "id of the project", shownDefault: "a new project" },
    role: { value: "admin|viewer", about: "role of the user", shownDefault: "admin" },
  },
  settings: settingRows("DATA_DIR", "AWS_ENDPOINT_URL_DYNAMODB"),
  examples: [
    'npm run --silent project -- --user demo-user --name "My shop"',
    'npm run --silent project -- --user bob --name "My shop" --id 01930000-0000-7000-8000-00000000d301 --role viewer',
  ],
} as const;

export async function main(): Promise<void> {
  await command(help, async ({ user, name, id, role }) => {
    await connect();
    process.env[tables.projects.env] ??= tables.projects.name;
    const project = await upsertMember({ user_id: user, project_id: id ?? randomUUID(), name, role });
    return project.id;
  });
}
