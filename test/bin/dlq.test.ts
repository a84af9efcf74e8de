import { randomUUID } from "node:crypto";
import { GetQueueAttributesCommand, PurgeQueueCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { listDeadLetters, redriveDeadLetters } from "../../bin/command/dead-letters.ts";
import { interceptSqs, restoreAws } from "../support/aws-calls.ts";
import { commandHere } from "../support/command-here.ts";
import { eventually } from "../support/eventually.ts";
import { freshDataDir, type LocalRun, runCommand, startLocalRun } from "../support/local-run.ts";
import { useReceiver } from "../support/receiver.ts";
import { send } from "../support/service.ts";

/* The dead-letter queues of a running service, as an operator lists and redrives them. */

const settings = { DATA_DIR: freshDataDir() };
let run: LocalRun;
const receiver = useReceiver();
let sqs: SQSClient;
beforeAll(async () => {
  run = await startLocalRun(settings);
  sqs = new SQSClient({ endpoint: new URL(run.eventsQueueUrl).origin });
  const { status } = await send(`${run.baseUrl}/v1/projects/${run.projectId}/webhooks`, {
    method: "POST",
    headers: { authorization: `Bearer ${run.token}`, "content-type": "application/json" },
    body: JSON.stringify({ url: receiver.url, events: ["deploy.failed"] }),
  });
  expect(status).toBe(201);
});
afterAll(() => sqs.destroy());

const EMPTY = "the dead-letter queue is empty";
const dlq = (...args: string[]) => commandHere("dlq", args, settings);
const urlOf = (queue: string) => run.eventsQueueUrl.replace("deployment-events", queue);
const put = (queue: string, body: string, reason?: string) =>
  sqs.send(
    new SendMessageCommand({
      QueueUrl: urlOf(queue),
      MessageBody: body,
      ...(reason !== undefined && { MessageAttributes: { reason: { DataType: "String", StringValue: reason } } }),
    }),
  );

/** Messages that a queue holds, including those in flight. */
async function depth(queue: string): Promise<number> {
  const AttributeNames = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"] as const;
  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: urlOf(queue), AttributeNames: [...AttributeNames] }),
  );
  return AttributeNames.reduce((sum, name) => sum + Number(Attributes[name]), 0);
}

/** Repeats `dlq list` until its output matches, and returns the output. */
const listThat = (queue: string, expected: RegExp) =>
  eventually(async () => {
    const { code, stdout, stderr } = await dlq("list", "--queue", queue);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(expected);
    return stdout;
  });

/** Redrives until at least `count` messages were moved, and returns their number. A listed message is hidden for a while. */
async function redrive(queue: string, count: number): Promise<number> {
  let moved = 0;
  await eventually(async () => {
    const { code, stdout } = await dlq("redrive", "--queue", queue);
    expect(code).toBe(0);
    moved += Number(new RegExp(`^${queue}: (\\d+) redriven$`, "m").exec(stdout)?.[1]);
    expect(moved).toBeGreaterThanOrEqual(count);
  });
  return moved;
}

const newEvent = () => {
  const event = { event: "deploy.failed", project_id: run.projectId, deployment_id: randomUUID() };
  return { ...event, timestamp: new Date().toISOString(), data: {} };
};
const arrived = (events: { deployment_id: string }[]) => {
  const ids = receiver.received.map(({ body }) => JSON.parse(body).deployment_id);
  return events.map(({ deployment_id }) => ids.filter((id) => id === deployment_id).length);
};

test("list shows the first 500 characters of a message, its control characters as text", async () => {
  await put("deployment-events-dlq", "x".repeat(501));
  // The printing of a page escapes what acts on the terminal, but keeps line breaks: these could add a line to the list.
  await put("deployment-events-dlq", '{"\u007f\u009b2J": "\u202eevil"}', "no project\n  2026-11-21 forged");
  const stdout = await listThat("deployment-events", /evil/);
  expect(stdout).toContain("no project\\u000a  2026-11-21 forged\n");
  expect(stdout).toContain('{"\\u007f\\u009b2J": "\\u202eevil"}');
  expect(stdout).not.toMatch(/[\u007f-\u009f\u202e]/);
  const { stdout: records } = await dlq("list", "--queue", "deployment-events", "--json");
  for (const record of records.split("\n").filter(Boolean)) {
    expect(JSON.parse(record)).toEqual({
      queue: "deployment-events",
      sent_at: expect.stringMatching(/Z$/),
      reason: expect.any(String),
      body: expect.stringMatching(/^x{501}$|evil/),
    });
  }
  expect(await listThat("deployment-events", /x{500}/)).toContain(`    ${"x".repeat(500)}\n`);
  await sqs.send(new PurgeQueueCommand({ QueueUrl: urlOf("deployment-events-dlq") }));
});

test("with --stage looks for the queues of that stage on AWS by their names", async () => {
  const AWS_ENDPOINT_URL_SQS = new URL(run.eventsQueueUrl).origin;
  const credentials = { AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };
  const { code, stderr } = await runCommand("dlq", ["list", "--stage", "prod"], {
    AWS_ENDPOINT_URL_SQS,
    ...credentials,
  });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^The queue deployment-webhooks-prod-[\w-]+ cannot be reached: .*Check the stage, AWS_PROFILE/,
  );
});

