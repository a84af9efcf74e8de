import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { interleave, median, ratios, spread, type Table } from "../harness.ts";
import { deliveriesOf, type Service, startService, subscribe } from "../local-service.ts";
import { type Arrival, clock, type Receivers, startReceivers } from "../receivers.ts";

/*
 * Measures the effect of slow receivers on the others: healthy deliveries per second while a tenth of the traffic goes to
 * receivers that respond after two seconds, compared with the same traffic to healthy receivers. Each round starts a new service,
 * so that queues of one round do not affect the next.
 */

/** How the receivers of two webhooks respond; see ../receivers/serve.ts. */
type Manner = "ok" | "slow";

const WEBHOOKS = 20;
const SLOW = 2;
const HEALTHY = WEBHOOKS - SLOW;
/** Max wait without a further arrival. */
const MAX_QUIET_MS = 30_000;
/**
 * The share of healthy deliveries that counts for throughput. A delivery without a slot returns to the queue for five seconds, so
 * a few of them would dominate the result. The time of the last one is shown separately.
 */
const COUNTED_SHARE = 0.9;

interface Measured {
  perSecond: number;
  lastAfterSeconds: number;
}

/** @returns `ratio`: healthy deliveries per second with slow receivers, divided by those without */
export async function isolation(
  rounds: number,
  events: number,
  warmUpEvents: number,
): Promise<{ table: Table; ratio: number }> {
  const lasts: Record<Manner, number[]> = { ok: [], slow: [] };
  const run = (manner: Manner) => async () => {
    const { perSecond, lastAfterSeconds } = await measure(events, warmUpEvents, manner);
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

/** Counts the webhooks that are healthy in both cases. */
async function measure(events: number, warmUpEvents: number, manner: Manner): Promise<Measured> {
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
    await publish(service, warmUpEvents);
    const warmUp = await arrivalsOf(receivers, warmUpEvents * HEALTHY);
    const startedAt = clock();
    await publish(service, events);
    const arrivals = await arrivalsOf(receivers, events * HEALTHY);
    await balance(service, counted, others, warmUpEvents + events, [...warmUp, ...arrivals]);
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
  let lastArrivalAt = Date.now();
  while (arrivals.length < count) {
    if (Date.now() > lastArrivalAt + MAX_QUIET_MS) {
      throw new Error(`Only ${arrivals.length} of ${count} deliveries arrived.`);
    }
    const healthy = (await receivers.take()).arrivals.filter(isHealthy);
    if (healthy.length > 0) lastArrivalAt = Date.now();
    arrivals.push(...healthy);
    await sleep(20);
  }
  return arrivals;
}

/**
 * Checks every delivery: healthy ones have succeeded and arrived once, the others have succeeded or are pending.
 * @throws Error when this is not the case
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
  // The receiver gets a request before the row has its result.
  for (const endsAt = Date.now() + MAX_QUIET_MS; healthy.pending && Date.now() < endsAt; await sleep(100)) {
    healthy = await statusesOf(service, counted);
  }
  const rest = await statusesOf(service, others);
  const arrived = new Set(arrivals.map(({ id }) => id)).size;
  const isBalanced =
    healthy.total === expected.succeeded &&
    healthy.succeeded === expected.succeeded &&
    arrived === expected.succeeded &&
    rest.total === others.length * events &&
    rest.succeeded + rest.pending === rest.total;
  if (isBalanced) return;
  const figures = `healthy ${JSON.stringify(healthy)}, others ${JSON.stringify(rest)}, arrived ${arrived} of ${expected.succeeded}`;
  throw new Error(`The ledger does not balance: ${events} events, ${figures}.`);
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
