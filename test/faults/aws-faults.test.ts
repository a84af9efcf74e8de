import { SendMessageCommand, SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { redriveDeadLetters } from "../../bin/local/dead-letters.ts";
import { type QueueKey, queues } from "../../functions/manifest/queues.ts";
import { sqs } from "../../functions/platform/aws.ts";
import { deadLetterUrl, queueUrl } from "../../functions/platform/env.ts";
import { inParallel } from "../../functions/platform/parallel.ts";
import { eventOf, rowsOf } from "../support/deliveries.ts";
import { eventually } from "../support/eventually.ts";
import { injectFaults, type RandomFaults, unharmed } from "../support/random-faults.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { send, startTestService, type TestService } from "../support/service.ts";

/* A fifth of all calls to DynamoDB and SQS goes wrong, while events flow and users call. */

const SHARE = 0.2;
const EVENTS = 50;

let service: TestService;
let receiver: Receiver;
let faults: RandomFaults | undefined;
beforeAll(async () => {
  process.env.RETRY_SCHEDULE = "0,0,0,0,0,0,0,0";
  // The sweep hands over what is late at once, and so what is merely on its way too.
  process.env.DELIVERY_GRACE_SECONDS = "0";
  service = await startTestService({ deliver: true });
  // What fails comes back in a second instead of three minutes.
  const VisibilityTimeout = "1";
  for (const queue of ["events", "deliveries"] as const) {
    await sqs().send(new SetQueueAttributesCommand({ QueueUrl: queueUrl(queue), Attributes: { VisibilityTimeout } }));
  }
});
afterAll(() => service.stop());
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(async () => {
  faults?.stop();
  await receiver.close();
});

const publish = (event: object) =>
  unharmed(() =>
    sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody: JSON.stringify(event) })),
  );

/** What an operator does about dead letters: `npm run dlq -- redrive`. */
const redrive = (queue: QueueKey) =>
  unharmed(() =>
    redriveDeadLetters({ source: { name: queues[queue].name, url: queueUrl(queue) }, url: deadLetterUrl(queue) }),
  );

const reaches: { reach: "requests" | "calls"; what: string }[] = [
  { reach: "requests", what: "which the SDK tries again" },
  { reach: "calls", what: "however often the SDK tried" },
];

describe.each(reaches)("while a fifth of the $reach to AWS fails, $what", ({ reach }) => {
  test("every event arrives, and what was recorded is what arrived", async () => {
    const user = service.user();
    const projectId = await service.project(user.userId);
    // One request in five is refused at first, so that retries are in the storm too.
    receiver.answerWith((_, response) => response.writeHead(receiver.received.length % 5 === 0 ? 503 : 200).end());
    const subscribe = () =>
      user.api.post(`/v1/projects/${projectId}/webhooks`, { url: receiver.url, events: ["deploy.started"] });
    const webhooks = (await Promise.all([subscribe(), subscribe()])).map(({ body }) => body.data);

    faults = injectFaults(20_260_101, SHARE, reach);
    await Promise.all(Array.from({ length: EVENTS }, (_, number) => publish(eventOf(projectId, { data: { number } }))));
    const rowsNow = async () => (await unharmed(() => Promise.all(webhooks.map(rowsOf)))).flat();
    const succeeded = async () => (await rowsNow()).filter(({ status }) => status === "succeeded").length;
    const total = EVENTS * webhooks.length;
    await eventually(async () => expect(await succeeded()).toBeGreaterThan(0.6 * total), 20_000);
    faults.stop();
    await Promise.all((["events", "deliveries"] as const).map(redrive));
    await eventually(async () => expect(await succeeded()).toBe(total), 15_000);
    const rows = await rowsNow();

    const arrived = new Set(receiver.received.map(({ headers }) => headers["webhook-id"]));
    expect([...arrived].sort()).toEqual(rows.map(({ id }) => id).sort());
    for (const { attempts = [], attempt_count } of rows) {
      expect(attempts.map(({ number }) => number)).toEqual(
        Array.from({ length: attempt_count }, (_, index) => index + 1),
      );
      expect(attempts.filter(({ error_code }) => error_code === undefined)).toHaveLength(1);
    }
    if (process.env.FAULT_REPORT) console.table({ ...faults.counts, requests: receiver.received.length });
  });

  test("the API does what it was asked or says 5xx in its own words, and doubts nobody's credentials", async () => {
    const user = service.user();
    const projectId = await service.project(user.userId);
    const keys = await Promise.all([1, 2, 3].map((number) => user.api.post("/v1/api-keys", { name: `key ${number}` })));
    const credentials = [user.token, keys[0]?.body.data.key];
    const url = receiver.url;
    const webhook = (await user.api.post(`/v1/projects/${projectId}/webhooks`, { url, events: ["deploy.failed"] })).body
      .data;
    const path = `/v1/projects/${projectId}/webhooks`;
    const calls: [method: string, path: string, body?: object][] = [
      ["GET", "/v1/projects"],
      ["GET", "/v1/api-keys"],
      ["GET", path],
      ["PATCH", `${path}/${webhook.id}`, { events: ["deploy.failed"] }],
      ["POST", `${path}/${webhook.id}/rotate-secret`, {}],
      ["POST", `${path}/${webhook.id}/test`, {}],
      ["GET", `${path}/${webhook.id}/deliveries`],
      ["POST", path, { url, events: ["deploy.failed"] }],
    ];

    faults = injectFaults(20_260_102, SHARE, reach);
    const storm = Array.from({ length: 15 }, () => calls).flat();
    const answers = await inParallel([...storm.entries()], 10, ([index, [method, callPath, body]]) => {
      const authorization = `Bearer ${credentials[index % 3 === 0 ? 1 : 0]}`;
      const headers = { authorization, ...(body && { "content-type": "application/json" }) };
      return send(`${service.baseUrl}${callPath}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    });
    faults.stop();
    for (const { status, body } of answers) {
      if (status < 300) expect(body).toHaveProperty("data");
      else expect([status, body]).toEqual([expect.any(Number), outage]);
    }
    const statuses = new Set(answers.map(({ status }) => status));
    expect([...statuses].filter((status) => ![200, 201, 202, 500, 503].includes(status))).toEqual([]);
  });
});

const outage = {
  error: {
    code: expect.stringMatching(/^(service_unavailable|internal_error)$/),
    message: expect.any(String),
    request_id: expect.any(String),
  },
};
