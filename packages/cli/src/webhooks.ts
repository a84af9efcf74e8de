import { type Command, Option } from "commander";
import type { Client, StatsWindow, Webhook, WebhookEventName, WebhookRef } from "../../client/src/client.ts";
import { type EventFilter, newestEvents, readFilter, TRIED_EVENTS, trialOf } from "../../client/src/event-filter.ts";
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
import { confirm, jsonText, note, print, printable } from "./terminal.ts";
import { certificationCell, stateCell, statsPage, webhookPage, withoutScheme } from "./webhook-view.ts";

const eventsOption = () => namesOption("--events <names...>", "the events to receive", webhookEventNames);

const filterOption = (about: string) => new Option("--filter <field=value...>", about);
const filterHelp = `
A filter: a deployment event is sent if its data has, in each field, one of the values. * at the end of a value stands for any rest:
  --filter environment=production 'branch=release/*' branch=main`;

/** Reads the words of the option; an empty one stands for no filter. @throws CommandError for another text */
function filterOf(words: string[] | undefined): { filter?: EventFilter | null } {
  if (words === undefined) return {};
  if (words.join("") === "") return { filter: null };
  const read = readFilter(words);
  if ("filter" in read) return read;
  throw usageError(`${read.invalid} is not a field and a value.`, "Pass --filter environment=production branch=main");
}

type WebhookMode = "live" | "shadow";
const modeOption = (about: string) => new Option("--mode <mode>", about).choices(["live", "shadow"]);

interface WebhookOptions {
  name?: string;
  events?: WebhookEventName[];
  filter?: string[];
  mode?: WebhookMode;
}

/** Returns the fields of a webhook that these options set. */
const fieldsOf = ({ name, events, filter, mode }: WebhookOptions) => ({
  ...(name !== undefined && { name }),
  ...(events && { events }),
  ...filterOf(filter),
  ...(mode && { mode }),
});

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
    .summary("webhooks of a project: create, list, show, stats, update, delete, rotate, test, test-filter, certify")
    .description("Webhooks: the URLs that receive the deployment events of a project.");

  webhooks
    .command("create")
    .summary("create a webhook")
    .description("Creates a webhook and prints its signing secret, only once.")
    .argument("<url>", "https://…; a local service also accepts http://127.0.0.1")
    .addOption(eventsOption().makeOptionMandatory())
    .option("--name <name>", "its name in lists, up to 100 characters")
    .addOption(filterOption("send only events with these values; default: all"))
    .addOption(modeOption("shadow: deliveries are signed and logged, and not sent; default: live"))
    .option(...projectOption)
    .option(...onceOption)
    .addHelpText(
      "after",
      `${filterHelp}\n\nExamples:\n  $ svc webhooks create https://example.com/hook --events deploy.succeeded deploy.failed\n  $ svc webhooks create http://127.0.0.1:4000/ --events deploy.failed > secret.txt   # stdout contains only the secret`,
    )
    .action(async (url: string, _options, command: Command) => {
      const options: InProject & OnceOptions & WebhookOptions & { events: WebhookEventName[] } =
        command.optsWithGlobals();
      const webhook = { url, ...fieldsOf(options), events: options.events };
      const { api, projectId } = await openProject(options);
      const created = await api.createWebhook(projectId, webhook, onceOf(options));
      note(`Created the webhook ${created.id}. Save its secret now: it is not shown again.`);
      print(options.json ? jsonText(created) : created.secret);
      const verbs = options.mode === "shadow" ? ["certify", "update --mode live"] : ["test", "certify"];
      const steps = verbs.map((verb) => `  svc webhooks ${verb} ${created.id} --project ${projectId}`);
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
      const hasCertified = list.some(({ last_certification }) => last_certification !== undefined);
      const rows = list.map((webhook) => [
        webhook.id,
        stateCell(webhook),
        ...(hasNames ? [webhook.name ?? withoutScheme(webhook.url)] : []),
        webhook.url,
        ...(hasCertified ? [certificationCell(webhook)] : []),
        webhook.events.join(" "),
        relativeTime(webhook.created_at),
      ]);
      // The most important first, because a narrow terminal does not show the last ones.
      const columns = ["id", "state", ...(hasNames ? ["webhook"] : []), "url", ...(hasCertified ? ["certified"] : [])];
      print(table([...columns, "events", "created"], rows));
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
    .summary("change the URL, name, events, filter or mode of a webhook, enable or disable it")
    .description("Changes a webhook. To send held deliveries after enabling it, use svc deliveries recover.")
    .argument(...webhookId)
    .option("--url <url>", "the new URL")
    .option("--name <name>", 'the new name; "" removes it')
    .addOption(eventsOption())
    .addOption(filterOption('the new filter, instead of the present one; "" removes it'))
    .option("--enable", "resume sending")
    .option("--disable", "stop sending; new events are held")
    .addOption(modeOption("shadow: log deliveries with their signatures, and do not send them"))
    .option(...projectOption)
    .addHelpText("after", filterHelp)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject & WebhookOptions & { url?: string; enable?: boolean; disable?: boolean } =
        command.optsWithGlobals();
      if (options.enable && options.disable) throw usageError("Pass --enable or --disable, not both.");
      const changes: Parameters<Client["updateWebhook"]>[1] = {
        ...(options.url !== undefined && { url: options.url }),
        ...fieldsOf(options),
        ...(options.name === "" && { name: null }),
        ...((options.enable || options.disable) && { enabled: options.enable === true }),
      };
      if (Object.keys(changes).length === 0) {
        throw usageError(
          "Nothing to change.",
          "Pass --url, --name, --events, --filter, --enable, --disable or --mode.",
        );
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
    .command("test-filter")
    .summary("show which of the last events a webhook's filter lets through, and why")
    .description(
      `Shows for each of the last ${TRIED_EVENTS} deployment events of the project whether the webhook would receive it, by its events and its filter, and why. Sends nothing. With --json, prints one record per line.`,
    )
    .argument(...webhookId)
    .addOption(filterOption("try this filter, instead of that of the webhook"))
    .option(...projectOption)
    .addHelpText("after", filterHelp)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject & { filter?: string[] } = command.optsWithGlobals();
      const tried = filterOf(options.filter);
      const { api, webhook } = await findWebhookOf(options, id);
      const { events: names, filter = null } = { ...(await api.getWebhook(webhook)), ...tried };
      const events = await newestEvents(api, webhook.projectId);
      const { decisions, summary, problems } = trialOf({ events: names, filter: filter ?? undefined }, events);
      if (options.json) {
        for (const { payload, ...decision } of decisions) print(jsonText(decision));
      } else if (events.length > 0) {
        const rows = decisions.map(({ received, timestamp, event, deployment_id, reason }) => [
          received ? { text: "sent", style: "green" as const } : { text: "not sent", style: "dim" as const },
          timestamp,
          event,
          reason,
          deployment_id,
        ]);
        print(table(["", "time", "event", "why", "deployment"], rows));
      }
      for (const text of [summary, ...problems]) note(printable(text));
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
