import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type http from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { build } from "../../bin/build.ts";
import { type EventSources, startEventSources } from "../../bin/local/event-sources.ts";
import { createGateway } from "../../bin/local/gateway.ts";
import type { LoadHandler } from "../../bin/local/lambda.ts";
import { mintToken } from "../../bin/local/mint-token.ts";
import { endpoints } from "../../functions/endpoints.ts";
import { sqs } from "../../functions/platform/aws.ts";
import { workers } from "../../functions/workers.ts";
import { bundleFolder } from "../../lib/names.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { freshResources } from "../support/resources.ts";
import { jwtSecret, send } from "../support/service.ts";

/* What `cdk deploy` ships is the bundles, so here they run: the same gateway, engines and queues, other code. */

let outdir: string;
let server: http.Server;
let eventSources: EventSources;
let receiver: Receiver;
let baseUrl: string;

const fromBundles: LoadHandler = async (file) =>
  createRequire(import.meta.url)(join(outdir, bundleFolder(file), "index.js")).handler;

beforeAll(async () => {
  // The bundles log as they do on Lambda.
  console.info = () => {};
  outdir = mkdtempSync(join(tmpdir(), "bundles-"));
  await Promise.all([build({ outdir }), freshResources()]);
  process.env.JWT_SECRET = jwtSecret;
  process.env.WEBHOOK_ALLOW_CIDRS = "127.0.0.0/8";
  server = await createGateway(fromBundles);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  eventSources = await startEventSources(sqs(), fromBundles, 1);
  receiver = await startReceiver();
}, 60_000);

afterAll(async () => {
  await eventSources.stop();
  server.closeAllConnections();
  server.close();
  await receiver.close();
  rmSync(outdir, { recursive: true, force: true });
});

test.each([...endpoints, ...workers])(
  "the bundle of $file loads without any setting and exports a handler",
  async ({ file }) => {
    expect(typeof (await fromBundles(file))).toBe("function");
  },
);

test("the bundles serve the whole story: key, webhook, event, delivery, revocation", async () => {
  const userId = randomUUID();
  const projectId = randomUUID();
  const putMember = await fromBundles("projects/put-member");
  await putMember({ user_id: userId, project_id: projectId, name: "Bundled" }, {} as never);
  const call = (credential: string, method: string, path: string, body?: object) =>
    send(`${baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
  const token = mintToken(jwtSecret, userId);

  const key = (await call(token, "POST", "/v1/api-keys", { name: "ci" })).body.data;
  expect((await call(key.key, "GET", "/v1/projects")).body.data).toHaveLength(1);
  const path = `/v1/projects/${projectId}/webhooks`;
  const webhook = await call(key.key, "POST", path, { url: receiver.url, events: ["deploy.failed"] });
  expect(webhook.status).toBe(201);
  expect((await call(key.key, "POST", path, { url: "https://10.0.0.1/", events: [] })).status).toBe(400);

  const event = { event: "deploy.failed", project_id: projectId, deployment_id: randomUUID(), data: { step: "build" } };
  const MessageBody = JSON.stringify({ ...event, timestamp: new Date().toISOString() });
  await sqs().send(new SendMessageCommand({ QueueUrl: process.env.EVENTS_QUEUE_URL, MessageBody }));
  const [received] = await receiver.waitFor(1);
  expect(JSON.parse(received?.body ?? "")).toMatchObject(event);

  expect((await call(key.key, "DELETE", `${path}/${webhook.body.data.id}`)).status).toBe(204);
  expect((await call(token, "DELETE", `/v1/api-keys/${key.id}`)).status).toBe(204);
  expect((await call(key.key, "GET", "/v1/projects")).body.error.code).toBe("invalid_api_key");
});
