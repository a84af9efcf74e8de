import { randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { type Service, startService } from "./local-service.ts";

/*
 * What a receiver that hangs costs the others: healthy deliveries per second while a tenth of the traffic goes to receivers
 * that never answer, against the same traffic with all of them healthy. Both are measured in one run, in turns, each on a
 * fresh service process; what counts is their ratio.
 *
 *     node bench/isolation.ts
 */

const ROUNDS = 3;
const WEBHOOKS = 20;
const HANGING = 2;
const WARM_UP_EVENTS = 20;
const EVENTS = 150;
const AIM = 0.9;

interface Measured {
  perSecond: number;
  /** Requests that were left hanging. */
  hung: number;
}

/** All webhooks of a project lead to one of these paths each. The first ones hang, if told so. */
async function measure(hanging: number): Promise<Measured> {
  const service = await startService();
  const arrived = new Set<string>();
  let hung = 0;
  const receivers = http.createServer((request, response) => {
    const number = Number(request.url?.slice(1));
    if (number < hanging) {
      hung += 1;
      return;
    }
    // The same webhooks are counted in both cases.
    if (number >= HANGING) arrived.add(String(request.headers["webhook-id"]));
    request.resume().once("end", () => response.end("ok"));
    receivers.emit("arrival");
  });
  receivers.listen(0, "127.0.0.1");
  await once(receivers, "listening");
  const until = async (count: number) => {
    while (arrived.size < count) await once(receivers, "arrival", { signal: AbortSignal.timeout(30_000) });
  };
  try {
    const origin = `http://127.0.0.1:${(receivers.address() as AddressInfo).port}`;
    for (let number = 0; number < WEBHOOKS; number++) await subscribe(service, `${origin}/${number}`);
    const counted = WEBHOOKS - HANGING;
    await publish(service, WARM_UP_EVENTS);
    await until(WARM_UP_EVENTS * counted);
    const startedAt = performance.now();
    await publish(service, EVENTS);
    await until((WARM_UP_EVENTS + EVENTS) * counted);
    return { perSecond: (EVENTS * counted * 1000) / (performance.now() - startedAt), hung };
  } finally {
    await service.end();
    receivers.close();
    receivers.closeAllConnections();
  }
}

async function subscribe({ baseUrl, token, projectId }: Service, url: string): Promise<void> {
  const response = await fetch(`${baseUrl}/v1/projects/${projectId}/webhooks`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ url, events: ["deploy.started"] }),
  });
  if (response.status !== 201) throw new Error(`The webhook was not created: ${await response.text()}`);
}

async function publish({ eventsQueueUrl, projectId }: Service, count: number): Promise<void> {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const sqs = new SQSClient({ endpoint: new URL(eventsQueueUrl).origin, region: "us-east-1", credentials });
  const events = Array.from({ length: count }, () => ({
    event: "deploy.started",
    project_id: projectId,
    deployment_id: randomUUID(),
    timestamp: new Date().toISOString(),
  }));
  while (events.length > 0) {
    const Entries = events.splice(0, 10).map((event, Id) => ({ Id: String(Id), MessageBody: JSON.stringify(event) }));
    await sqs.send(new SendMessageBatchCommand({ QueueUrl: eventsQueueUrl, Entries }));
  }
}

const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const rounds: { "all healthy /s": number; "a tenth hangs /s": number; "left hanging": number; ratio: number }[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const healthy = await measure(0);
  const hanging = await measure(HANGING);
  rounds.push({
    "all healthy /s": Math.round(healthy.perSecond),
    "a tenth hangs /s": Math.round(hanging.perSecond),
    "left hanging": hanging.hung,
    ratio: Number((hanging.perSecond / healthy.perSecond).toFixed(2)),
  });
  // Nothing hung: this was no measurement.
  if (hanging.hung === 0) throw new Error("No request reached the receivers that hang.");
}
console.table(rounds);
console.log(
  `isolation ratio ${median(rounds.map(({ ratio }) => ratio)).toFixed(2)} (median of ${ROUNDS}; aim: ${AIM} or more)`,
);
