import { randomUUID } from "node:crypto";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { eventNames, readDeploymentEvent } from "../functions/deployments/deployment-event.ts";
import { sampleEvent } from "../functions/deployments/sample-event.ts";
import { sqs } from "../functions/platform/aws.ts";
import { command, readOptions, UsageError } from "./local/command.ts";
import { connect } from "./local/connect.ts";

const usage = "npm run --silent event -- --project <uuid> --event <name> [--deployment <uuid>] [--url <https…>]";

await command(usage, async () => {
  const options = readOptions(["project", "event"], ["deployment", "url"]);
  const name = eventNames.find((known) => known === options.event);
  if (!name) throw new UsageError(`--event must be one of ${eventNames.join(", ")}`);
  const event = sampleEvent(name, {
    projectId: options.project,
    deploymentId: options.deployment ?? randomUUID(),
    now: new Date(),
    url: options.url,
  });
  const message = JSON.stringify(event);
  const read = readDeploymentEvent(message);
  if (!read.ok) throw new UsageError(`This is no deployment event: ${read.reason}.`);
  const { eventsQueueUrl } = await connect();
  await sqs().send(new SendMessageCommand({ QueueUrl: eventsQueueUrl, MessageBody: message }));
  return `queued ${event.event} of deployment ${event.deployment_id}`;
});
