import { randomUUID } from "node:crypto";
import { Argument, type Command } from "commander";
import type { Client, WebhookEventName, WebhookRef } from "../../../client/src/client.ts";
import { listsEvent } from "../../../client/src/event-filter.ts";
import { webhookEventNames } from "../../../client/src/values.ts";
import { CommandError, exitCodes, usageError } from "../terminal/exit-codes.ts";
import { jsonText, note, print, printable } from "../terminal/terminal.ts";
import { eventName } from "./delivery-options.ts";
import { findWebhook, isUuid, noWebhookError } from "./find.ts";
import { type InProject, openProject, projectOption } from "./in-project.ts";
import { awaitOutcome } from "./outcome.ts";
import {
  checkSecrets,
  parseObject,
  readObject,
  readSecrets,
  type SecretOptions,
  secretOptions,
  secretsHelp,
} from "./webhook-secrets.ts";

const help = `
Without --forward: the service sends test deliveries, with one attempt each, to the enabled webhooks of the project that receive
the event; --webhook can also be a disabled one. A test delivery is no deployment event: it is not in the feed, so svc deployments
and svc listen do not see it, unless svc listen is the receiver of the webhook.

With --forward: this command sends the sample itself, in the standard form, signed like a test delivery. Needs no service and no credential.

Either way, the header X-Service-Test and data.test of the body are true, for receivers to tell it from an event.

${secretsHelp} Without one, --forward signs with that of this machine and shows it.

Examples:
  $ svc trigger deploy.failed                                    # to the webhooks that receive deploy.failed
  $ svc trigger deploy.failed --webhook 0193                     # to one webhook
  $ svc trigger deploy.failed --data '{"environment":"staging"}'
  $ svc trigger deploy.succeeded --forward http://127.0.0.1:8080/hook --secret-file secret.txt

Exit code 1 if an attempt fails.`;

interface Options extends SecretOptions, InProject {
  webhook?: string;
  forward?: string;
  data?: string;
}

export function addTrigger(program: Command): void {
  secretOptions(
    program
      .command("trigger")
      .summary("send a sample event to webhooks, or to a receiver on this machine")
      .description("Sends a sample event to the webhooks of a project, or straight to a URL, and shows the outcome."),
  )
    .addArgument(
      new Argument("<event>", "the event to simulate").choices(webhookEventNames).argParser((text) => eventName(text)),
    )
    .option(projectOption[0], `${projectOption[1]}; with --forward: an id for the payload`)
    .option("--webhook <id>", "the webhook's id or name; default: all that receive the event")
    .option("--forward <url>", "send the sample to this URL, without the service: https, or http on this machine")
    .option("--data <json>", "fields of the event's data, or the path of a file with them")
    .addHelpText("after", help)
    .action(async (event: WebhookEventName, _options, command: Command) => {
      const options: Options = command.optsWithGlobals();
      const secrets = checkSecrets(readSecrets(options));
      if (options.forward !== undefined) return forwardSample(event, options.forward, secrets, options);
      if (options.secret !== undefined || options.secretFile !== undefined) {
        throw usageError("A secret has no use without --forward: the service signs with that of each webhook.");
      }
      await sendTestDeliveries(event, options);
    });
}

async function sendTestDeliveries(event: WebhookEventName, options: Options): Promise<void> {
  const data = dataOf(options);
  const { api, projectId } = await openProject(options);
  const webhooks = await webhooksFor(api, projectId, event, options.webhook);
  const requested = [];
  for (const { url, ...webhook } of webhooks) {
    requested.push({ url, webhook, delivery: await api.sendTestDelivery(webhook, { event, ...(data && { data }) }) });
  }
  for (const { url, webhook, delivery } of requested) {
    if (url !== undefined && !options.json) note(printable(url));
    await awaitOutcome(api, webhook, delivery, options.json);
  }
}

function dataOf({ data }: Options): Record<string, unknown> | undefined {
  if (data === undefined) return undefined;
  return data.trimStart().startsWith("{") ? parseObject(data, "--data") : readObject(data, "--data");
}

/** @throws CommandError when no webhook is to get the event */
async function webhooksFor(
  api: Client,
  projectId: string,
  event: WebhookEventName,
  idOrPrefix: string | undefined,
): Promise<(WebhookRef & { url?: string })[]> {
  if (idOrPrefix !== undefined) return [{ projectId, webhookId: await findWebhook(api, projectId, idOrPrefix) }];
  const all = await api.listWebhooks(projectId);
  if (all.length === 0) throw noWebhookError(projectId);
  const chosen = all.filter(({ enabled, events }) => enabled && listsEvent(events, event));
  if (chosen.length === 0) {
    const message = `No enabled webhook of the project receives ${event}.`;
    const isBuiltIn = webhookEventNames.some((name) => name === event);
    const check = isBuiltIn ? "" : "Check the name, which is none of the service's own. ";
    const advice = `${check}Add the event to one (svc webhooks update), or pass --webhook <id> of a disabled one that receives it.`;
    throw new CommandError(exitCodes.failed, message, advice);
  }
  note(
    `Sending ${event} to ${chosen.length} of the project's ${all.length} ${all.length === 1 ? "webhook" : "webhooks"}.`,
  );
  return chosen.map(({ id, url }) => ({ projectId, webhookId: id, url }));
}

async function forwardSample(
  event: WebhookEventName,
  target: string,
  secrets: string[],
  options: Options,
): Promise<void> {
  const [{ forwardDelivery, forwardLines, readForwardUrl }, { forwardSecret }, { sampleDelivery }] = await Promise.all([
    import("../listen/forward.ts"),
    import("../listen/forward-secret.ts"),
    import("../listen/sample-delivery.ts"),
  ]);
  const url = readForwardUrl(target);
  if (options.webhook !== undefined) throw usageError("Pass --forward or --webhook, not both.");
  const { project = randomUUID() } = options;
  if (!isUuid(project))
    throw usageError("With --forward, --project must be an id: names are known to the service only.");
  const signing = secrets.length > 0 ? secrets : [forwardSecret()];
  const delivery = sampleDelivery(event, project.toLowerCase(), new Date(), dataOf(options));
  const result = await forwardDelivery(delivery, { url, secrets: signing });
  print(
    options.json
      ? jsonText({ id: delivery.id, event, forwarded: result })
      : [`delivery             ${delivery.id}`, ...forwardLines(result)].join("\n"),
  );
  if (result.error_code !== null) process.exitCode = exitCodes.failed;
}
