import { setTimeout as sleep } from "node:timers/promises";
import { type AlarmHistoryItem, DescribeAlarmHistoryCommand } from "@aws-sdk/client-cloudwatch";
import { UsageError } from "../command/command.ts";
import { cloudWatch } from "../smoke/aws/clients.ts";
import { type Alarm, readAlarms } from "../smoke/aws/cloudwatch.ts";
import { readStack, type StageStack } from "../smoke/aws/stack.ts";
import { type Drill, type DrillName, drills } from "./drills.ts";
import type { Fault } from "./faults.ts";

export interface DrillOptions {
  names: DrillName[];
  stage: string;
  /** The operator accepts a drill in a stage that keeps its data. */
  isConfirmed: boolean;
}

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
  const stack = await readStack(stage);
  if (stack.isProtected && !isConfirmed) {
    throw new UsageError("A drill wakes the on-call engineer of this stage: pass --yes to confirm.");
  }
  const alarms = await readAlarms(stack);
  const plan = names.flatMap((name) => planOf(name, stack, alarms));
  const count = { rang: 0, SILENT: 0, skip: 0, left: 0 };
  const ring = async (each: Ringing): Promise<void> => {
    const { verdict, note, left } = await ringAlarm(each, stack, interrupt, limits);
    count[verdict] += 1;
    print(`  ${verdict.padEnd(6)}  ${each.alarm.AlarmName}: ${note}`);
    if (left === undefined) return;
    count.left += 1;
    print(`${" ".repeat(10)}LEFT BEHIND: ${left}`);
  };
  await Promise.all(plan.map(ring));

  const parts = [`${count.rang} rang`, `${count.SILENT} silent`, `${count.skip} skipped`];
  print(`${count.SILENT + count.left > 0 ? "Drill failed" : "Drill finished"}: ${parts.join(", ")}.`);
  return count.SILENT + count.left === 0;
}

const silent = (note: string): Outcome => ({ verdict: "SILENT", note });

const notBegun: Outcome = { verdict: "skip", note: "interrupted" };

/** Returns the alarms that a drill rings. */
function planOf(name: DrillName, stack: StageStack, alarms: Alarm[]): Ringing[] {
  const matches = new RegExp(`^${stack.stage}-(page|ticket)-${name}(-\\d+)?$`);
  const found = alarms.filter(({ AlarmName }) => matches.test(AlarmName));
  if (found.length === 0) throw new UsageError(`The stage ${stack.stage} has no alarm ${name}.`);
  return found.map((alarm) => ({ drill: drills[name], alarm }));
}

async function ringAlarm(
  { drill, alarm }: Ringing,
  stack: StageStack,
  interrupt: AbortSignal,
  limits: DrillLimits,
): Promise<Outcome> {
  if (alarm.StateValue === "ALARM") return { verdict: "skip", note: "is in ALARM already: find out why first" };
  if (interrupt.aborted) return notBegun;
  const fault = drill.fault({ stack, mark: `drill-${crypto.randomUUID()}`, minuteMs: limits.minuteMs });
  let outcome: Outcome;
  try {
    const startedAt = new Date();
    await fault.start();
    const waitMs = limits.minuteMs * drill.waitMinutes;
    outcome = await waitForRinging(alarm, fault, { ...limits, startedAt, waitMs, interrupt });
  } catch (error) {
    outcome = interrupt.aborted ? notBegun : silent((error as Error).message);
  }
  try {
    await fault.end();
  } catch (error) {
    outcome.left = (error as Error).message;
  }
  return outcome;
}

interface Waiting extends DrillLimits {
  startedAt: Date;
  waitMs: number;
  interrupt: AbortSignal;
}

/** Waits until the alarm has rung and notified its topic. The history shows it also when the alarm has ended since. */
async function waitForRinging(
  alarm: Alarm,
  fault: Fault,
  { startedAt, waitMs, minuteMs, pollMs, interrupt }: Waiting,
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
    if (rangAtMs !== undefined && sinceMs() - rangAtMs > NOTIFICATION_MINUTES * minuteMs) {
      return silent(`rang after ${after()}, but notified no topic`);
    }
    if (rangAtMs === undefined && sinceMs() > waitMs) return silent(`did not ring within ${after()}`);
    if (rangAtMs === undefined && sinceMs() - repeatedAtMs >= minuteMs) {
      repeatedAtMs = sinceMs();
      await fault.repeat?.();
    }
    await sleep(pollMs, undefined, { signal: interrupt });
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
