import { type Command, Option } from "commander";
import type { Client, DeliveryStatus, WebhookPlace } from "../../client/src/client.ts";
import { connect, signedIn } from "./api.ts";
import { deliveryPage, deliveryTable } from "./delivery-view.ts";
import { usageError } from "./exit-codes.ts";
import { findDelivery, findProject, findWebhook, newestDeliveries, noWebhook, webhooksOf } from "./find.ts";
import type { Globals } from "./globals.ts";
import { untilInterrupted } from "./interrupt.ts";
import { awaitOutcome } from "./outcome.ts";
import { openSession } from "./session.ts";
import { tail } from "./tail.ts";
import { jsonText, note, print } from "./terminal.ts";

const statuses = ["pending", "succeeded", "failed", "held", "cancelled"];

interface Options extends Globals {
  project?: string;
  webhook?: string;
}

const placed = (command: Command, which: string): Command =>
  command
    .option("--webhook <id>", `the webhook's id, or its start; default: ${which}`)
    .option("--project <id or name>", "default: the only one that you are in");

export function addDeliveries(program: Command): void {
  const deliveries = program
    .command("deliveries")
    .summary("deliveries of webhooks: list, show, redeliver, recover, tail")
    .description("Deliveries: each is one event on its way to one webhook, kept for 30 days.");

  placed(deliveries.command("list"), "all of the project")
    .summary("list deliveries, newest first")
    .description("Lists deliveries, newest first.")
    .addOption(new Option("--status <status>", "only these").choices(statuses))
    .option("--limit <n>", "how many", "20")
    .addHelpText(
      "after",
      "\nExamples:\n  $ svc deliveries list --status failed\n  $ svc deliveries list --limit 500 --json | jq -r '.[].id'",
    )
    .action(async (_options, command: Command) => {
      const options: Options & { status?: DeliveryStatus; limit: string } = command.optsWithGlobals();
      const limit = /^[1-9]\d{0,5}$/.test(options.limit) ? Number(options.limit) : undefined;
      if (limit === undefined) throw usageError("--limit takes a whole number, at least 1.");
      const api = await signedIn(options);
      const list = await newestDeliveries(api, await places(api, options), { status: options.status, limit });
      if (options.json) return print(jsonText(list));
      if (list.length === 0) return note("No deliveries.");
      print(deliveryTable(list));
    });

  placed(deliveries.command("show"), "the one that has it")
    .summary("show a delivery: what was sent, and what came of each attempt")
    .description("Shows a delivery with its payload, its attempts and, for each that failed, what to mend.")
    .argument("<id>", "the delivery's id")
    .action(async (id: string, _options, command: Command) => {
      const options: Options = command.optsWithGlobals();
      const api = await signedIn(options);
      const { delivery } = await findDelivery(api, await places(api, options), id);
      print(options.json ? jsonText(delivery) : deliveryPage(delivery));
    });

  placed(deliveries.command("redeliver"), "the one that has it")
    .summary("attempt a delivery once more, now, and wait for the outcome")
    .description("Sends a delivery once more, under the same id. Exit code 1 when the attempt fails.")
    .argument("<id>", "the delivery's id")
    .option("--no-wait", "do not wait for the outcome")
    .action(async (id: string, _options, command: Command) => {
      const options: Options & { wait: boolean } = command.optsWithGlobals();
      const api = await signedIn(options);
      const { place } = await findDelivery(api, await places(api, options), id);
      const asked = await api.redeliver(place, id);
      if (options.wait) return awaitOutcome(api, place, asked, options.json);
      print(options.json ? jsonText(asked) : asked.id);
    });

  placed(deliveries.command("recover"), "the only one of the project")
    .summary("send what failed or was held since a time once more")
    .description("Sends the deliveries of events since a time that failed or were held once more, oldest first.")
    .requiredOption("--since <time>", "ISO 8601, or how long ago: 90min, 6h, 3d")
    .addOption(new Option("--status <status>", "only these; default: both").choices(["failed", "held"]))
    .addHelpText(
      "after",
      "\nExamples:\n  $ svc deliveries recover --since 6h\n  $ svc deliveries recover --since 2026-11-20T08:00:00Z --status held",
    )
    .action(async (_options, command: Command) => {
      const options: Options & { since: string; status?: "failed" | "held" } = command.optsWithGlobals();
      const since = readSince(options.since, new Date());
      const api = await signedIn(options);
      const projectId = await findProject(api, options.project);
      const place = { projectId, webhookId: await findWebhook(api, projectId, options.webhook) };
      const recovered = await api.recoverDeliveries(place, {
        since,
        ...(options.status && { status: options.status }),
      });
      if (options.json) return print(jsonText(recovered));
      print(`${recovered.count} sent once more.`);
      if (recovered.count > 0)
        note("A call that reaches its bound leaves the rest. Once more, until it says 0, sends all.");
    });

  placed(deliveries.command("tail"), "all of the project")
    .summary("follow deliveries as they happen")
    .description("Prints each delivery when it comes, and when its state changes. Rides out rate limits and outages.")
    .option("--last <n>", "how many of the latest to begin with", "5")
    .addHelpText(
      "after",
      "\nWebhooks that are made later are not followed. With --json each line is one record. Ctrl-C ends it, with exit code 0.",
    )
    .action(async (_options, command: Command) => {
      const options: Options & { last: string } = command.optsWithGlobals();
      const last = /^(\d{1,2}|100)$/.test(options.last) ? Number(options.last) : undefined;
      if (last === undefined) throw usageError("--last takes a whole number from 0 to 100.");
      await untilInterrupted(async (signal) => {
        // It waits in its own way, which Ctrl-C ends at once.
        const api = await connect(options, openSession(options), { signal, maxRetries: 0 });
        const followed = await places(api, options);
        if (followed.length === 0) throw noWebhook();
        await tail(api, followed, { last, json: options.json === true, signal });
      });
    });
}

/** The webhooks that a command is about: the one that is named, or all of the project. */
const places = async (api: Client, { project, webhook }: Options): Promise<WebhookPlace[]> =>
  webhooksOf(api, await findProject(api, project), webhook);

const secondsOf: Record<string, number> = { s: 1, min: 60, h: 3_600, d: 86_400 };

/** A time as it is, or so long before now. What is neither is left to the API to refuse. */
function readSince(text: string, now: Date): string {
  const [, amount, unit = ""] = /^(\d{1,6}) ?(s|min|h|d)$/.exec(text) ?? [];
  const seconds = Number(amount) * (secondsOf[unit] ?? Number.NaN);
  return Number.isNaN(seconds) ? text : new Date(now.getTime() - seconds * 1000).toISOString();
}
