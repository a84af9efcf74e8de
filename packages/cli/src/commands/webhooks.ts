import { Option } from "commander";
import type {
  Client,
  StatsWindow,
  Webhook,
  WebhookEventName,
  WebhookInList,
  WebhookRef,
} from "../../../client/src/client.ts";
import {
  type EventFilter,
  filterLines,
  newestEvents,
  readFilter,
  TRIED_EVENTS,
  trialOf,
} from "../../../client/src/event-filter.ts";
import { statsWindows } from "../../../client/src/values.ts";
import { printChecked, requireStdout } from "../terminal/checked-output.ts";
import { usageError } from "../terminal/exit-codes.ts";
import { confirm, jsonText, note, print, printable, printList, yesOption } from "../terminal/terminal.ts";
import { idCell, relativeTime, table, tableOf, withoutMiddle } from "../views/table.ts";
import {
  certificationCell,
  stateCell,
  stateDetail,
  statsPage,
  webhookPage,
  withoutScheme,
} from "../views/webhook-view.ts";
import { certify } from "./certify.ts";
import {
  type DeliveryOptions,
  deliveryFieldsOf,
  deliveryOptions,
  eventOption,
  eventsOption,
  fitToUrl,
  formatRemark,
} from "./delivery-options.ts";
import { creation, findWebhook, requireWebhookId } from "./find.ts";
import { type OnceOptions, onceOf, onceOption } from "./idempotency.ts";
import { overlapNote, overlapOption, overlapSecondsOf } from "./key-options.ts";
import { awaitOutcome } from "./outcome.ts";
import type { ProjectCall, SvcCommand, WebhookCall } from "./svc-command.ts";

const filterOption = (about: string) => new Option("--filter <field=value...>", about).argParser(addToFilter);
const filterHelp = `
A filter: a deployment event is sent if its data has, in each field, one of the values. * at the end of a value stands for any rest:
  --filter environment=production 'branch=release/*' branch=main`;

/** Adds a value of the option to the filter; an empty one stands for no filter. @throws CommandError for another text */
function addToFilter(word: string, filter: EventFilter = {}): EventFilter {
  if (word === "") return {};
  const read = readFilter([...filterLines(filter), word]);
  if ("filter" in read) return read.filter;
  throw usageError(`${read.invalid} is not a field and a value.`, "Pass --filter environment=production branch=main");
}

/** Other options take several values between commas. */
function noteCommas(filter: EventFilter = {}): void {
  const texts = Object.values(filter)
    .flat()
    .filter((text) => text.includes(","));
  for (const text of texts) note(`"${printable(text)}" is one value. For several: --filter field=one field=two`);
}

type WebhookMode = "live" | "shadow";
const modeOption = (about: string) => new Option("--mode <mode>", about).choices(["live", "shadow"]);

interface WebhookOptions extends DeliveryOptions {
  name?: string;
  events?: WebhookEventName[];
  /** Without fields: no filter. */
  filter?: EventFilter;
  mode?: WebhookMode;
}

/** Returns the fields of a webhook that these options set. */
const fieldsOf = ({ name, events, filter, mode }: WebhookOptions) => ({
  ...(name !== undefined && { name }),
  ...(events && { events }),
  ...(filter && { filter: Object.keys(filter).length > 0 ? filter : null }),
  ...(mode && { mode }),
});

