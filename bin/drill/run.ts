import { setTimeout as sleep } from "node:timers/promises";
import { type AlarmHistoryItem, DescribeAlarmHistoryCommand } from "@aws-sdk/client-cloudwatch";
import { UsageError } from "../command/command.ts";
import { cloudWatch } from "../smoke/aws/clients.ts";
import { type Alarm, readAlarms } from "../smoke/aws/cloudwatch.ts";
import { readStack, type StageStack } from "../smoke/aws/stack.ts";
import { type Drill, type DrillName, drills } from "./drills.ts";
import type { DrillSite, Fault } from "./faults.ts";
import type { DrillOptions } from "./options.ts";

export interface DrillLimits {
  /** Length of a minute in milliseconds; tests shorten it. */
  minuteMs: number;
  /** Wait between two questions for the state of an alarm, in milliseconds. */
  pollMs: number;
}

export const defaultLimits: DrillLimits = { minuteMs: 60_000, pollMs: 15_000 };

/** Max wait for a notification, in minutes. */
const NOTIFICATION_MINUTES = 2;

/** One alarm to ring. */
interface Ringing {
  drill: Drill;
  alarm: Alarm;
}

interface Outcome {
  verdict: "rang" | "SILENT" | "skip";
  /** Printed beside the name of the alarm. */
  note: string;
  /** What could not be undone. */
  left?: string;
}

/**
 * Rings alarms on purpose and waits for each.
 * @param print receives each line of the report
 * @param interrupt ends the waits; faults are undone in every case
 * @returns whether every alarm rang, and nothing is left
 * @throws UsageError for a stage that keeps its data without `--yes`; AwsError when the stack cannot be read
 */
export async function runDrills(
  { names, stage, isConfirmed }: DrillOptions,
  print: (line: string) => void,
  interrupt: AbortSignal,
  limits: DrillLimits = defaultLimits,
): Promise<boolean> {
  const startedAt = new Date();
  const stack = await readStack(stage);
  if (stack.isProtected && !isConfirmed) {
    throw new UsageError("A drill wakes the on-call engineer of this stage: pass --yes to confirm.");
  }
  const alarms = await readAlarms(stack);
  const plan = names.flatMap((name) => planOf(name, stack, alarms));
  const count = { rang: 0, SILENT: 0, skip: 0, left: 0 };
  const ring = async (each: Ringing): Promise<void> => {
    const isTooCostly = each.drill.disturbs && stack.isProtected;
    const outcome = isTooCostly
      ? tooCostly(each.drill)
      : interrupt.aborted
        ? notBegun
        : await ringAlarm(each, { stack, startedAt, interrupt, ...limits });
    count[outcome.verdict] += 1;
    if (outcome.left !== undefined) count.left += 1;
    print(`  ${outcome.verdict.padEnd(6)}  ${each.alarm.AlarmName}: ${outcome.note}`);
    if (outcome.left !== undefined) print(`${" ".repeat(10)}LEFT BEHIND: ${outcome.left}`);
  };

  // Drills that stop a part of the service would disturb the others, and each other.
  await Promise.all(plan.filter(({ drill }) => !drill.disturbs).map(ring));
  for (const each of plan.filter(({ drill }) => drill.disturbs)) await ring(each);

  const parts = [`${count.rang} rang`, `${count.SILENT} silent`, `${count.skip} skipped`];
  print(`${count.SILENT + count.left > 0 ? "Drill failed" : "Drill finished"}: ${parts.join(", ")}.`);
  return count.SILENT + count.left === 0;
}

const silent = (note: string): Outcome => ({ verdict: "SILENT", note });

const notBegun: Outcome = { verdict: "skip", note: "interrupted" };

const tooCostly = ({ costs }: Drill): Outcome => ({
  verdict: "skip",
  note: `a stage that keeps its data must not bear the cost: ${costs}. Set its state, as docs/runbook.md shows`,
});

/** Returns the alarms that a drill rings. */
function planOf(name: DrillName, stack: StageStack, alarms: Alarm[]): Ringing[] {
  const matches = new RegExp(`^${stack.stage}-(page|ticket)-${name}(-\\d+)?$`);
  const found = alarms.filter(({ AlarmName }) => matches.test(AlarmName));
  if (found.length === 0) throw new UsageError(`The stage ${stack.stage} has no alarm ${name}.`);
  return found.map((alarm) => ({ drill: drills[name], alarm }));
}

