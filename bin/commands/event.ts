import { randomUUID } from "node:crypto";
import { deploymentEventRows } from "../../functions/foundation/events/catalogue.ts";
import { parseDeploymentEvent } from "../../functions/foundation/events/parse-deployment-event.ts";
import { sampleFields } from "../../functions/foundation/events/sample-event.ts";
import { eventNames } from "../../functions/foundation/manifest/events.ts";
import { parseJson } from "../../functions/foundation/platform/parse-json.ts";
import { canonicalUuid } from "../../functions/foundation/platform/uuid.ts";
import { command, UsageError } from "../command/command.ts";
import { connect } from "../command/connect.ts";
import { sendEvent } from "../command/send-event.ts";
import { settingRows } from "../command/settings.ts";

const help = {
  name: "npm run --silent event",
  about: `Sends a sample deployment event to the running service, through its queue, as the deployment pipeline does.
Events: ${eventNames.join(", ")}, and those of the setting EVENTS.`,
  options: {
    project: { value: "<uuid>", about: "project whose webhooks are called", isRequired: true },
    event: { value: "<name>", about: "name of the event", isRequired: true },
    deployment: { value: "<uuid>", about: "id of the deployment", shownDefault: "a new id" },
    data: { value: "<json>", about: "fields of the event's data, beside those of the sample" },
    url: { value: "<url>", about: "address of the deployment in the event's data", shownDefault: "a sample" },
  },
  settings: settingRows("DATA_DIR", "EVENTS", "AWS_ENDPOINT_URL_SQS"),
  examples: [
    "npm run --silent event -- --project 01930000-0000-7000-8000-00000000d301 --event deploy.succeeded",
    `npm run --silent event -- --project 01930000-0000-7000-8000-00000000d301 --event deploy.failed --data '{"environment":"staging"}'`,
  ],
} as const;

export async function main(): Promise<void> {
  await command(help, async (options) => {
    // First: the events are those of the running service.
    const { eventsQueueUrl } = await connect();
    const names = [...deploymentEventRows().keys()];
    if (!names.includes(options.event)) throw new UsageError(`--event must be one of ${names.join(", ")}.`);
    requireUuid("--project", options.project);
    requireUuid("--deployment", options.deployment);
    if (options.url !== undefined && !isHttpUrl(options.url)) throw new UsageError("--url must be an http(s) URL.");
    const data = parseJson(options.data ?? "{}");
    if (typeof data !== "object" || data === null || Array.isArray(data)) {
      throw new UsageError(`--data must be a JSON object such as '{"environment":"production"}'.`);
    }
    const sample = { projectId: options.project, id: options.deployment ?? randomUUID(), now: new Date() };
    const event = sampleFields(options.event, sample, {
      ...data,
      ...(options.url !== undefined && { url: options.url }),
    });
    const parsed = parseDeploymentEvent(JSON.stringify(event));
    if (!parsed.ok) throw new UsageError(`The service would not accept this event: ${parsed.reason}.`);
    await sendEvent(eventsQueueUrl, event);
    return `queued ${event.event} of deployment ${event.deployment_id}`;
  });
}

function requireUuid(option: string, value: string | undefined): void {
  if (value !== undefined && canonicalUuid(value) === undefined) throw new UsageError(`${option} must be a UUID.`);
}

const isHttpUrl = (text: string): boolean => /^https?:\/\//i.test(text) && URL.canParse(text);
