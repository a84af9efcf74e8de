import { type Command, InvalidArgumentError, Option } from "commander";
import type { Client, EventName, Webhook, WebhookInList, WebhookPlace } from "../../client/src/client.ts";
import { signedIn } from "./api.ts";
import { usageError } from "./exit-codes.ts";
import { findProject, findWebhook, requireWholeId } from "./find.ts";
import type { Globals } from "./globals.ts";
import { awaitOutcome } from "./outcome.ts";
import { type Cell, facts, relativeTime, table } from "./table.ts";
import { confirm, jsonText, note, print } from "./terminal.ts";

const eventNames: EventName[] = ["deploy.started", "deploy.succeeded", "deploy.failed"];
const project = ["--project <id or name>", "default: the only one that you are in"] as const;

/** `--events a b` and `--events a,b` are the same. */
const eventsOption = () =>
  new Option("--events <names...>", "which events")
    .choices(eventNames)
    .argParser((text, previous: EventName[] | undefined) => [...(previous ?? []), ...text.split(",").map(eventName)]);

function eventName(text: string): EventName {
  const name = eventNames.find((known) => known === text);
  if (name === undefined) throw new InvalidArgumentError(`Events are ${eventNames.join(", ")}.`);
  return name;
}

const webhookId = ["[id]", "the webhook's id, or its start; default: the only one of the project"] as const;

interface InProject extends Globals {
  project?: string;
}

