import { type Command, Option } from "commander";
import type { Client, StatsWindow, Webhook, WebhookEventName, WebhookRef } from "../../client/src/client.ts";
import { statsWindows, webhookEventNames } from "../../client/src/values.ts";
import { certify } from "./certify.ts";
import { usageError } from "./exit-codes.ts";
import { creation, findWebhook, requireFullId } from "./find.ts";
import type { Globals } from "./globals.ts";
import { type OnceOptions, onceOf, onceOption } from "./idempotency.ts";
import { type InProject, openProject, projectOption } from "./in-project.ts";
import { overlapNote, overlapOption, overlapSecondsOf } from "./key-options.ts";
import { namesOption } from "./names-option.ts";
import { awaitOutcome } from "./outcome.ts";
import { relativeTime, table } from "./table.ts";
import { confirm, jsonText, note, print } from "./terminal.ts";
import { stateCell, statsPage, webhookPage } from "./webhook-view.ts";

const eventsOption = () => namesOption("--events <names...>", "the events to receive", webhookEventNames);

type WebhookMode = "live" | "shadow";
const modeOption = (about: string) => new Option("--mode <mode>", about).choices(["live", "shadow"]);

const webhookId = [
  "[id]",
  "the webhook's id or a unique prefix of it; default: the only webhook of the project",
] as const;

