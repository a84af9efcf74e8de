import { randomUUID } from "node:crypto";
import { sampleEvent } from "../../functions/foundation/events/sample-event.ts";
import { settings as functionSettings } from "../../functions/foundation/platform/env.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";
import { type Client, createClient } from "../../packages/client/src/client.ts";
import { type VerifyWebhookOptions, verifyWebhook } from "../../packages/client/src/verify-webhook.ts";
import { command, UsageError } from "../command/command.ts";
import { connect } from "../command/connect.ts";
import { mintToken } from "../command/mint-token.ts";
import { findRunning } from "../command/running-service.ts";
import { sendEvent } from "../command/send-event.ts";
import { allowsLocalReceivers, readSettings, setFunctionDefaults, settingRows } from "../command/settings.ts";
import { startCommand } from "../command/shell-commands.ts";
import { StartError } from "../command/start-error.ts";
import { runCiDemo } from "../demo/demo-ci.ts";
import { heading, rejectionOf, show, step, verdict } from "../demo/demo-page.ts";
import { startReceiver } from "../demo/demo-receiver.ts";
import { startDemoService } from "../demo/demo-service.ts";
import { demoUser } from "../demo/demo-user.ts";

const help = {
  name: "npm run --silent demo",
  about: `Shows every step: an API key, a webhook, a deployment event and a verified delivery.
Uses the running service, or starts one for the demo. Deletes everything that it creates.
With "ci": a CI job without a stored key, whose OIDC token is the credential, on a service of its own.`,
  words: "[ci]",
  settings: settingRows("DATA_DIR", "JWT_SECRET"),
  examples: ["npm run --silent demo", "npm run --silent demo -- ci", "DATA_DIR=.local/second npm run --silent demo"],
};

export async function main(): Promise<void> {
  await command(help, async (_options, [word, ...more]) => {
    const unexpected = word === "ci" ? more[0] : word;
    if (unexpected !== undefined) throw new UsageError(`Unexpected argument '${unexpected}'.`);
    logSink.write = () => {};
    if (word === "ci") {
      await runCiDemo(readSettings());
      return "\nDone. Its data is deleted. For tokens of your own workflow on this machine: npm run --silent issuer\n";
    }
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
  const service = await startDemoService(settings);
  return { ...service, token, nextStep: ` To try it yourself: ${startCommand(settings)}` };
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
  heading("API keys and deployment webhooks, start to finish");

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
  const event = sampleEvent("deploy.succeeded", { projectId, deploymentId: randomUUID(), now: new Date() });
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
  verifyWebhook(signed).then(() => verdict(true, "verified", ""));
