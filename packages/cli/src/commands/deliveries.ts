import { type Command, Option } from "commander";
import type {
  Client,
  DeliveryErrorCode,
  DeliveryStatus,
  Recovered,
  WebhookEventName,
  WebhookRef,
} from "../../../client/src/client.ts";
import {
  countRecoverable,
  type RecoverableStatus,
  recoverableStatuses,
  recoveryCountText,
} from "../../../client/src/recovery-count.ts";
import { deliveryErrorCodes, deliveryStatuses } from "../../../client/src/values.ts";
import { readDuration } from "../terminal/durations.ts";
import { usageError } from "../terminal/exit-codes.ts";
import { runUntilInterrupted } from "../terminal/interrupt.ts";
import { numberParser } from "../terminal/read-number.ts";
import { jsonText, note, print } from "../terminal/terminal.ts";
import { deliveryPage, deliveryTable, hintsOf } from "../views/delivery-view.ts";
import { eventOption } from "./delivery-options.ts";
import {
  findDelivery,
  findScope,
  findWebhook,
  newestDeliveries,
  noWebhookError,
  requireDeliveryId,
  requireDeploymentId,
  webhookLabels,
  webhooksOf,
} from "./find.ts";
import { type InProject, openProject, projectOption } from "./in-project.ts";
import { awaitOutcome } from "./outcome.ts";
import type { ProjectCall, SvcCommand } from "./svc-command.ts";
import { tail } from "./tail.ts";

interface DeliveryCall extends ProjectCall {
  webhook?: string;
}

/** @param defaultWebhooks what the command uses without --webhook */
const webhookOption = (defaultWebhooks: string) =>
  ["--webhook <id>", `the webhook's id or name; default: ${defaultWebhooks}`] as const;

interface ListCall extends DeliveryCall {
  status?: DeliveryStatus;
  event?: WebhookEventName;
  deployment?: string;
  error?: DeliveryErrorCode;
  since?: string;
  until?: string;
  limit: number;
}

interface RecoverCall extends DeliveryCall {
  since: string;
  status?: "failed" | "held" | "shadowed" | "superseded";
  dryRun?: boolean;
}

const deliveryId = ["<id>", "the delivery's id, as lists show it", requireDeliveryId] as const;

export function addDeliveries(program: SvcCommand): void {
  const deliveries = program
    .command("deliveries")
    .summary("deliveries of webhooks: list, show, redeliver, recover, tail")
    .description("Deliveries. A delivery is one event for one webhook, and is kept for 30 days.");

  deliveries
    .command("list")
    .option(...webhookOption("all webhooks of the project"))
    .summary("list deliveries, newest first")
    .description("Lists deliveries, newest first.")
    .addOption(
      new Option("--status <status>", "only deliveries with this status; a failing one is pending").choices(
        deliveryStatuses,
      ),
    )
    .addOption(eventOption("only deliveries of this event"))
    .option("--deployment <id>", "only deliveries of events of this deployment", requireDeploymentId)
    .addOption(
      new Option("--error <code>", "only those not succeeded whose last attempt failed for this reason").choices(
        deliveryErrorCodes,
      ),
    )
    .option(
      "--since <time>",
      "of events since: ISO 8601 time, or a duration before now: 90min, 6h, 3d",
      timeParser("--since"),
    )
    .option("--until <time>", "of events before: ISO 8601 time, or a duration before now", timeParser("--until"))
    .option("--limit <n>", "maximum number of deliveries", numberParser("--limit", 1, 999_999), 20)
    .addHelpText(
      "after",
      "\n--since and --until are times of the event. They make a search shorter; the other filters read all deliveries in between.\n\nExamples:\n  $ svc deliveries list --status failed --since 6h\n  $ svc deliveries list --deployment 0193d301-0000-7000-8000-000000000001\n  $ svc deliveries list --limit 500 --json | jq -r '.[].id'",
    )
    .inProject(async ({ api, projectId, webhook, json, ...options }: ListCall) => {
      const list = await newestDeliveries(api, await findScope(api, projectId, webhook), queryOf(options));
      if (json) return print(jsonText(list));
      if (list.length === 0) return note("No deliveries.");
      const labels = await webhookLabels(api, projectId);
      print(deliveryTable(list, labels));
      for (const hint of hintsOf(list, labels)) note(hint);
    });

  deliveries
    .command("show")
    .option(...webhookOption("all webhooks of the project"))
    .summary("show a delivery with its payload and its attempts")
    .description("Shows a delivery with its payload, its attempts and, for each failed attempt, how to fix the cause.")
    .argument(...deliveryId)
    .inProject(async ({ api, projectId, webhook, json }: DeliveryCall, id: string) => {
      const { delivery } = await findDelivery(api, await findScope(api, projectId, webhook), id);
      if (json) return print(jsonText(delivery));
      const labels = await webhookLabels(api, projectId);
      print(deliveryPage(delivery, projectId, labels.get(delivery.webhook_id)));
    });

  deliveries
    .command("redeliver")
    .option(...webhookOption("all webhooks of the project"))
    .summary("send a delivery again and wait for the outcome")
    .description("Sends a delivery again, with the same id. Exit code 1 if the attempt fails.")
    .argument(...deliveryId)
    .option("--no-wait", "do not wait for the outcome")
    .inProject(async ({ api, projectId, json, ...options }: DeliveryCall & { wait: boolean }, id: string) => {
      const { webhook, delivery } = await findDelivery(api, await findScope(api, projectId, options.webhook), id);
      const requested = await api.redeliver(webhook, delivery.id);
      if (options.wait) return awaitOutcome(api, webhook, requested, json);
      print(json ? jsonText(requested) : requested.id);
    });

  deliveries
    .command("recover")
    .option(...webhookOption("the only webhook of the project"))
    .summary("send failed, held and waiting deliveries now")
    .description(
      "Sends the failed and held deliveries of events since a time again, oldest first, and those that wait now.",
    )
    .requiredOption("--since <time>", "ISO 8601 time, or a duration before now: 90min, 6h, 3d", timeParser("--since"))
    .addOption(
      new Option(
        "--status <status>",
        "only deliveries with this status; default: all but shadowed and superseded",
      ).choices(recoverableStatuses),
    )
    .option("--dry-run", "count the deliveries, without sending any")
    .addHelpText(
      "after",
      "\n--dry-run reads the delivery list, the newest 10000 at most. Deliveries that wait are pending. While the webhook fails, one is sent first, and the others after its success.\n\nExamples:\n  $ svc deliveries recover --since 6h --dry-run\n  $ svc deliveries recover --since 6h\n  $ svc deliveries recover --since 2026-11-20T08:00:00Z --status held",
    )
    .inProject(
      async ({ api, projectId, json, since, status, ...options }: RecoverCall) => {
        const webhook = { projectId, webhookId: await findWebhook(api, projectId, options.webhook) };
        if (options.dryRun) return dryRun(api, webhook, { json, status, since: new Date(since) });
        const recovered = await recoverAll(api, webhook, { since, ...(status && { status }) });
        print(json ? jsonText(recovered) : `${recovered.count} sent again.`);
      },
      { maxWaitSeconds: BUDGET_WINDOW_SECONDS },
    );

  deliveries
    .command("tail")
    .option(...webhookOption("all webhooks of the project"))
    .option(...projectOption)
    .summary("follow deliveries as they happen")
    .description("Prints each new delivery and each change of its status. Continues through rate limits and outages.")
    .option("--last <n>", "number of latest deliveries to print first", numberParser("--last", 0, 100), 0)
    .addHelpText(
      "after",
      "\nDoes not follow webhooks that are created later. With --json, prints one record per line. Ctrl-C stops it with exit code 0.",
    )
    .action(async (_options, command: Command) => {
      const options: InProject & { webhook?: string; last: number } = command.optsWithGlobals();
      await runUntilInterrupted(async (signal) => {
        // No retries in the client: tail retries itself, for longer.
        const { api, projectId } = await openProject(options, { signal, maxRetries: 0 });
        const webhooks = await webhooksOf(api, projectId, options.webhook);
        if (webhooks.length === 0) throw noWebhookError(projectId);
        const labels = await webhookLabels(api, projectId);
        await tail(api, webhooks, { last: options.last, json: options.json === true, labels, signal });
      });
    });
}

