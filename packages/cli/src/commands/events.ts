import type { DeploymentEvent, EventName } from "../../../client/src/client.ts";
import { eventNames } from "../../../client/src/values.ts";
import { numberParser } from "../terminal/read-number.ts";
import { printList } from "../terminal/terminal.ts";
import { eventLine } from "../views/event-view.ts";
import { eventOption } from "./delivery-options.ts";
import { requireDeploymentId } from "./find.ts";
import type { ProjectCall, SvcCommand } from "./svc-command.ts";

interface ListCall extends ProjectCall {
  event?: EventName;
  deployment?: string;
  limit: number;
}

export function addEvents(program: SvcCommand): void {
  program
    .command("events")
    .summary("deployment events of a project: list")
    .description("Deployment events of a project, of the last 30 days. To follow them: svc listen.")
    .command("list")
    .summary("list deployment events, newest first")
    .description("Lists deployment events, newest first.")
    .addOption(eventOption("only this event", eventNames))
    .option("--deployment <id>", "only events of this deployment", requireDeploymentId)
    .option("--limit <n>", "maximum number of events", numberParser("--limit", 1, 10_000), 20)
    .inProject(async ({ api, projectId, json, event, deployment, limit }: ListCall) => {
      const query = {
        limit: Math.min(limit, 100),
        ...(event && { event }),
        ...(deployment !== undefined && { deployment_id: deployment }),
      };
      const events: DeploymentEvent[] = [];
      for await (const each of api.eachEvent(projectId, query)) {
        events.push(each);
        if (events.length === limit) break;
      }
      printList(events, json, "No events.", (all) => all.map(eventLine).join("\n"));
    });
}