test("list and redrive of empty queues report that they are empty", async () => {
  expect(await dlq("list")).toEqual({
    code: 0,
    stdout: `deployment-events: ${EMPTY}\n\ndeliveries: ${EMPTY}\n\ndeliveries-slow: ${EMPTY}\n`,
    stderr: "",
  });
  expect((await dlq("redrive")).stdout).toBe(
    "deployment-events: 0 redriven\ndeliveries: 0 redriven\ndeliveries-slow: 0 redriven\n",
  );
});

test("list shows a rejected event with the reason, and a redriven one is rejected again exactly once", async () => {
  const junk = '{"event":"deploy.unknown"}';
  await put("deployment-events", junk);
  const one = /^deployment-events: 1 in the dead-letter queue\n {2}\d{4}-\S+Z {2}event must be one of .*\n {4}.*\n$/;
  const page = await listThat("deployment-events", one);
  expect(page).toContain(junk);
  // Listing does not consume a message.
  expect(await listThat("deployment-events", one)).toBe(page);

  expect(await redrive("deployment-events", 1)).toBe(1);
  const again = await listThat("deployment-events", one);
  expect(again).toContain(junk);
  expect(again).not.toBe(page);
  expect((await dlq("list", "--queue", "deliveries")).stdout).toBe(`deliveries: ${EMPTY}\n`);
});

test("redrive while another operator lists loses nothing and sends nothing twice", async () => {
  const events = Array.from({ length: 25 }, newEvent);
  await put("deliveries-dlq", "of another queue");
  await Promise.all(events.map((event) => put("deployment-events-dlq", JSON.stringify(event))));
  const both = [runCommand("dlq", ["list"], settings), dlq("redrive", "--queue", "deployment-events")];
  expect((await Promise.all(both)).map(({ code }) => code)).toEqual([0, 0]);
  // A listed message becomes visible again and is moved by a later call.
  await eventually(async () => {
    await dlq("redrive", "--queue", "deployment-events");
    expect(arrived(events)).toEqual(events.map(() => 1));
  });
  // The rejected event of the test before.
  await eventually(async () => expect(await depth("deployment-events-dlq")).toBe(1));
  expect((await dlq("list", "--queue", "deliveries")).stdout).toContain("of another queue");
});

test("a redriven message is deleted after it was sent, and keeps its group; a listed one, and one that was rejected again, becomes visible", async () => {
  const old = {
    MessageId: "m1",
    Body: "{}",
    ReceiptHandle: "r1",
    Attributes: { SentTimestamp: "1", MessageGroupId: "p" },
  };
  const again = { MessageId: "m2", Body: "{}", ReceiptHandle: "r2", Attributes: { SentTimestamp: "9999999999999" } };
  const received = [[old, again], [again], [old], []];
  const calls: unknown[] = [];
  interceptSqs(async ({ command, input }) => {
    calls.push([command, input.QueueUrl, input.MessageGroupId ?? input.VisibilityTimeout]);
    return command === "ReceiveMessageCommand" ? { Messages: received.shift() } : {};
  });
  const queue = { url: "dlq", source: { name: "q", url: "q" } };
  const count = await redriveDeadLetters(queue);
  const listed = await listDeadLetters(queue);
  restoreAws();
  const reason = "failed too many times; see the log of the function";
  expect([count, listed]).toEqual([1, [{ sentAt: "1970-01-01T00:00:00.001Z", reason, body: "{}" }]]);
  expect(calls).toEqual([
    ["ReceiveMessageCommand", "dlq", 30],
    ["SendMessageCommand", "q", "p"],
    ["DeleteMessageCommand", "dlq", undefined],
    ["ReceiveMessageCommand", "dlq", 30],
    ["ChangeMessageVisibilityCommand", "dlq", 1],
    ["ReceiveMessageCommand", "dlq", 30],
    ["ReceiveMessageCommand", "dlq", 30],
    ["ChangeMessageVisibilityCommand", "dlq", 1],
  ]);
});

test.each([
  ["MessageNotInflight", 1],
  ["AccessDenied", undefined],
])("a list whose message cannot be made visible, because of %s, shows %p", async (name, count) => {
  const received = [[{ MessageId: "m1", Body: "{}", ReceiptHandle: "r1" }], []];
  interceptSqs(async ({ command }) => {
    if (command === "ReceiveMessageCommand") return { Messages: received.shift() };
    throw Object.assign(new Error(name), { name });
  });
  const listed = await listDeadLetters({ url: "dlq", source: { name: "q", url: "q" } }).catch(() => undefined);
  restoreAws();
  expect(listed?.length).toBe(count);
});

test("list shows at most 1,000 messages", async () => {
  const page = (_: unknown, number: number) =>
    Array.from({ length: 10 }, (_, index) => ({ MessageId: `${number}-${index}`, Body: "{}" }));
  const received = Array.from({ length: 101 }, page);
  interceptSqs(async ({ command }) => (command === "ReceiveMessageCommand" ? { Messages: received.shift() } : {}));
  const listed = await listDeadLetters({ url: "dlq", source: { name: "q", url: "q" } });
  restoreAws();
  expect(listed).toHaveLength(1_000);
});

test.each([
  [[], "Pass list or redrive."],
  [["empty"], "No command named empty. Pass list or redrive."],
  [["redrive", "deliveries"], "No command named redrive deliveries. Pass list or redrive."],
  [["list", "--queue", "events"], "No queue named events."],
  [["redrive", "--queue"], "queue"],
])("%j exits with 2, names the mistake and shows the usage", async (args, message) => {
  const { code, stdout, stderr } = await commandHere("dlq", args, settings);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(message);
  expect(stderr).toContain("Usage: npm run --silent dlq -- list|redrive");
  expect(stderr).not.toContain("    at ");
});
