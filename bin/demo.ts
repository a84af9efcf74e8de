import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { styleText } from "node:util";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { sampleEvent } from "../functions/deployments/sample-event.ts";
import { sqs } from "../functions/platform/aws.ts";
import { logSink } from "../functions/platform/log.ts";
import { command } from "./local/command.ts";
import { connect } from "./local/connect.ts";
import { isFromService, isStandardWebhook, startReceiver } from "./local/demo-receiver.ts";
import { demoUser, seedDemoUser } from "./local/demo-user.ts";
import { StartError } from "./local/engines.ts";
import { mintToken } from "./local/mint-token.ts";
import { findRunning, startService } from "./local/service.ts";
import { readSettings } from "./local/settings.ts";

/*
 * `npm run demo`: a key, a webhook, an event and a delivery that is verified, over the public interfaces only. Uses the
 * running service, or starts one of its own for the duration.
 */

let steps = 0;

await command("npm run --silent demo", async () => {
  logSink.write = () => {};
  const { baseUrl, eventsQueueUrl, token, stop } = await runningService();
  try {
    await tell(baseUrl, eventsQueueUrl, token);
    return `\nThat is all of it. Nothing is left behind: the webhook is deleted and the key revoked.\n`;
  } finally {
    await stop();
  }
});

async function runningService() {
  const settings = readSettings();
  const running = await findRunning(settings.dataDir);
  const token = mintToken(settings.jwtSecret, demoUser.userId);
  if (running) {
    const { eventsQueueUrl } = await connect();
    return { baseUrl: running.baseUrl, eventsQueueUrl, token, stop: async () => {} };
  }
  const dataDir = mkdtempSync(join(tmpdir(), "demo-"));
  const service = await startService({ ...settings, dataDir, port: 0, sqsPort: 0 });
  await seedDemoUser();
  const stop = async () => {
    await service.stop();
    rmSync(dataDir, { recursive: true, force: true });
  };
  return { ...service, token, stop };
}

async function tell(baseUrl: string, eventsQueueUrl: string, token: string): Promise<void> {
  const receiver = await startReceiver();
  const made: string[] = [];
  try {
    await tellWith(receiver, made, { baseUrl, eventsQueueUrl, token });
  } finally {
    // However it went, nothing is left behind.
    receiver.close();
    for (const path of made.reverse()) await call(baseUrl, token, "DELETE", path).catch(() => {});
  }
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>;
type Scene = Record<"baseUrl" | "eventsQueueUrl" | "token", string>;

/** @param made gets the path of everything that the story makes */
async function tellWith(receiver: Receiver, made: string[], { baseUrl, eventsQueueUrl, token }: Scene): Promise<void> {
  const webhooksPath = `/v1/projects/${demoUser.projectId}/webhooks`;
  title("API keys and deployment webhooks, start to finish");

  step("Somebody signed in makes an API key", "POST /v1/api-keys");
  const key = await call(baseUrl, token, "POST", "/v1/api-keys", { name: "demo" });
  made.push(`/v1/api-keys/${key.data.id}`);
  show(`${key.data.key.slice(0, 20)}…  shown this once, only its SHA-256 is stored`);

  step("A CI job uses it", "GET /v1/projects");
  const projects = await call(baseUrl, key.data.key, "GET", "/v1/projects");
  for (const { name, role } of projects.data) show(`${name} (${role})`);

  step("It subscribes a receiver", `POST ${webhooksPath}`);
  const wanted = { url: receiver.url, events: ["deploy.succeeded"] };
  const webhook = await call(baseUrl, key.data.key, "POST", webhooksPath, wanted);
  made.push(`${webhooksPath}/${webhook.data.id}`);
  show(`${webhook.data.url} will be told of ${webhook.data.events.join(", ")}`);

  step("A deployment goes live", "SQS deployment-events");
  const live = { projectId: demoUser.projectId, deploymentId: randomUUID(), now: new Date() };
  const event = sampleEvent("deploy.succeeded", live);
  await sqs().send(new SendMessageCommand({ QueueUrl: eventsQueueUrl, MessageBody: JSON.stringify(event) }));
  const sentAt = performance.now();

  step("The receiver is called, and checks who is calling", `POST ${receiver.url}`);
  const delivery = await receiver.next();
  show(`after ${Math.round(performance.now() - sentAt)} ms: ${delivery.body}`);
  show(`X-Service-Signature ${verdict(isFromService(delivery, webhook.data.secret))}`);
  show(`webhook-signature   ${verdict(isStandardWebhook(delivery, webhook.data.secret))}  (Standard Webhooks)`);

  step("The key is revoked, at once", `DELETE /v1/api-keys/${key.data.id}`);
  await call(baseUrl, token, "DELETE", `/v1/api-keys/${key.data.id}`);
  const refused = await call(baseUrl, key.data.key, "GET", "/v1/projects");
  show(`the next request with it: ${refused.error.code}`);
}

// biome-ignore lint/suspicious/noExplicitAny: what comes back is shown, not computed with
async function call(baseUrl: string, token: string, method: string, path: string, body?: object): Promise<any> {
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, ...(body && { "Content-Type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = response.status === 204 ? undefined : JSON.parse(await response.text());
  if (response.status >= 400 && response.status !== 401) {
    throw new StartError(`${method} ${path} was refused: ${answer.error.message}`);
  }
  return answer;
}

function verdict(isValid: boolean): string {
  if (!isValid) process.exitCode = 1;
  return isValid ? paint("green", "✔ verified") : paint("red", "✘ does not match");
}

function step(what: string, how: string): void {
  steps += 1;
  console.log(`\n${paint("bold", `${steps}  ${what}`)}  ${paint("dim", how)}`);
}

function title(text: string): void {
  console.log(`\n${paint("bold", text)}`);
}

function show(text: string): void {
  console.log(`   ${text}`);
}

function paint(style: "bold" | "dim" | "green" | "red", text: string): string {
  return styleText(style, text, { stream: process.stdout });
}