/** Where a webhook is, and the way to the service. */
export async function atWebhook(
  options: InProject,
  id: string | undefined,
): Promise<{ api: Client; place: WebhookPlace }> {
  const api = await signedIn(options);
  const projectId = await findProject(api, options.project);
  return { api, place: { projectId, webhookId: await findWebhook(api, projectId, id) } };
}

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command("webhooks")
    .summary("webhooks of a project: create, list, show, update, delete, rotate, test")
    .description("Webhooks: the URLs that are told of a project's deployments.");

  webhooks
    .command("create")
    .summary("start telling a URL about deployments")
    .description("Makes a webhook and prints its signing secret, this once.")
    .argument("<url>", "https://…; a service on this machine takes http://127.0.0.1 too")
    .addOption(eventsOption().makeOptionMandatory())
    .option(...project)
    .addHelpText(
      "after",
      `\nExamples:\n  $ svc webhooks create https://example.com/hook --events deploy.succeeded deploy.failed\n  $ svc webhooks create http://127.0.0.1:4000/ --events deploy.failed > secret.txt   # the secret alone is on stdout`,
    )
    .action(async (url: string, _options, command: Command) => {
      const { json, ...options }: InProject & { events: EventName[] } = command.optsWithGlobals();
      const api = await signedIn(options);
      const projectId = await findProject(api, options.project);
      const made = await api.createWebhook(projectId, { url, events: options.events });
      note(
        `Made the webhook ${made.id}. Its secret is shown this once, keep it safe. Try it: svc webhooks test ${made.id}`,
      );
      print(json ? jsonText(made) : made.secret);
    });

  webhooks
    .command("list")
    .summary("list the webhooks of a project")
    .description("Lists the webhooks of a project, oldest first.")
    .option(...project)
    .action(async (_options, command: Command) => {
      const { json, ...options }: InProject = command.optsWithGlobals();
      const api = await signedIn(options);
      const list = await api.listWebhooks(await findProject(api, options.project));
      if (json) return print(jsonText(list));
      if (list.length === 0) return note("The project has no webhook. Make one: svc webhooks create <url> --events …");
      const rows = list.map((webhook) => [
        webhook.id,
        webhook.url,
        webhook.events.join(" "),
        stateCell(webhook),
        relativeTime(webhook.created_at),
      ]);
      print(table(["id", "url", "events", "state", "created"], rows));
    });

  webhooks
    .command("show")
    .summary("show a webhook and its state")
    .description("Shows a webhook, whether it is enabled and, if not, why. Its secret is not shown again.")
    .argument(...webhookId)
    .option(...project)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject = command.optsWithGlobals();
      const { api, place } = await atWebhook(options, id);
      printWebhook(await api.getWebhook(place), options);
    });

  webhooks
    .command("update")
    .summary("change the URL or the events of a webhook, enable or disable it")
    .description("Changes a webhook. Enabling sends nothing by itself: svc deliveries recover does.")
    .argument(...webhookId)
    .option("--url <url>", "the new URL")
    .addOption(eventsOption())
    .option("--enable", "send again")
    .option("--disable", "send nothing; events are kept, as held")
    .option(...project)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject & { url?: string; events?: EventName[]; enable?: boolean; disable?: boolean } =
        command.optsWithGlobals();
      if (options.enable && options.disable) throw usageError("Say --enable or --disable, not both.");
      const changes: Parameters<Client["updateWebhook"]>[1] = {
        ...(options.url !== undefined && { url: options.url }),
        ...(options.events && { events: options.events }),
        ...((options.enable || options.disable) && { enabled: options.enable === true }),
      };
      if (Object.keys(changes).length === 0)
        throw usageError("Say what to change: --url, --events, --enable, --disable.");
      const { api, place } = await atWebhook(options, id);
      printWebhook(await api.updateWebhook(place, changes), options);
    });

  webhooks
    .command("delete")
    .summary("delete a webhook, with its pending deliveries and its log")
    .description("Deletes a webhook: its pending deliveries are cancelled, its deliveries are no longer to be seen.")
    .argument("<id>", "the whole id of the webhook")
    .option("-y, --yes", "do not ask")
    .option(...project)
    .action(async (id: string, _options, command: Command) => {
      const options: InProject & { yes?: boolean } = command.optsWithGlobals();
      const { api, place } = await atWebhook(options, requireWholeId(id));
      await confirm(`Deleting the webhook ${place.webhookId}`, options.yes);
      await api.deleteWebhook(place);
      note(`Deleted the webhook ${place.webhookId}.`);
    });

  webhooks
    .command("rotate")
    .summary("make a new signing secret; the old one stays valid for a while")
    .description(
      "Makes a new signing secret and prints it, this once. During the overlap deliveries are signed with both.",
    )
    .argument(...webhookId)
    .option("--overlap <seconds>", "how long the old secret stays valid, 0 (not at all) to 604800 (a week)", "86400")
    .option("-y, --yes", "do not ask (an overlap of 0 does)")
    .option(...project)
    .action(async (id: string | undefined, _options, command: Command) => {
      const { json, ...options }: InProject & { overlap: string; yes?: boolean } = command.optsWithGlobals();
      if (!/^\d{1,6}$/.test(options.overlap)) throw usageError("--overlap takes whole seconds.");
      const { api, place } = await atWebhook(options, id);
      const overlap = Number(options.overlap);
      if (overlap === 0) await confirm(`Ending all old secrets of the webhook ${place.webhookId}`, options.yes);
      const rotated = await api.rotateWebhookSecret(place, { overlap_seconds: overlap });
      note(`The webhook ${place.webhookId} has a new secret. It is shown this once. ${overlapNote(overlap)}`);
      print(json ? jsonText(rotated) : rotated.secret);
    });

  webhooks
    .command("test")
    .summary("send a sample event and wait for the outcome")
    .description(
      "Sends a sample event to a webhook, even while it is disabled: one attempt. Exit code 1 when it fails.",
    )
    .argument(...webhookId)
    .addOption(new Option("--event <name>", "which event").choices(eventNames).default("deploy.succeeded"))
    .option("--no-wait", "do not wait for the outcome")
    .option(...project)
    .action(async (id: string | undefined, _options, command: Command) => {
      const options: InProject & { event: EventName; wait: boolean } = command.optsWithGlobals();
      const { api, place } = await atWebhook(options, id);
      const delivery = await api.sendTestDelivery(place, { event: options.event });
      if (options.wait) return awaitOutcome(api, place, delivery, options.json);
      print(options.json ? jsonText(delivery) : delivery.id);
    });
}

const overlapNote = (seconds: number): string =>
  seconds === 0 ? "All old ones have ended." : `The old one stays valid for ${seconds} s.`;

const stateCell = ({ enabled, disabled_reason }: WebhookInList): Cell =>
  enabled ? { text: "enabled", style: "green" } : { text: `disabled: ${disabled_reason}`, style: "red" };

function printWebhook(webhook: Webhook, { json }: Globals): void {
  const { id, project_id, url, events, created_at, disabled_at } = webhook;
  const page = () =>
    facts([
      ["id", id],
      ["project", project_id],
      ["url", url],
      ["events", events.join(" ")],
      ["state", stateCell(webhook)],
      ["disabled", disabled_at === null ? undefined : `${disabled_at} (${relativeTime(disabled_at)})`],
      ["created", `${created_at} (${relativeTime(created_at)})`],
    ]);
  print(json ? jsonText(webhook) : page());
}
