import { randomUUID } from "node:crypto";
import { tables } from "../functions/manifest/tables.ts";
import { handler as putMember } from "../functions/projects/upsert-member.ts";
import { command, readOptions } from "./local/command.ts";
import { connect } from "./local/connect.ts";

await command("npm run --silent project -- --user <id> --name <name> [--id <uuid>] [--role admin|viewer]", async () => {
  const { user, name, id, role } = readOptions(["user", "name"], ["id", "role"]);
  await connect();
  process.env[tables.projects.env] ??= tables.projects.name;
  const project = await putMember({ user_id: user, project_id: id ?? randomUUID(), name, role });
  return project.id;
});
