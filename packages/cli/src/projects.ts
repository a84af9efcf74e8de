import type { Command } from "commander";
import { signedIn } from "./api.ts";
import type { Globals } from "./globals.ts";
import { relativeTime, table } from "./table.ts";
import { jsonText, note, print } from "./terminal.ts";

export function addProjects(program: Command): void {
  const projects = program
    .command("projects")
    .summary("projects: list")
    .description("The projects that you are a member of.");

  projects
    .command("list")
    .summary("list your projects")
    .description("Lists your projects and your role in each: admin (can change webhooks) or viewer (read-only).")
    .action(async (_options, command: Command) => {
      const { json, ...globals }: Globals = command.optsWithGlobals();
      const list = await (await signedIn(globals)).listProjects();
      if (json) return print(jsonText(list));
      if (list.length === 0) return note("You are not a member of any project.");
      const rows = list.map(({ id, name, role, created_at }) => [id, name, role, relativeTime(created_at)]);
      print(table(["id", "name", "role", "created"], rows));
    });
}
