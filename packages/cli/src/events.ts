import { type Command, Option } from "commander";
import type { EventName } from "../../client/src/client.ts";
import { eventNames } from "../../client/src/values.ts";
import { eventLine } from "./event-view.ts";
import { requireDeploymentId } from "./find.ts";
import { type InProject, openProject, projectOption } from "./in-project.ts";
import { readNumber } from "./read-number.ts";
import { jsonText, note, print } from "./terminal.ts";

export function addEvents(program: Command): void {
  program
    .command("events")
    .summary("deployment events of a project: list")
    .description("Deployment events of a project, of the last 30 days. To follow them: svc listen.")
    .command("list")
    .summary("list deployment events, newest first")
    .description("Lists deployment events, newest first. With --json, prints one record per line.")
    .addOption(new Option("--event <event>", "only this event").choices(eventNames))
    .option("--deployment <id>", "only events of this deployment")
    .option("--limit <n>", "maximum number of events", "20")
    .option(...projectOption)
    .action(async (_options, command: Command) => {
      const options: InProject & { event?: EventName; deployment?: string; limit: string } = command.optsWithGlobals();
      const { event, deployment } = options;
      const limit = readNumber("--limit", options.limit, 1, 10_000);
      const query = {
        limit: Math.min(limit, 100),
        ...(event && { event }),
        ...(deployment !== undefined && { deployment_id: requireDeploymentId(deployment) }),
      };
      const { api, projectId } = await openProject(options);
      let shown = 0;
      for await (const each of api.eachEvent(projectId, query)) {
        print(options.json ? jsonText(each) : eventLine(each));
        shown += 1;
        if (shown === limit) return;
      }
      if (shown === 0) note("No events.");
    });
}
