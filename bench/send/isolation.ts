import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { interleave, median, ratios, spread, type Table } from "../harness.ts";
import { deliveriesOf, type Service, startService, subscribe } from "../local-service.ts";
import { type Arrival, clock, type Receivers, startReceivers } from "../receivers.ts";

/*
 * What slow receivers cost the others: healthy deliveries per second while a tenth of the traffic goes to receivers that take
 * two seconds, against the same traffic with all of them healthy. Each round is a fresh service process: what the slow ones
 * have left in the queues of one round is not there in the next.
 */

/** How two of the webhooks' receivers answer; see ../receivers/serve.ts. */
type Manner = "ok" | "slow";

const WEBHOOKS = 20;
const SLOW = 2;
const HEALTHY = WEBHOOKS - SLOW;
const WARM_UP_EVENTS = 10;
const PATIENCE_MS = 30_000;
/**
 * Of the healthy deliveries, so many make the throughput. One that finds no place at its receiver goes back to the queue for
 * five seconds: a few of them would be all that is measured. When the last one came stands beside it.
 */
const COUNTED_SHARE = 0.9;

interface Measured {
  perSecond: number;
  lastAfterSeconds: number;
}

/** @returns `ratio`: with slow receivers against without, of healthy deliveries per second */
export async function isolation(rounds: number, events: number): Promise<{ table: Table; ratio: number }> {
  const lasts: Record<Manner, number[]> = { ok: [], slow: [] };
  const run = (manner: Manner) => async () => {
    const { perSecond, lastAfterSeconds } = await measure(events, manner);
    lasts[manner].push(lastAfterSeconds);
    return perSecond;
  };
  const { ok, slow } = await interleave({ ok: run("ok"), slow: run("slow") }, rounds);
  const shares = ratios(slow, ok);
  const table: Table = {
    title: `healthy deliveries through the whole service, of ${events} events at once to ${WEBHOOKS} webhooks`,
    columns: ["", "all healthy", "a tenth at 2 s", "ratio"],
    rows: [
      ["per second, up to nine tenths", spread(ok), spread(slow), spread(shares)],
      ["the last one, s", spread(lasts.ok), spread(lasts.slow), spread(ratios(lasts.slow, lasts.ok))],
    ],
  };
  return { table, ratio: median(shares) };
}

/** The same webhooks are counted in both cases: those that are healthy in both. */
async function measure(events: number, manner: Manner): Promise<Measured> {
  const receivers = await startReceivers(1);
  const service = await startService();
  try {
    const [origin] = receivers.origins;
    const counted: string[] = [];
    const others: string[] = [];
    for (let number = 0; number < WEBHOOKS; number++) {
      const isCounted = number >= SLOW;
      const { id } = await subscribe(service, `${origin}/${isCounted ? "ok" : manner}/${number}`);
      (isCounted ? counted : others).push(id);
    }
    await publish(service, WARM_UP_EVENTS);
    const warmUp = await arrivalsOf(receivers, WARM_UP_EVENTS * HEALTHY);
    const startedAt = clock();
    await publish(service, events);
    const arrivals = await arrivalsOf(receivers, events * HEALTHY);
    await balance(service, counted, others, WARM_UP_EVENTS + events, [...warmUp, ...arrivals]);
    const seconds = arrivals.map(({ at }) => (at - startedAt) / 1000).sort((one, other) => one - other);
    const count = Math.ceil(COUNTED_SHARE * seconds.length);
    return { perSecond: count / (seconds[count - 1] ?? 0), lastAfterSeconds: seconds.at(-1) ?? 0 };
  } finally {
    await Promise.all([service.end(), receivers.end()]);
  }
}

const isHealthy = ({ path }: Arrival): boolean => Number(path.split("/").at(-1)) >= SLOW;

async function arrivalsOf(receivers: Receivers, count: number): Promise<Arrival[]> {
  const arrivals: Arrival[] = [];
  const endsAt = Date.now() + PATIENCE_MS;
  while (arrivals.length < count) {
    if (Date.now() > endsAt) throw new Error(`${arrivals.length} of ${count} deliveries have come.`);
    arrivals.push(...(await receivers.take()).arrivals.filter(isHealthy));
    await sleep(20);
  }
  return arrivals;
}

/**
 * Every delivery is accounted for: those of the healthy have succeeded and come once, those of the others have succeeded or
 * are pending.
 * @throws Error when it is not so
 */
async function balance(
  service: Service,
  counted: string[],
  others: string[],
  events: number,
  arrivals: Arrival[],
): Promise<void> {
  const expected = { succeeded: counted.length * events };
  let healthy = await statusesOf(service, counted);
  // The receiver knows of a delivery before its row does.
  for (const endsAt = Date.now() + PATIENCE_MS; healthy.pending && Date.now() < endsAt; await sleep(100)) {
    healthy = await statusesOf(service, counted);
  }
  const rest = await statusesOf(service, others);
  const came = new Set(arrivals.map(({ id }) => id)).size;
  const isBalanced =
    healthy.total === expected.succeeded &&
    healthy.succeeded === expected.succeeded &&
    came === expected.succeeded &&
    rest.total === others.length * events &&
    rest.succeeded + rest.pending === rest.total;
  if (isBalanced) return;
  const said = `healthy ${JSON.stringify(healthy)}, others ${JSON.stringify(rest)}, arrived ${came} of ${expected.succeeded}`;
  throw new Error(`The ledger does not balance: ${events} events, ${said}.`);
}

async function statusesOf(service: Service, webhookIds: string[]) {
  const counts = { total: 0, succeeded: 0, pending: 0 };
  for (const id of webhookIds) {
    for await (const { status } of deliveriesOf(service, id)) {
      counts.total += 1;
      if (status === "succeeded" || status === "pending") counts[status] += 1;
    }
  }
  return counts;
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
  sqs.destroy();
}
