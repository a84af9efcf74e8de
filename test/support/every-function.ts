import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { fromSources, invoke } from "../../bin/local/lambda.ts";
import type { Delivery } from "../../functions/deliveries/delivery.ts";
import { sqs } from "../../functions/platform/aws.ts";
import { queueUrl } from "../../functions/platform/env.ts";
import { MAX_WEBHOOKS_PER_PROJECT } from "../../functions/webhooks/webhook.ts";
import { changeWebhook, eventOf, givenDelivery, publish, rowOf, rowsOf, takeMessages } from "./deliveries.ts";
import { eventually } from "./eventually.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { errorOf, newScenario, type Scenario } from "./scenario.ts";
import type { TestService } from "./service.ts";

/*
 * Everything that the functions do, at least once: each endpoint, worker and branch that reads, writes or sends. What they
 * answer is the business of other tests; here it only tells that a branch was reached.
 */

/**
 * @param service runs with `deliver`, a schedule of `0,0`, a grace of a second and no resolution of `last_used_at`
 * @throws what the first of them threw, when all have come to their end
 */
export async function useEveryFunction(service: TestService): Promise<void> {
  const drives = [useKeys, useProjects, useWebhooks, reachCaps, steerDeliveries, rejectEvents, ...pipeline];
  const results = await Promise.allSettled(drives.map((drive) => drive(service)));
  const failure = results.find((result) => result.status === "rejected");
  if (failure) throw failure.reason;
}

/** Invokes a function that has no route, as the rest of the platform does. */
async function call<Result>(file: string, payload: object): Promise<Result> {
  return (await invoke(await fromSources(file), payload, { functionName: file, timeoutSeconds: 10 })) as Result;
}

const expectStatus = async (answer: Promise<{ status: number }>, status: number) =>
  expect((await answer).status).toBe(status);

async function useKeys(service: TestService): Promise<void> {
  const { api, userId } = service.user();
  const { id, key } = (await api.post("/v1/api-keys", { name: "own" })).body.data;
  const provisioned = await call<{ key: string }>("api-keys/provision", { user_id: userId, name: "partner" });
  await expectStatus(service.as(key).post("/v1/api-keys", { name: "more" }), 403);
  for (const credential of [key, provisioned.key]) {
    expect((await service.as(credential).get("/v1/api-keys")).body.data).toHaveLength(2);
  }
  await expectStatus(api.delete(`/v1/api-keys/${id}`), 204);
  await expectStatus(api.delete(`/v1/api-keys/${id}`), 404);
  for (const credential of [key, "svc_malformed", "no.jwt.atall"]) {
    await expectStatus(service.as(credential).get("/v1/api-keys"), 401);
  }
}

async function useProjects(service: TestService): Promise<void> {
  const { api, userId } = service.user();
  expect((await api.get("/v1/projects")).body.data).toEqual([]);
  const member = { user_id: userId, project_id: randomUUID(), name: "Shop", role: "viewer" };
  for (const role of ["viewer", "admin"]) await call("projects/upsert-member", { ...member, role });
  expect((await api.get("/v1/projects")).body.data).toHaveLength(1);
}

async function useWebhooks(service: TestService): Promise<void> {
  const { api, viewer, path, projectId } = await newScenario(service);
  const nowhere = `/v1/projects/${projectId}/webhooks/${randomUUID()}`;
  await expectStatus(viewer.get(`/v1/projects/${projectId}/webhooks`), 200);
  await expectStatus(viewer.delete(path), 403);
  for (const [target, status] of [
    [path, 200],
    [nowhere, 404],
  ] as const) {
    await expectStatus(api.get(target), status);
    await expectStatus(api.patch(target, { url: "https://example.com/other", events: ["deploy.failed"] }), status);
    for (const enabled of [false, true]) await expectStatus(api.patch(target, { enabled }), status);
    for (const overlap_seconds of [60, 0]) {
      await expectStatus(api.post(`${target}/rotate-secret`, { overlap_seconds }), status);
    }
  }
  await expectStatus(api.delete(nowhere), 404);
  await expectStatus(api.delete(path), 204);
}