export function addWebhooks(program: SvcCommand): void {
  const webhooks = program
    .command("webhooks")
    .summary("webhooks of a project: create, list, show, stats, update, delete, rotate, test, test-filter, certify")
    .description("Webhooks: the URLs that receive the deployment events of a project.");

  type Creation = ProjectCall & OnceOptions & WebhookOptions;
  const create = webhooks
    .command("create")
    .summary("create a webhook")
    .description("Creates a webhook and prints its signing secret, only once.")
    .argument("<url>", "https://…; a local service also accepts http://127.0.0.1")
    .addOption(eventsOption())
    .option("--name <name>", "its name in lists, up to 100 characters")
    .addOption(filterOption("send only events with these values; default: all"))
    .addOption(modeOption("shadow: deliveries are signed and logged, and not sent; default: live"))
    .option(...onceOption)
    .addHelpText(
      "after",
      `${filterHelp}\n\nExamples:\n  $ svc webhooks create https://hooks.slack.com/services/…   # messages in Slack, by default of deploy.*\n  $ svc webhooks create https://example.com/hook --events deploy.succeeded deploy.failed\n  $ svc webhooks create http://127.0.0.1:4000/ --events deploy.failed > secret.txt   # stdout contains only the secret`,
    )
    .hook("preAction", requireStdout)
    .inProject(async ({ api, projectId, json, ...options }: Creation, url: string) => {
      const fields = await fitToUrl(url, await deliveryFieldsOf(options));
      const events = options.events ?? (isChat(fields) ? ["deploy.*"] : undefined);
      if (!events) throw usageError("No events given.", "Pass --events deploy.succeeded deploy.failed");
      const webhook = { ...fields, ...fieldsOf(options), events };
      const created = await api.createWebhook(projectId, webhook, onceOf(options));
      note(`Created the webhook ${created.id}. Save its secret now: it is not shown again.`);
      const remark = formatRemark(url, options.format);
      if (remark !== undefined) note(remark);
      noteCommas(options.filter);
      const replacement = `${rotationOf({ projectId, webhookId: created.id })} --overlap 0 --yes`;
      await printChecked(json ? jsonText(created) : created.secret, `Replace the secret with: ${replacement}`);
      const usual = isChat(fields) ? ["test"] : ["test", "certify"];
      const verbs = options.mode === "shadow" ? ["certify", "update --mode live"] : usual;
      const steps = verbs.map((verb) => `  svc webhooks ${verb} ${created.id} --project ${projectId}`);
      note(["Then, before the first deployment:", ...steps].join("\n"));
    });
  for (const option of deliveryOptions()) create.addOption(option);

  webhooks
    .command("list")
    .summary("list the webhooks of a project")
    .description("Lists the webhooks of a project, oldest first.")
    .inProject(async ({ api, projectId, json }) => {
      const empty = `The project has no webhooks. Create one: ${creation(projectId)}`;
      printList(await api.listWebhooks(projectId), json, empty, webhookTable);
    });

  webhooks
    .command("show")
    .summary("show a webhook and whether it works")
    .description(
      "Shows a webhook, whether its deliveries succeed, and if not, why and what happens next. Does not show its secret.",
    )
    .onWebhook(async ({ api, webhook, json }) => printWebhook(await api.getWebhook(webhook), json));

  webhooks
    .command("stats")
    .summary("show success rate and response times of a webhook")
    .description("Shows attempts, success rate and response times of a webhook over time, by event and by error.")
    .addOption(new Option("--window <window>", "the time until now").choices(statsWindows).default("24h"))
    .onWebhook(async ({ api, webhook, json, window }: WebhookCall & { window: StatsWindow }) => {
      const stats = await api.getWebhookStats(webhook, { window });
      print(json ? jsonText(stats) : statsPage(stats));
    });

  const update = webhooks
    .command("update")
    .summary("change the URL, name, events, filter, format, headers or mode of a webhook, enable or disable it")
    .description("Changes a webhook. To send held deliveries after enabling it, use svc deliveries recover.")
    .option("--url <url>", "the new URL")
    .option("--name <name>", 'the new name; "" removes it')
    .addOption(eventsOption())
    .addOption(filterOption('the new filter, instead of the present one; "" removes it'))
    .option("--enable", "resume sending")
    .option("--disable", "stop sending; new events are held")
    .addOption(modeOption("shadow: log deliveries with their signatures, and do not send them"))
    .addHelpText("after", filterHelp)
    // Rejects options that contradict each other before a request looks for the webhook.
    .hook("preAction", (command) => requireChange(command.opts()))
    .onWebhook(async ({ api, webhook, json, ...options }: WebhookCall & UpdateOptions) => {
      const updated = await api.updateWebhook(webhook, await changesOf(options));
      printWebhook(updated, json);
      const { url, format } = options;
      const remark = url || format ? formatRemark(url ?? updated.url, format) : undefined;
      if (remark !== undefined) note(remark);
      noteCommas(options.filter);
    });
  for (const option of deliveryOptions()) update.addOption(option);
  update.option("--remove-headers", "remove all headers; --header replaces all");

  webhooks
    .command("delete")
    .summary("delete a webhook and its delivery log")
    .description("Deletes a webhook and its delivery log, and cancels its pending deliveries.")
    .argument("<id>", "the id of the webhook, as lists show it", requireWebhookId)
    .option(...yesOption)
    .inProject(async ({ api, projectId, yes }: ProjectCall & { yes?: boolean }, id: string) => {
      const webhookId = await findWebhook(api, projectId, id);
      await confirm(`Delete the webhook ${webhookId}`, yes);
      await api.deleteWebhook({ projectId, webhookId });
      note(`Deleted the webhook ${webhookId}.`);
    });

  webhooks
    .command("rotate")
    .summary("create a new signing secret; the previous one stays valid during the overlap")
    .description(
      "Creates a new signing secret and prints it, only once. Deliveries are signed with both secrets during the overlap.",
    )
    .option(...overlapOption)
    .option("-y, --yes", "do not ask for confirmation (asked only for an overlap of 0)")
    .hook("preAction", requireStdout)
    .onWebhook(async ({ api, webhook, json, overlap, yes }: WebhookCall & { overlap: string; yes?: boolean }) => {
      const overlap_seconds = overlapSecondsOf(overlap);
      if (overlap_seconds === 0) {
        await confirm(`Invalidate all previous secrets of the webhook ${webhook.webhookId}`, yes);
      }
      const rotated = await api.rotateWebhookSecret(webhook, { overlap_seconds });
      note(`Created a new secret for the webhook ${webhook.webhookId}. Save it now: it is not shown again.`);
      const kept = overlapNote(overlap);
      note(kept);
      await printChecked(json ? jsonText(rotated) : rotated.secret, `Rotate it again: ${rotationOf(webhook)}\n${kept}`);
    });

  webhooks
    .command("test")
    .summary("send a sample event and wait for the outcome")
    .description(
      "Sends a sample of an event that a webhook receives, marked as a test, with a single attempt, even if it is disabled. Exit code 1 if it fails.",
    )
    .addOption(eventOption("default: the first event that it receives"))
    .option("--no-wait", "do not wait for the outcome")
    .onWebhook(
      async ({ api, webhook, json, event, wait }: WebhookCall & { event?: WebhookEventName; wait: boolean }) => {
        const delivery = await api.sendTestDelivery(webhook, event === undefined ? undefined : { event });
        if (wait) return awaitOutcome(api, webhook, delivery, json);
        print(json ? jsonText(delivery) : delivery.id);
      },
    );

  webhooks
    .command("test-filter")
    .summary("show which of the last events a webhook's filter lets through, and why")
    .description(
      `Shows for each of the last ${TRIED_EVENTS} deployment events of the project whether the webhook would receive it, by its events and its filter, and why. Sends nothing. With --json, prints one record per line.`,
    )
    .addOption(filterOption("try this filter, instead of that of the webhook"))
    .addHelpText("after", filterHelp)
    .onWebhook(async ({ api, webhook, json, ...options }: WebhookCall & Pick<WebhookOptions, "filter">) => {
      const { events: names, filter = null } = { ...(await api.getWebhook(webhook)), ...fieldsOf(options) };
      const events = await newestEvents(api, webhook.projectId);
      const { decisions, summary, problems } = trialOf({ events: names, filter: filter ?? undefined }, events);
      if (json) {
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
    .onWebhook(async ({ api, webhook, json }) => certify(api, webhook, json));
}

interface UpdateOptions extends WebhookOptions {
  url?: string;
  enable?: boolean;
  disable?: boolean;
  removeHeaders?: boolean;
}

const isChat = ({ format }: DeliveryOptions): boolean =>
  format !== undefined && ["slack", "discord", "teams", "google-chat"].includes(format);

/** @throws CommandError when the options change nothing, or contradict each other */
function requireChange({ project, ...options }: UpdateOptions & { project?: string }): void {
  const { enable, disable, removeHeaders, header, headerFile } = options;
  if (enable && disable) throw usageError("Pass --enable or --disable, not both.");
  if (removeHeaders && (header || headerFile)) throw usageError("Pass --header or --remove-headers, not both.");
  if (Object.keys(options).length > 0) return;
  const names = "--url, --name, --events, --filter, --format, --header, --delivery, --enable, --disable or --mode";
  throw usageError("Nothing to change.", `Pass ${names}.`);
}

async function changesOf(options: UpdateOptions): Promise<Parameters<Client["updateWebhook"]>[1]> {
  const delivery = await deliveryFieldsOf(options);
  return {
    ...(options.url === undefined ? delivery : await fitToUrl(options.url, delivery, { replacesHeaders: true })),
    ...fieldsOf(options),
    ...(options.removeHeaders && { headers: null }),
    ...(options.name === "" && { name: null }),
    ...((options.enable || options.disable) && { enabled: options.enable === true }),
  };
}

const webhookTable = (list: WebhookInList[]): string =>
  tableOf(list, [
    ["id", ({ id }) => idCell(id)],
    ["state", stateCell],
    ["webhook", ({ name, url }) => name ?? withoutScheme(url), list.some(({ name }) => name !== undefined)],
    ["detail", (webhook) => stateDetail(webhook), list.some((webhook) => stateDetail(webhook) !== "")],
    ["url", ({ url }) => ({ text: url, short: withoutMiddle(url) })],
    ["certified", (webhook) => certificationCell(webhook), list.some((webhook) => webhook.last_certification)],
    ["format", ({ format = "standard" }) => format, list.some(({ format }) => format !== undefined)],
    ["events", ({ events }) => events.join(" ")],
    ["delivery", ({ delivery = "every" }) => delivery, list.some(({ delivery }) => delivery !== undefined)],
    ["headers", ({ header_names = [] }) => header_names.join(" "), list.some(({ header_names }) => header_names)],
    ["created", ({ created_at }) => relativeTime(created_at)],
  ]);

/** Returns the command that creates another secret. */
export const rotationOf = ({ projectId, webhookId }: WebhookRef): string =>
  `svc webhooks rotate ${webhookId} --project ${projectId}`;

const printWebhook = (webhook: Webhook, json: boolean | undefined): void =>
  print(json ? jsonText(webhook) : webhookPage(webhook));
