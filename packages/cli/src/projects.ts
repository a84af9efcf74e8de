import type { Command } from "commander";
import { signedIn } from "./api.ts";
import type { Globals } from "./globals.ts";
import { relativeTime, table } from "./table.ts";
import { jsonText, note, print } from "./terminal.ts";

export function addProjects(program: Command): void {
  const projects = program.command("projects").summary("projects: list").description("The projects that you are in.");

  projects
    .command("list")
    .summary("list your projects")
    .description(
      "Lists the projects that you are in, and whether you may change their webhooks (admin) or look (viewer).",
    )
    .action(async (_options, command: Command) => {
      const { json, ...globals }: Globals = command.optsWithGlobals();
      const list = await (await signedIn(globals)).listProjects();
      if (json) return print(jsonText(list));
      if (list.length === 0) return note("You are in no project.");
      const rows = list.map(({ id, name, role, created_at }) => [id, name, role, relativeTime(created_at)]);
      print(table(["id", "name", "role", "created"], rows));
    });
}
