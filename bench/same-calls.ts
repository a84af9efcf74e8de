import { mkdirSync } from "node:fs";
import http from "node:http";
import { json, text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { SQSClient } from "@aws-sdk/client-sqs";
import { marshall } from "@aws-sdk/util-dynamodb";
import { Webhook } from "svix";
import { startDynamo, startSqs } from "../bin/emulator/engines.ts";
import { createQueues, createTables } from "../bin/emulator/resources.ts";
import { queues } from "../functions/foundation/manifest/queues.ts";
import { tables } from "../functions/foundation/manifest/tables.ts";

/*
 * The calls of an event with one delivery, to the same engines in files, and nothing else: no library of AWS, no rules, no retries, no
 * limit on what is done at once. What the service takes longer is its own work. Both wait for the engines, which are a part of every
 * local run. Under load a batch here is often full, so that there are fewer calls for each event than in the service.
 */

const [url = "", secret = "", dataDir = "", projectId = ""] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });

/** Sends a POST request. @returns the response as JSON; undefined when it has another type @throws Error for a status from 400 */
function post(to: string, headers: http.OutgoingHttpHeaders, body: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const request = http.request(to, { method: "POST", agent, headers }, (response) => {
      const { statusCode = 0 } = response;
      if (statusCode >= 400)
        return void text(response).then((body) => reject(new Error(`${statusCode}: ${body}`)), reject);
      if (response.headers["content-type"]?.includes("json")) return resolve(json(response));
      response.resume().on("end", () => resolve(undefined));
    });
    request.on("error", reject).end(body);
  });
}

/** Calls an engine, which accepts any signature. */
const call = (endpoint: string, target: string, input: object): Promise<unknown> => {
  const headers = {
    "content-type": "application/x-amz-json-1.0",
    "x-amz-target": target,
    "x-amz-date": "20260101T000000Z",
    authorization:
      "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/any/aws4_request, SignedHeaders=host, Signature=0",
  };
  return post(`${endpoint}/`, headers, JSON.stringify(input));
};

mkdirSync(`${dataDir}/sqs`);
const stop = () => process.exit(1);
const [dynamo, sqs] = await Promise.all([startDynamo(dataDir, stop), startSqs(0, dataDir, stop)]);
const client = { region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" } };
await createTables(new DynamoDBClient({ ...client, endpoint: dynamo.endpoint }));
const urlOf = (name: string) => `${sqs.endpoint}/000000000000/${name}`;
await createQueues(new SQSClient({ ...client, endpoint: sqs.endpoint }), { urlOf });

const ofTables = (operation: string, input: object) => call(dynamo.endpoint, `DynamoDB_20120810.${operation}`, input);
const ofQueue = (queue: "events" | "deliveries", operation: string, input: object) =>
  call(sqs.endpoint, `AmazonSQS.${operation}`, { QueueUrl: urlOf(queues[queue].name), ...input });
const put = (table: keyof typeof tables, item: object) =>
  ofTables("PutItem", { TableName: tables[table].name, Item: marshall(item) });

interface Message {
  Body: string;
  ReceiptHandle: string;
}

/** Receives messages and handles them, and deletes them ten at a time or after 100 ms. */
async function poll(queue: "events" | "deliveries", handle: (messages: Message[]) => Promise<unknown>): Promise<never> {
  const done: string[] = [];
  const remove = () => {
    const handles = done.splice(0, 10);
    const Entries = handles.map((ReceiptHandle, Id) => ({ Id: String(Id), ReceiptHandle }));
    if (Entries.length > 0) void ofQueue(queue, "DeleteMessageBatch", { Entries });
  };
  for (;;) {
    const request = { MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageSystemAttributeNames: ["All"] };
    const { Messages = [] } = (await ofQueue(queue, "ReceiveMessage", request)) as { Messages?: Message[] };
    void handle(Messages).then(() => {
      done.push(...Messages.map(({ ReceiptHandle }) => ReceiptHandle));
      if (done.length >= 10) remove();
      else void sleep(100).then(remove);
    });
  }
}

interface Event {
  event: string;
  project_id: string;
  deployment_id: string;
}

void poll("events", async (messages) => {
  const events = messages.map(({ Body }) => JSON.parse(Body) as Event);
  const [first] = events;
  if (!first) return;
  const condition = "project_id = :project";
  await Promise.all([
    ofTables("Query", {
      ...{ TableName: tables.webhooks.name, ConsistentRead: true, KeyConditionExpression: condition },
      ExpressionAttributeValues: { ":project": { S: first.project_id } },
    }),
    ...events.map((event) => put("events", { project_id: event.project_id, id: event.deployment_id, body: event })),
  ]);
  const Entries = messages.map(({ Body }, Id) => ({ Id: String(Id), MessageBody: Body }));
  await ofQueue("deliveries", "SendMessageBatch", { Entries });
});

const signer = new Webhook(secret);

async function deliver({ Body }: Message): Promise<void> {
  const { project_id, deployment_id: id } = JSON.parse(Body) as Event;
  const at = new Date();
  const headers = {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": signer.sign(id, at, Body),
  };
  await post(url, headers, Body);
  await put("deliveries", { webhook_id: project_id, id, body: Body, at: at.toISOString() });
}

void poll("deliveries", async (messages) => {
  const events = messages.map(({ Body }) => JSON.parse(Body) as Event);
  const [first] = events;
  if (!first) return;
  const { project_id } = first;
  const of = (table: keyof typeof tables, ...keys: object[]) => ({
    [tables[table].name]: { ConsistentRead: true, Keys: keys.map((key) => marshall(key)) },
  });
  await ofTables("BatchGetItem", {
    RequestItems: {
      ...of("deliveries", ...events.map(({ deployment_id: id }) => ({ webhook_id: project_id, id }))),
      ...of("webhooks", { project_id, id: project_id }),
      ...of("webhookSecrets", { webhook_id: project_id }),
    },
  });
  await Promise.all(messages.map(deliver));
});

/** The one webhook, with rows of about the size of those of the service. Its project has its id. */
await put("webhooks", {
  project_id: projectId,
  id: projectId,
  url,
  events: ["deploy.started"],
  created_at: new Date().toISOString(),
});
await put("webhookSecrets", { webhook_id: projectId, secret });

process.send?.(urlOf(queues.events.name));
process.on("disconnect", () => process.exit());
