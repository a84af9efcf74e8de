import type { Command } from "commander";
import { CommandError, exitCodes } from "../terminal/exit-codes.ts";
import type { Globals } from "../terminal/globals.ts";
import { note, printable, printList } from "../terminal/terminal.ts";
import { roleTable } from "../views/table.ts";
import { connect } from "./api.ts";
import { readConfig, writeConfig } from "./config.ts";
import { findProject } from "./find.ts";
import { openSession } from "./session.ts";
import type { SvcCommand } from "./svc-command.ts";

export function addProjects(program: SvcCommand): void {
  const projects = program
    .command("projects")
    .summary("projects: list, use")
    .description("The projects that you are a member of.");

  projects
    .command("list")
    .summary("list your projects")
    .description("Lists your projects and your role in each: admin (can change webhooks) or viewer (read-only).")
    .signedIn(async ({ api, json }) => {
      printList(await api.listProjects(), json, "You are not a member of any project.", roleTable);
    });

  projects
    .command("use")
    .summary("choose the project of commands without --project")
    .description("Stores the project of commands without --project, for this service. SVC_PROJECT takes precedence.")
    .argument("<id or name>", "the project")
    .action(async (idOrName: string, _options, command: Command) => {
      const globals: Globals = command.optsWithGlobals();
      const session = openSession(globals);
      const api = await connect(globals, session);
      const id = await findProject(api, idOrName);
      // findProject does not check an id, and every later command would fail.
      const project = (await api.listProjects()).find((each) => each.id === id);
      if (!project)
        throw new CommandError(exitCodes.notFound, `You are not a member of ${id}.`, "List yours: svc projects list");
      const config = readConfig();
      writeConfig({ ...config, projects: { ...config.projects, [session.baseUrl]: id } });
      note(`Commands now use the project ${printable(project.name)} (${id}).`);
    });
}
