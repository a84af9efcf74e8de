import { randomUUID } from "node:crypto";
import { SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import type { SQSEvent } from "aws-lambda";
import { readSettings } from "../../../bin/command/settings.ts";
import { type Engine, startSqs } from "../../../bin/emulator/engines.ts";
import type { LambdaHandler } from "../../../bin/emulator/lambda.ts";
import { createTables } from "../../../bin/emulator/resources.ts";
import { startService } from "../../../bin/emulator/service.ts";
import { dynamo, sqs } from "../../../functions/foundation/platform/aws.ts";
import { queueUrl } from "../../../functions/foundation/platform/env.ts";
import { DUE_SHARDS, lease, wake } from "../../../functions/webhooks/webhook/wake-up-store.ts";
import { closeAfterFile } from "../../support/cleanup.ts";
import { eventually } from "../../support/eventually.ts";
import { environment, freshDataDir } from "../../support/local-run.ts";

/* A service in this process, with stubs for handlers: what it does with its settings, and with the leases of the last one. */

const now = new Date();
const until = new Date(now.getTime() + 60_000);
/** The end of the id decides the shard: each has one, and the first more than a page. */
const endings = [...Array(DUE_SHARDS).keys(), ...Array.from({ length: 100 }, (_, index) => DUE_SHARDS * (index + 1))];
const webhooks = endings.map((ending) => ({
  project_id: randomUUID(),
  id: randomUUID().slice(0, -8) + ending.toString(16).padStart(8, "0"),
}));
const batchSizes: number[] = [];
let givenSns: Engine;

beforeAll(async () => {
  Object.assign(process.env, await createTables(dynamo()));
  const leased = webhooks.map((webhook) => wake(webhook, now).then(() => lease(webhook, "killed", now, until)));
  expect(await Promise.all(leased)).not.toContain(undefined);
  const { AWS_ENDPOINT_URL_DYNAMODB = "" } = process.env;
  givenSns = await startSqs(0, undefined, () => {});
  closeAfterFile(() => givenSns.stop());
  const engines = { AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL_SNS: givenSns.endpoint };
  const settings = { DATA_DIR: freshDataDir(), DELIVERY_BATCH_SIZE: "2", ...engines };
  const send: LambdaHandler = async (event) => void batchSizes.push((event as SQSEvent).Records.length);
  const load = async (file: string) => (file === "attempts-send" ? send : async () => {});
  const service = await startService(readSettings(environment(settings)), { load });
  closeAfterFile(() => service.stop());
});

test("releases the leases of the workers of a service that was killed, in each shard and beyond a page", async () => {
  const leases = await Promise.all(webhooks.map((webhook) => lease(webhook, "next", now, until)));
  expect(leases).not.toContain(undefined);
});

test("gives the sender as many deliveries at once as DELIVERY_BATCH_SIZE allows", async () => {
  const Entries = Array.from({ length: 10 }, (_, index) => ({ Id: String(index), MessageBody: "{}" }));
  await eventually(async () => {
    await sqs().send(new SendMessageBatchCommand({ QueueUrl: queueUrl("deliveries"), Entries }));
    expect(Math.max(...batchSizes)).toBe(2);
  });
});

test("publishes notifications to the engine of AWS_ENDPOINT_URL_SNS, if it is set", () => {
  expect(process.env.AWS_ENDPOINT_URL_SNS).toBe(givenSns.endpoint);
});
