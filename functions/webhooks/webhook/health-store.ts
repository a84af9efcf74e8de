import type { LimitedQuery, MeteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { allOf, type Part, selecting, when } from "../../foundation/platform/expression.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { firstIdAt } from "../../foundation/platform/uuid.ts";
import { checkCircuit } from "./circuit-breaker.ts";
import { type Health, healthOf, type ReadAttempt } from "./health.ts";
import type { Webhook } from "./webhook.ts";

/*
 * Reads what the health of a webhook needs beyond its row. One small query of its newest deliveries; two more while its
 * circuit is open. Eventually consistent.
 */

/** Upper bound on the deliveries read for one webhook, beside the last failed probe. */
const MAX_ROWS_READ = 3;

type Reads = Pick<MeteredReads, "query">;

/** The rows of deliveries have payloads of up to 256 KB: after a few of them, the health is that of the webhook's own row. */
export const NOTHING_READ = { attempts: [], isComplete: false, hasWaiting: false };

/** The attributes of a delivery that are read. */
interface DeliveryAttempts {
  attempts?: Omit<ReadAttempt, "isTest">[];
  test?: boolean;
}

/** Returns the health of a webhook. */
export async function readHealth(webhook: Webhook, now: Date, reads: Reads): Promise<Health> {
  const [recent, probe] = await allEnded([recentDeliveries(reads, webhook), readProbe(reads, webhook, now)]);
  const attempts = [...recent, ...probe.probed].flatMap(({ attempts = [], test = false }) =>
    attempts.map((attempt) => ({ ...attempt, isTest: test })),
  );
  // A row without an attempt waits. Behind three of them, an earlier one may have succeeded.
  const isComplete = recent.length < MAX_ROWS_READ || recent.every((row) => row.attempts !== undefined);
  return healthOf(webhook, { attempts, isComplete, hasWaiting: probe.hasWaiting }, now);
}

/**
 * Reads the newest deliveries. Of a webhook that fails or is disabled, those whose event was before that: the newer
 * ones wait, and have no attempts.
 */
async function recentDeliveries(
  reads: Reads,
  { id, failing_since, disabled_at, suspended_at }: Webhook,
): Promise<DeliveryAttempts[]> {
  const [until] = [failing_since, disabled_at, suspended_at].filter((time) => time !== undefined).toSorted();
  const end = until && firstIdAt(Date.parse(until) + 1);
  return query(reads, allOf(when`webhook_id = ${id}`, end !== undefined && when`id < ${end}`), {
    ScanIndexForward: false,
    Limit: MAX_ROWS_READ,
  });
}

interface ProbeReads {
  hasWaiting: boolean;
  /** The delivery that was the last probe, if there was one. */
  probed: DeliveryAttempts[];
}

/** Reads whether deliveries wait (functions/deliveries/line/backlog-store.ts), and the last probe. */
async function readProbe(reads: Reads, webhook: Webhook, now: Date): Promise<ProbeReads> {
  if (checkCircuit(webhook, now).kind === "closed") return { hasWaiting: false, probed: [] };
  const { Items: [wakeUp] = [] } = await reads.query({
    TableName: tableName("backlog"),
    ...selecting(when`line = ${`wake-up#${webhook.id}`}`, { attributes: ["due"] }),
    Limit: 1,
  });
  if (!wakeUp || webhook.probed_id === undefined) return { hasWaiting: wakeUp !== undefined, probed: [] };
  const probed = await query(reads, when`webhook_id = ${webhook.id} AND id = ${webhook.probed_id}`, { Limit: 1 });
  return { hasWaiting: true, probed };
}

async function query(reads: Reads, key: Part, input: Omit<LimitedQuery, "TableName">): Promise<DeliveryAttempts[]> {
  const selected = selecting(key, { attributes: ["attempts", "test"] });
  const { Items = [] } = await reads.query({ TableName: tableName("deliveries"), ...selected, ...input });
  return Items as DeliveryAttempts[];
}