/** A recovery of many calls waits for the next window of the project's budget. */
const BUDGET_WINDOW_SECONDS = 60;

/** Makes calls until the recovery is complete, and notes the progress. Returns the last result, with the total count. */
async function recoverAll(
  api: Client,
  webhook: WebhookRef,
  body: Parameters<Client["recoverDeliveries"]>[1],
): Promise<Recovered> {
  let count = 0;
  try {
    for await (const result of api.eachRecovery(webhook, body)) {
      count += result.count;
      if (result.complete) return { ...result, count };
      note(`${count} sent again so far, continuing.`);
    }
  } catch (error) {
    if (count > 0) note(`${count} sent again before the error. Repeat the command to continue.`);
    throw error;
  }
  return { count, complete: false, next_cursor: null };
}

async function dryRun(
  api: Client,
  webhook: WebhookRef,
  { since, status, json }: { since: Date; status: RecoverableStatus | undefined; json: boolean | undefined },
): Promise<void> {
  const { enabled, mode, suspended_at } = await api.getWebhook(webhook);
  if (!enabled) {
    const { webhookId, projectId } = webhook;
    note(`The webhook is disabled. Enable it first: svc webhooks update ${webhookId} --enable --project ${projectId}`);
  }
  if (mode === "shadow") note("The webhook is in shadow mode: what is recovered now is shadowed, and not sent.");
  if (suspended_at !== undefined) note("The project is suspended: nothing can be sent until the suspension ends.");
  const counted = await countRecoverable(api, webhook, { since, status });
  print(json ? jsonText({ dry_run: true, ...counted }) : recoveryCountText(counted));
}

const queryOf = ({ limit, status, event, deployment, error, since, until }: Omit<ListCall, keyof DeliveryCall>) => ({
  limit,
  ...(status && { status }),
  ...(event && { event }),
  ...(deployment !== undefined && { deployment_id: deployment }),
  ...(error && { error_code: error }),
  ...(since !== undefined && { since }),
  ...(until !== undefined && { until }),
});

/** Returns the parser of an option for a time. */
const timeParser = (option: string) => (text: string) => readSince(text, new Date(), option);

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/**
 * Converts a duration before now to a time. Returns a time unchanged.
 * @param option names the option in the error
 * @throws CommandError when the text is neither
 */
export function readSince(text: string, now: Date, option = "--since"): string {
  const seconds = readDuration(text);
  if (seconds !== undefined) return new Date(now.getTime() - seconds * 1000).toISOString();
  if (TIME.test(text) && !Number.isNaN(Date.parse(text))) return text;
  throw usageError(
    `${option} must be an ISO 8601 time with a time zone, or a duration before now.`,
    "Examples: 2026-01-31T09:30:00Z, 90min, 6h, 3d",
  );
}