async function reachCaps(service: TestService): Promise<void> {
  const { api, userId } = service.user();
  const webhooks = `/v1/projects/${await service.project(userId)}/webhooks`;
  const create = () => api.post(webhooks, { url: "https://example.com/", events: ["deploy.failed"] });
  for (let count = 0; count < MAX_WEBHOOKS_PER_PROJECT; count++) await expectStatus(create(), 201);
  expect(errorOf(await create())).toEqual({ status: 409, code: "webhook_limit_reached" });
}

async function steerDeliveries(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, viewer, path, webhook }) => {
    const [old, oft, failed, held] = [
      await givenDelivery(webhook, { status: "succeeded" }),
      await givenDelivery(webhook, { status: "failed", attempt_count: 50 }),
      await givenDelivery(webhook, { status: "failed", attempt_count: 3 }),
      await givenDelivery(webhook, { status: "held" }),
    ];
    const ofDelivery = (id: string) => `${path}/deliveries/${id}`;
    await expectStatus(viewer.get(`${path}/deliveries?limit=1`), 200);
    await expectStatus(viewer.get(`${path}/deliveries?status=failed`), 200);
    await expectStatus(viewer.get(ofDelivery(old.id)), 200);
    await expectStatus(viewer.get(ofDelivery(randomUUID())), 404);
    await expectStatus(api.post(`${path}/test`, { event: "deploy.failed" }), 202);
    await expectStatus(api.post(`${ofDelivery(old.id)}/redeliver`), 202);
    await expectStatus(api.post(`${ofDelivery(oft.id)}/redeliver`), 409);
    await expectStatus(api.post(`${ofDelivery(randomUUID())}/redeliver`), 404);
    const since = new Date(Date.now() - 60_000).toISOString();
    await api.patch(path, { enabled: false });
    await expectStatus(api.post(`${path}/recover`, { since }), 409);
    await api.patch(path, { enabled: true });
    expect((await api.post(`${path}/recover`, { since })).body.data).toEqual({ count: 2 });
    for (const delivery of [old, failed, held]) await untilStatus(delivery, "succeeded");
  });
}

async function rejectEvents(): Promise<void> {
  await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody: "no event" }));
  await eventually(async () =>
    expect(await takeMessages("events", "dead letters")).toMatchObject([{ body: "no event" }]),
  );
}

/** What fan-out, send and sweep do, by how a receiver answers. */
const pipeline = [
  eventIsDeliveredOnce,
  failureIsRetriedAndGivenUp,
  goneDisables,
  failingForDaysDisables,
  outageIsProbed,
  retryAfterIsWaitedFor,
  deletedWebhookCancels,
  askedForMeanwhile,
  busyWebhookTakesTurns,
  lostMessageIsSweptUp,
];

async function eventIsDeliveredOnce(service: TestService): Promise<void> {
  await withReceiver(service, async ({ projectId, webhook }, receiver) => {
    const event = eventOf(projectId);
    await publish(event);
    await receiver.waitFor(1);
    await publish(event);
    await publish(eventOf(projectId, { event: "deploy.failed" }));
    await publish(eventOf(randomUUID()));
    await untilAll(webhook, ["succeeded"]);
  });
}

async function failureIsRetriedAndGivenUp(service: TestService): Promise<void> {
  await withReceiver(service, async ({ projectId, webhook }, receiver) => {
    receiver.answerWith(500);
    await publish(eventOf(projectId));
    await untilAll(webhook, ["failed"]);
    expect(receiver.received).toHaveLength(3);
    receiver.answerWith(200);
    await publish(eventOf(projectId));
    await untilAll(webhook, ["failed", "succeeded"]);
  });
}

async function goneDisables(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }, receiver) => {
    receiver.answerWith(410);
    await publish(eventOf(projectId));
    await untilAll(webhook, ["failed"]);
    await eventually(async () => expect((await api.get(path)).body.data.disabled_reason).toBe("gone"));
    await publish(eventOf(projectId));
    await untilAll(webhook, ["failed", "held"]);
    // One that was waiting when the webhook was disabled.
    await untilStatus(await overdue(webhook), "held");
  });
}