/** Finds a webhook, and creates a client to call it with. */
async function findWebhookOf(
  options: InProject,
  id: string | undefined,
): Promise<{ api: Client; webhook: WebhookRef }> {
  const { api, projectId } = await openProject(options);
  return { api, webhook: { projectId, webhookId: await findWebhook(api, projectId, id) } };
}

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command("webhooks")
    .summary("webhooks of a project: create, list, show, stats, update, delete, rotate, test, certify")
    .description("Webhooks: the URLs that receive the deployment events of a project.");

  webhooks
    .command("create")
    .summary("create a webhook")
    .description("Creates a webhook and prints its signing secret, only once.")
    .argument("<url>", "https://…; a local service also accepts http://127.0.0.1")
    .addOption(eventsOption().makeOptionMandatory())
    .option("--name <name>", "its name in lists, up to 100 characters")
    .addOption(modeOption("shadow: deliveries are signed and logged, and not sent; default: live"))
    .option(...projectOption)
    .option(...onceOption)
    .addHelpText(
      "after",
      `\nExamples:\n  $ svc webhooks create https://example.com/hook --events deploy.succeeded deploy.failed\n  $ svc webhooks create http://127.0.0.1:4000/ --events deploy.failed > secret.txt   # stdout contains only the secret`,
    )
    .action(async (url: string, _options, command: Command) => {
      const {
        json,
        name,
        mode,
        ...options
      }: InProject & OnceOptions & { name?: string; mode?: WebhookMode; events: WebhookEventName[] } =
        command.optsWithGlobals();
      const { api, projectId } = await openProject(options);
      const webhook = { url, ...(name !== undefined && { name }), events: options.events, ...(mode && { mode }) };
      const created = await api.createWebhook(projectId, webhook, onceOf(options));
      note(`Created the webhook ${created.id}. Save its secret now: it is not shown again.`);
      print(json ? jsonText(created) : created.secret);
      const steps = ["test", "certify"].map((step) => `  svc webhooks ${step} ${created.id} --project ${projectId}`);
      note(["Then, before the first deployment:", ...steps].join("\n"));
    });

  webhooks
    .command("list")
    .summary("list the webhooks of a project")
    .description("Lists the webhooks of a project, oldest first.")
    .option(...projectOption)
    .action(async (_options, command: Command) => {
      const { json, ...options }: InProject = command.optsWithGlobals();
      const { api, projectId } = await openProject(options);
      const list = await api.listWebhooks(projectId);
      if (json) return print(jsonText(list));
      if (list.length === 0) return note(`The project has no webhooks. Create one: ${creation(projectId)}`);
      const hasNames = list.some(({ name }) => name !== undefined);
      const rows = list.map((webhook) => [
        webhook.id,
        ...(hasNames ? [webhook.name ?? ""] : []),
        webhook.url,
        stateCell(webhook),
        webhook.events.join(" "),
        relativeTime(webhook.created_at),
      ]);
      print(table(["id", ...(hasNames ? ["name"] : []), "url", "state", "events", "created"], rows));
    });

  webhooks
    .command("show")
    .summary("show a webhook and whether it works")
    .description(
      "Shows a webhook, whether its deliveries succeed, and if not, why and what happens next. Does not show its secret.",
    )
    .argument(...webhookId)
    .option(...projectOption)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject = command.optsWithGlobals();
      const { api, webhook } = await findWebhookOf(options, id);
      printWebhook(await api.getWebhook(webhook), options);
    });

  webhooks
    .command("stats")
    .summary("show success rate and response times of a webhook")
    .description("Shows attempts, success rate and response times of a webhook over time, by event and by error.")
    .argument(...webhookId)
    .addOption(new Option("--window <window>", "the time until now").choices(statsWindows).default("24h"))
    .option(...projectOption)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject & { window: StatsWindow } = command.optsWithGlobals();
      const { api, webhook } = await findWebhookOf(options, id);
      const stats = await api.getWebhookStats(webhook, { window: options.window });
      print(options.json ? jsonText(stats) : statsPage(stats));
    });

  webhooks
    .command("update")
    .summary("change the URL, name, events or mode of a webhook, enable or disable it")
    .description("Changes a webhook. To send held deliveries after enabling it, use svc deliveries recover.")
    .argument(...webhookId)
    .option("--url <url>", "the new URL")
    .option("--name <name>", 'the new name; "" removes it')
    .addOption(eventsOption())
    .option("--enable", "resume sending")
    .option("--disable", "stop sending; new events are held")
    .addOption(modeOption("shadow: log deliveries with their signatures, and do not send them"))
    .option(...projectOption)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject & {
        url?: string;
        name?: string;
        events?: WebhookEventName[];
        enable?: boolean;
        disable?: boolean;
        mode?: WebhookMode;
      } = command.optsWithGlobals();
      if (options.enable && options.disable) throw usageError("Pass --enable or --disable, not both.");
      const changes: Parameters<Client["updateWebhook"]>[1] = {
        ...(options.url !== undefined && { url: options.url }),
        ...(options.name !== undefined && { name: options.name === "" ? null : options.name }),
        ...(options.events && { events: options.events }),
        ...((options.enable || options.disable) && { enabled: options.enable === true }),
        ...(options.mode && { mode: options.mode }),
      };
      if (Object.keys(changes).length === 0) {
        throw usageError("Nothing to change.", "Pass --url, --name, --events, --enable, --disable or --mode.");
      }
      const { api, webhook } = await findWebhookOf(options, id);
      printWebhook(await api.updateWebhook(webhook, changes), options);
    });

  webhooks
    .command("delete")
    .summary("delete a webhook and its delivery log")
    .description("Deletes a webhook and its delivery log, and cancels its pending deliveries.")
    .argument("<id>", "the full id of the webhook")
    .option("-y, --yes", "do not ask for confirmation")
    .option(...projectOption)
    .action(async (id: string, _options, command: Command) => {
      const options: InProject & { yes?: boolean } = command.optsWithGlobals();
      const { api, webhook } = await findWebhookOf(options, requireFullId(id));
      await confirm(`Delete the webhook ${webhook.webhookId}`, options.yes);
      await api.deleteWebhook(webhook);
      note(`Deleted the webhook ${webhook.webhookId}.`);
    });

  webhooks
    .command("rotate")
    .summary("create a new signing secret; the previous one stays valid during the overlap")
    .description(
      "Creates a new signing secret and prints it, only once. Deliveries are signed with both secrets during the overlap.",
    )
    .argument(...webhookId)
    .option(...overlapOption)
    .option("-y, --yes", "do not ask for confirmation (asked only for an overlap of 0)")
    .option(...projectOption)
    .action(async (id: string | undefined, _options, command: Command) => {
      const { json, ...options }: InProject & { overlap: string; yes?: boolean } = command.optsWithGlobals();
      const overlap_seconds = overlapSecondsOf(options.overlap);
      const { api, webhook } = await findWebhookOf(options, id);
      if (overlap_seconds === 0) {
        await confirm(`Invalidate all previous secrets of the webhook ${webhook.webhookId}`, options.yes);
      }
      const rotated = await api.rotateWebhookSecret(webhook, { overlap_seconds });
      note(`Created a new secret for the webhook ${webhook.webhookId}. Save it now: it is not shown again.`);
      note(overlapNote(options.overlap));
      print(json ? jsonText(rotated) : rotated.secret);
    });

  webhooks
    .command("test")
    .summary("send a sample event and wait for the outcome")
    .description(
      "Sends a sample of an event that a webhook receives, marked as a test, with a single attempt, even if it is disabled. Exit code 1 if it fails.",
    )
    .argument(...webhookId)
    .addOption(new Option("--event <name>", "default: the first event that it receives").choices(webhookEventNames))
    .option("--no-wait", "do not wait for the outcome")
    .option(...projectOption)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject & { event?: WebhookEventName; wait: boolean } = command.optsWithGlobals();
      const { api, webhook } = await findWebhookOf(options, id);
      const delivery = await api.sendTestDelivery(webhook, options.event && { event: options.event });
      if (options.wait) return awaitOutcome(api, webhook, delivery, options.json);
      print(options.json ? jsonText(delivery) : delivery.id);
    });

  webhooks
    .command("certify")
    .summary("check that the receiver accepts valid deliveries and rejects all others")
    .description(
      "Sends six marked requests to the receiver and shows which checks it passed: valid, repeated and unusual deliveries, and requests with a forged signature, a stale timestamp and a cut body. Works on a disabled webhook too. Exit code 1 if a check fails.",
    )
    .argument(...webhookId)
    .option(...projectOption)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject = command.optsWithGlobals();
      const { api, webhook } = await findWebhookOf(options, id);
      await certify(api, webhook, options.json);
    });
}

const printWebhook = (webhook: Webhook, { json }: Globals): void =>
  print(json ? jsonText(webhook) : webhookPage(webhook));
