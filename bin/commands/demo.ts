import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sampleFields } from "../../functions/foundation/events/sample-event.ts";
import { settings as functionSettings } from "../../functions/foundation/platform/env.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { printableText } from "../../packages/cli/src/terminal/terminal.ts";
import { type Client, createClient } from "../../packages/client/src/client.ts";
import { type VerifyWebhookOptions, verifyWebhook } from "../../packages/client/src/verify-webhook.ts";
import { command } from "../command/command.ts";
import { connect } from "../command/connect.ts";
import { mintToken } from "../command/mint-token.ts";
import { findRunning } from "../command/running-service.ts";
import { sendEvent } from "../command/send-event.ts";
import {
  allowsLocalReceivers,
  type LocalSettings,
  readSettings,
  setFunctionDefaults,
  settingRows,
} from "../command/settings.ts";
import { startCommand } from "../command/shell-commands.ts";
import { StartError } from "../command/start-error.ts";
import { rejectionOf, style } from "../demo/demo-page.ts";
import { startReceiver } from "../demo/demo-receiver.ts";
import { demoUser, seedDemoUser } from "../demo/demo-user.ts";
import type { RunningService } from "../emulator/service.ts";

const help = {
  name: "npm run --silent demo",
  about: `Shows every step: an API key, a webhook, a deployment event and a verified delivery.
Uses the running service, or starts one for the demo. Deletes everything that it creates.`,
  settings: settingRows("DATA_DIR", "JWT_SECRET"),
  examples: ["npm run --silent demo", "DATA_DIR=.local/second npm run --silent demo"],
};

export async function main(): Promise<void> {
  await command(help, async () => {
    logSink.write = () => {};
    const service = await serviceForDemo();
    try {
      await runDemo(service);
      return `\nDone. The webhook is deleted and the key revoked.${service.nextStep}\n`;
    } finally {
      await service.stop();
    }
  });
}

interface DemoService {
  baseUrl: string;
  eventsQueueUrl: string;
  token: string;
  /** What to try next; empty = nothing. */
  nextStep: string;
  stop(): Promise<void>;
}

/** @throws StartError when the receiver of the demo could not be called */
async function serviceForDemo(): Promise<DemoService> {
  const settings = readSettings();
  setFunctionDefaults(settings);
  const running = await findRunning(settings.dataDir);
  // The running service may have another WEBHOOK_ALLOW_CIDRS than this process.
  const isAllowed = running?.allowsLocalReceivers ?? allowsLocalReceivers(functionSettings.webhookAllowCidrs());
  if (!isAllowed) {
    throw new StartError(
      "This run allows no receivers on this machine (WEBHOOK_ALLOW_CIDRS). " +
        "Start the service with the default to run the demo.",
    );
  }
  const token = mintToken(settings.jwtSecret, demoUser.userId);
  if (running) {
    const { eventsQueueUrl } = await connect();
    return { baseUrl: running.baseUrl, eventsQueueUrl, token, nextStep: "", stop: async () => {} };
  }
  const service = await startOwnService(settings);
  return { ...service, token, nextStep: ` To try it yourself: ${startCommand(settings)}` };
}

/** Starts a service with the demo user. Its data is deleted when the process ends. @throws StartError */
async function startOwnService(settings: LocalSettings): Promise<RunningService> {
  const { startService } = await import("../emulator/service.ts");
  const dataDir = mkdtempSync(join(tmpdir(), "demo-"));
  process.once("exit", () => rmSync(dataDir, { recursive: true, force: true }));
  const service = await startService({ ...settings, dataDir, port: 0, sqsPort: 0 });
  await seedDemoUser();
  return service;
}

async function runDemo(service: DemoService): Promise<void> {
  const receiver = await startReceiver();
  const user = createClient(service);
  const cleanUps: (() => Promise<void>)[] = [];
  try {
    await showSteps(service, user, receiver, cleanUps);
  } finally {
    // After a failure too.
    receiver.close();
    for (const cleanUp of cleanUps.reverse()) await cleanUp().catch(() => {});
  }
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** @param cleanUps receives a deletion for each resource that a step creates */
async function showSteps(
  { baseUrl, eventsQueueUrl }: DemoService,
  user: Client,
  receiver: Receiver,
  cleanUps: (() => Promise<void>)[],
): Promise<void> {
  const { projectId } = demoUser;
  console.log(`\n${style("bold", "API keys and deployment webhooks, start to finish")}`);

  step("A user creates an API key", "POST /v1/api-keys");
  const { id: keyId, key } = await user.createApiKey({ name: "demo" });
  cleanUps.push(() => user.deleteApiKey(keyId));
  show(`${key.slice(0, 20)}…  shown only once; the service stores its SHA-256`);

  step("A CI job lists its projects with the key", "GET /v1/projects");
  const job = createClient({ baseUrl, token: key });
  for (const { name, role } of await job.listProjects()) show(`${name} (${role})`);

  step("The CI job creates a webhook", `POST /v1/projects/${projectId}/webhooks`);
  const { id, url, events, secret } = await job.createWebhook(projectId, {
    url: receiver.url,
    events: ["deploy.succeeded"],
  });
  cleanUps.push(() => user.deleteWebhook({ projectId, webhookId: id }));
  show(`${url} receives ${events.join(", ")}`);

  step("The pipeline reports a deployment", "SQS deployment-events");
  const event = sampleFields("deploy.succeeded", { projectId, id: randomUUID(), now: new Date() });
  await sendEvent(eventsQueueUrl, event);
  const sentAt = performance.now();
  show(`deployment ${event.deployment_id}`);

  step("The receiver gets the delivery and verifies its signatures", `POST ${receiver.url}`);
  const delivery = await receiver.next();
  show(`after ${Math.round(performance.now() - sentAt)} ms: ${delivery.body}`);
  const signed = { ...delivery, secret };
  show(`X-Service-Signature ${await signatureVerdict({ ...signed, scheme: "body" })}`);
  show(`webhook-signature   ${await signatureVerdict(signed)}  (Standard Webhooks)`);

  step("The user revokes the key", `DELETE /v1/api-keys/${keyId}`);
  await user.deleteApiKey(keyId);
  const { code } = await rejectionOf(job.listProjects());
  show(`the next request with it is rejected: ${code}`);
}

/** Verifies a delivery as every receiver should. @throws WebhookVerificationError */
const signatureVerdict = (signed: VerifyWebhookOptions): Promise<string> =>
  verifyWebhook(signed).then(() => style("green", "✔ verified"));

let steps = 0;

function step(title: string, request: string): void {
  steps += 1;
  console.log(`\n${style("bold", `${steps}  ${title}`)}  ${style("dim", request)}`);
}

const show = (text: string): void => console.log(`   ${printableText(text)}`);