async function failingForDaysDisables(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, webhook }, receiver) => {
    receiver.answerWith(500);
    await changeWebhook(webhook, { failing_since: secondsFromNow(-6 * 24 * 3600) });
    await untilStatus(await overdue(webhook, { attempt_count: 1 }), "failed");
    await eventually(async () => expect((await api.get(path)).body.data.disabled_reason).toBe("failing"));
  });
}

async function outageIsProbed(service: TestService): Promise<void> {
  await withReceiver(service, async ({ projectId, webhook }, receiver) => {
    receiver.answerWith(500);
    await changeWebhook(webhook, { failing_since: secondsFromNow(-600) });
    await publish(eventOf(projectId));
    await receiver.waitFor(1);
    await publish(eventOf(projectId));
    await eventually(async () => {
      const waits = (await rowsOf(webhook)).map(({ next_attempt_at }) => next_attempt_at ?? "");
      expect(waits.some((at) => at > secondsFromNow(20))).toBe(true);
    });
    expect(receiver.received).toHaveLength(1);
  });
}

async function retryAfterIsWaitedFor(service: TestService): Promise<void> {
  await withReceiver(service, async ({ projectId, webhook }, receiver) => {
    receiver.answerWith((_, response) => response.writeHead(429, { "retry-after": "3600" }).end());
    await publish(eventOf(projectId));
    await eventually(async () =>
      expect(await rowsOf(webhook)).toMatchObject([{ status: "pending", attempt_count: 1 }]),
    );
  });
}

async function deletedWebhookCancels(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, webhook }) => {
    await expectStatus(api.delete(path), 204);
    await untilStatus(await overdue(webhook), "cancelled");
  });
}

async function askedForMeanwhile(service: TestService): Promise<void> {
  await withReceiver(service, async ({ api, path, projectId, webhook }, receiver) => {
    receiver.answerWith(async (_, response) => {
      receiver.answerWith(200);
      const [delivery] = await rowsOf(webhook);
      await api.post(`${path}/deliveries/${delivery?.id}/redeliver`);
      response.writeHead(500).end();
    });
    await publish(eventOf(projectId));
    await untilAll(webhook, ["succeeded"]);
    expect(receiver.received).toHaveLength(2);
  });
}

async function busyWebhookTakesTurns(service: TestService): Promise<void> {
  await withReceiver(service, async ({ projectId, webhook }, receiver) => {
    receiver.answerWith(async (_, response) => {
      await sleep(1_000);
      response.end();
    });
    await Promise.all(Array.from({ length: 6 }, () => publish(eventOf(projectId))));
    await untilAll(webhook, Array(6).fill("succeeded"));
  });
}

async function lostMessageIsSweptUp(service: TestService): Promise<void> {
  await withReceiver(service, async ({ webhook }) => untilStatus(await overdue(webhook), "succeeded"));
}

async function withReceiver(
  service: TestService,
  use: (scenario: Scenario, receiver: Receiver) => Promise<void>,
): Promise<void> {
  const receiver = await startReceiver();
  try {
    await use(await newScenario(service, { url: receiver.url }), receiver);
  } finally {
    await receiver.close();
  }
}

const secondsFromNow = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString();

/** A delivery that is due and has no message. */
const overdue = (webhook: Scenario["webhook"], changes: Partial<Delivery> = {}) =>
  givenDelivery(webhook, { at: new Date(Date.now() - 600_000), ...changes });

const PATIENCE_MS = 30_000;

const untilStatus = (delivery: Delivery, status: Delivery["status"]) =>
  eventually(async () => expect((await rowOf(delivery)).status).toBe(status), PATIENCE_MS);

/** Waits until a webhook's deliveries have come to this, in whatever order. */
const untilAll = (webhook: Scenario["webhook"], statuses: Delivery["status"][]) =>
  eventually(async () => {
    const reached = (await rowsOf(webhook)).map(({ status }) => status);
    expect(reached.toSorted()).toEqual(statuses);
  }, PATIENCE_MS);
