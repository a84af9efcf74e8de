import type { Command } from "commander";
import type { EventName } from "../../../client/src/client.ts";
import { detailOf } from "../../../client/src/event-detail.ts";
import { eventNames } from "../../../client/src/values.ts";
import { readDuration } from "../terminal/durations.ts";
import { usageError } from "../terminal/exit-codes.ts";
import { runUntilInterrupted } from "../terminal/interrupt.ts";
import { numberParser } from "../terminal/read-number.ts";
import { jsonText, note, print } from "../terminal/terminal.ts";
import { eventLine } from "../views/event-view.ts";
import { relativeTime, table } from "../views/table.ts";
import { eventOption } from "./delivery-options.ts";
import { requireDeploymentId } from "./find.ts";
import { eachNewEvent } from "./follow-events.ts";
import { type InProject, openProject, projectOption } from "./in-project.ts";
import { fetchWithJobToken } from "./job-token.ts";
import { newestDeployments } from "./newest-deployments.ts";
import { claimsOf, openSession } from "./session.ts";
import type { ProjectCall, SvcCommand } from "./svc-command.ts";
import { waitForDeployment } from "./wait-for-deployment.ts";

export function addDeployments(program: SvcCommand): void {
  const deployments = program
    .command("deployments")
    .summary("deployments: list, wait, watch")
    .description("Deployments of a project, by their events of the last 30 days. Needs no webhook.");

  deployments
    .command("list")
    .summary("list the newest deployments")
    .description("Lists the newest deployments with their state, newest first.")
    .option("--limit <n>", "maximum number of deployments", numberParser("--limit", 1, 100), 20)
    .inProject(async ({ api, projectId, json, limit }: ProjectCall & { limit: number }) => {
      const found = (await newestDeployments(api, projectId, limit)).map(({ id, state, steps, durationMs }) => {
        const last = steps.at(-1)?.event;
        return { id, state, updated_at: last?.timestamp ?? null, duration_ms: durationMs, last };
      });
      if (json) return print(jsonText(found.map(({ last, ...record }) => record)));
      if (found.length === 0) return note("No deployments in the last 30 days.");
      const rows = found.map(({ id, state, updated_at, last }) => [
        id,
        state,
        relativeTime(updated_at),
        (last && detailOf(last)) ?? "",
      ]);
      print(table(["id", "state", "updated", "detail"], rows));
    });

  deployments
    .command("wait")
    .summary("wait until a deployment has succeeded or failed")
    .description(
      "Waits until a deployment has ended. Exit code 0: it succeeded; 1: it failed; 124: neither within the timeout.",
    )
    .argument("<deployment>", "the deployment's id", requireDeploymentId)
    .option(...projectOption)
    .option("--timeout <duration>", "the longest wait: 90s, 20m, 2h", "20m")
    .addHelpText(
      "after",
      "\nContinues through rate limits and outages. With --json, prints the event that ended the deployment.\n\nExample:\n  $ svc deployments wait $DEPLOYMENT_ID --timeout 10m && ./smoke-test",
    )
    .action(async (deploymentId: string, _options, command: Command) => {
      const options: InProject & { timeout: string } = command.optsWithGlobals();
      const timeoutSeconds = readTimeout(options.timeout);
      if (timeoutSeconds === undefined) throw usageError("--timeout must be 1s to 24h, for example 90s, 20m or 2h.");
      noteExpiry(openSession(options).token, options.timeout, timeoutSeconds);
      const signal = AbortSignal.timeout(timeoutSeconds * 1000);
      await waitForDeployment({
        open: () => openProject(options, { signal }),
        deploymentId,
        timeout: { text: options.timeout, signal },
        json: options.json === true,
      });
    });

  deployments
    .command("watch")
    .summary("follow the deployments of a project as they happen")
    .description("Prints each deployment event. Continues through rate limits and outages.")
    .option(...projectOption)
    .addOption(eventOption("only this event", eventNames))
    .option("--last <n>", "number of latest events to print first", numberParser("--last", 0, 100), 5)
    .addHelpText("after", "\nWith --json, prints one record per line. Ctrl-C stops it with exit code 0.")
    .action(async (_options, command: Command) => {
      const { last, ...options }: InProject & { event?: EventName; last: number } = command.optsWithGlobals();
      await runUntilInterrupted(async (signal) => {
        const { api, projectId } = await openProject(options, { signal });
        const filters = options.event === undefined ? {} : { event: options.event };
        const latest = await api.listEvents(projectId, { ...filters, limit: 100 });
        const show = options.json ? jsonText : eventLine;
        const shown = latest.items.slice(0, last);
        // A page can be short although more follow.
        for (let { nextCursor } = latest; nextCursor !== undefined && shown.length < last; ) {
          const page = await api.listEvents(projectId, { ...filters, limit: last - shown.length, after: nextCursor });
          shown.push(...page.items);
          nextCursor = page.nextCursor;
        }
        for (const event of shown.reverse()) print(show(event));
        note("Following the deployments. Press Ctrl-C to stop.");
        for await (const event of eachNewEvent(api, projectId, { query: filters, latest, signal })) print(show(event));
      });
    });
}

/** Says at once that the credential expires before the timeout, unless svc renews it. */
function noteExpiry(token: string, timeout: string, timeoutSeconds: number): void {
  const exp = Number(claimsOf(token).exp);
  const leftSeconds = exp - Date.now() / 1000;
  if (!(leftSeconds > 0 && leftSeconds < timeoutSeconds) || fetchWithJobToken(token)) return;
  note(`The JWT expires ${relativeTime(new Date(exp * 1000).toISOString())}, before the timeout of ${timeout}.`);
  note("→ Use an API key, or give the GitHub job the permission id-token: write, with which svc renews the token.");
}

const MAX_TIMEOUT_SECONDS = 24 * 3600;

/** Converts a duration to seconds. @returns undefined for any other text, and for a duration over 24 hours */
export function readTimeout(text: string): number | undefined {
  const seconds = readDuration(text);
  return seconds !== undefined && seconds > 0 && seconds <= MAX_TIMEOUT_SECONDS ? seconds : undefined;
}