interface Run extends DrillLimits {
  stack: StageStack;
  startedAt: Date;
  interrupt: AbortSignal;
}

async function ringAlarm({ drill, alarm }: Ringing, run: Run): Promise<Outcome> {
  if (alarm.StateValue === "ALARM") return { verdict: "skip", note: "is in ALARM already: find out why first" };
  const { stack, interrupt, minuteMs } = run;
  const site: DrillSite = {
    stack,
    mark: `drill-${crypto.randomUUID()}`,
    wait: async (ms) => void (await sleep(ms, undefined, { signal: interrupt })),
    minuteMs,
  };
  let fault: Fault | undefined;
  let outcome: Outcome;
  try {
    // The fault of another drill of this run may have rung it.
    const before = (await historyOf(alarm, run.startedAt)).some(isAction);
    if (before) return { verdict: "rang", note: "by another drill, and notified its topic" };
    fault = drill.fault(site);
    const startedAt = new Date();
    await fault.start();
    outcome = await waitForRinging(alarm, fault, { ...run, site, startedAt, waitMs: minuteMs * drill.waitMinutes });
  } catch (error) {
    outcome = interrupt.aborted ? notBegun : silent((error as Error).message);
  }
  try {
    await fault?.end();
  } catch (error) {
    outcome.left = (error as Error).message;
  }
  return outcome;
}

interface Waiting {
  site: DrillSite;
  startedAt: Date;
  waitMs: number;
  pollMs: number;
}

/** Waits until the alarm has rung and notified its topic. The history shows it also when the alarm has ended since. */
async function waitForRinging(
  alarm: Alarm,
  fault: Fault,
  { site, startedAt, waitMs, pollMs }: Waiting,
): Promise<Outcome> {
  const sinceMs = () => Date.now() - startedAt.getTime();
  const after = () => `${Math.round(sinceMs() / 1000)} s`;
  let rangAtMs: number | undefined;
  let repeatedAtMs = 0;
  for (;;) {
    const history = await historyOf(alarm, startedAt);
    if (rangAtMs === undefined && history.some(isRinging)) rangAtMs = sinceMs();
    const failure = history.find(isFailedAction);
    if (failure) return silent(`rang after ${after()}, but ${failure.HistorySummary}`);
    if (history.some(isAction)) return { verdict: "rang", note: `after ${after()}, and notified its topic` };
    if (rangAtMs !== undefined && sinceMs() - rangAtMs > NOTIFICATION_MINUTES * site.minuteMs) {
      return silent(`rang after ${after()}, but notified no topic`);
    }
    if (rangAtMs === undefined && sinceMs() > waitMs) return silent(`did not ring within ${after()}`);
    if (rangAtMs === undefined && sinceMs() - repeatedAtMs >= site.minuteMs) {
      repeatedAtMs = sinceMs();
      await fault.repeat?.();
    }
    await site.wait(pollMs);
  }
}

/**
 * Returns what happened to an alarm since a time. The texts are those of CloudWatch:
 * https://docs.aws.amazon.com/cli/latest/reference/cloudwatch/describe-alarm-history.html#examples
 * https://repost.aws/knowledge-center/cloudwatch-receive-sns-for-alarm-trigger
 */
async function historyOf({ AlarmName }: Alarm, StartDate: Date): Promise<AlarmHistoryItem[]> {
  const input = { AlarmName, StartDate, MaxRecords: 100, ScanBy: "TimestampAscending" } as const;
  return (await cloudWatch.send(new DescribeAlarmHistoryCommand(input))).AlarmHistoryItems ?? [];
}

const isRinging = ({ HistoryItemType, HistorySummary = "" }: AlarmHistoryItem): boolean =>
  HistoryItemType === "StateUpdate" && HistorySummary.endsWith("to ALARM");
const isAction = ({ HistoryItemType, HistorySummary = "" }: AlarmHistoryItem): boolean =>
  HistoryItemType === "Action" && HistorySummary.startsWith("Successfully executed action");
const isFailedAction = ({ HistoryItemType, HistorySummary = "" }: AlarmHistoryItem): boolean =>
  HistoryItemType === "Action" && HistorySummary.startsWith("Failed to execute action");
