import { styleText } from "node:util";
import { apiKeys } from "./api-keys.ts";
import { bodies, credentials, everyResponse, reach } from "./auth-checks.ts";
import { AwsError } from "./aws/clients.ts";
import type { Check, CheckContext, CheckGroup, OperatorWaits } from "./context.ts";
import { CheckFailed, CheckInterrupted, CheckSkipped, CheckWarning } from "./findings.ts";
import { newMark, removeAll } from "./leftovers.ts";
import { listen } from "./listener.ts";
import { access, closedEndpoint, logQueries, monitoring, versions } from "./operator-checks.ts";
import type { SmokeOptions } from "./options.ts";
import { type StageResponse, stageClient } from "./stage-client.ts";
import { webhooks } from "./webhooks.ts";

export interface Limits {
  /** Timeout of a request. */
  requestMs: number;
  /** Max wait for the result of a test delivery. */
  deliveryMs: number;
  /** Max duration of the run, cleanup included. */
  totalMs: number;
  /** Of the checks of `--operator`. */
  operator?: OperatorWaits;
}

export const defaultLimits: Limits = { requestMs: 10_000, deliveryMs: 30_000, totalMs: 60_000 };

const defaultWaits: OperatorWaits = { metricsMs: 5 * 60_000, changeMs: 60_000, pollMs: 5_000 };

/** Metrics take minutes to arrive. */
export const operatorLimits: Limits = { ...defaultLimits, totalMs: 15 * 60_000 };

type Verdict = "ok" | "warn" | "skip" | "FAIL";

interface Outcome {
  verdict: Verdict;
  ms: number;
  /** Printed beside or below the claim; undefined = nothing. */
  note: string | undefined;
}

/** All checks, in the order in which they run: later ones use what earlier ones created. */
export const checkGroups: CheckGroup[] = [
  reach,
  credentials,
  bodies,
  apiKeys,
  webhooks,
  access,
  closedEndpoint,
  everyResponse,
  monitoring,
  versions,
  logQueries,
];

/** Those of `--operator`. */
export const operatorGroups: CheckGroup[] = [access, closedEndpoint, monitoring, versions, logQueries];

/** Returns the checks that the options ask for. */
function selectedGroups({ operator }: SmokeOptions): CheckGroup[] {
  if (!operator) return checkGroups.filter((group) => !operatorGroups.includes(group));
  return checkGroups.filter((group) => operator.closesEndpoint || group !== closedEndpoint);
}

/**
 * Checks a stage against its documented behavior, then removes everything that was created there.
 * @param print receives each line of the report, with credentials removed
 * @param interrupt ends the run early: the request in flight is finished, created resources are removed
 * @param groups the checks to run, in this order; absent = those that the options ask for
 * @returns whether all checks ran and none failed
 */
export async function smoke(
  options: SmokeOptions,
  print: (line: string) => void,
  interrupt: AbortSignal,
  limits: Limits = options.operator ? operatorLimits : defaultLimits,
  groups = selectedGroups(options),
): Promise<boolean> {
  const startedAt = performance.now();
  const { requestMs, deliveryMs, totalMs } = limits;
  // Leaves time for the request in flight and for the cleanup.
  const checkMs = Math.max(totalMs - 2 * requestMs, 0);
  const stop = AbortSignal.any([interrupt, AbortSignal.timeout(checkMs)]);
  const responses: StageResponse[] = [];
  const secrets = new Set([options.token]);
  const redact = (text: string) => redacted(text, secrets);
  const client = (bounds: { requestMs: number; stop: AbortSignal }) =>
    stageClient(options.baseUrl, bounds, { onResponse: (response) => responses.push(response), redact });
  if (typeof options.receiver === "object") secrets.add(options.receiver.url);
  const context: CheckContext = {
    send: client({ requestMs, stop }),
    sendAsUser: (method, path, call) => context.send(method, path, { token: options.token, ...call }),
    responses,
    options,
    mark: newMark(new Date()),
    deliveryTimeoutMs: deliveryMs,
    operatorWaits: limits.operator ?? defaultWaits,
    stop,
    secrets,
    created: new Map(),
    ...(options.receiver === "listen" && { listener: await listen() }),
  };

  const printRedacted = (line: string) => print(redact(line));
  const count: Record<Verdict, number> = { ok: 0, warn: 0, skip: 0, FAIL: 0 };
  const report = (check: Check, outcome: Outcome, sections: string[]) => {
    count[outcome.verdict] += 1;
    for (const line of linesOf(check.claim, outcome, check.sections ?? sections)) printRedacted(line);
  };

  printRedacted(`\n${bold(options.baseUrl)}`);
  const isFinished = await checkAll();
  context.listener?.close();

  // The cleanup runs in every case, with its own time limit.
  context.send = client({ requestMs: requestMs / 2, stop: AbortSignal.timeout(requestMs / 2) });
  printRedacted(`\n${bold("Cleanup")}`);
  report(cleanup, await outcomeOf(cleanup, context), []);

  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  printRedacted(`\n${closing(count, isFinished, seconds)}\n`);
  return isFinished && count.FAIL === 0;

  /** @returns whether all checks ran */
  async function checkAll(): Promise<boolean> {
    for (const { title, sections, checks } of groups) {
      printRedacted(`\n${bold(title)}`);
      for (const check of checks) {
        const outcome = await outcomeOf(check, context);
        report(check, outcome, sections);
        if (outcome.verdict === "FAIL" && check.isGate) return false;
        if (stop.aborted) {
          const reason = interrupt.aborted ? "Interrupted" : `Time limit of ${checkMs / 1000} s reached`;
          printRedacted(`\n${reason}: the remaining checks were not run.`);
          return false;
        }
      }
    }
    return true;
  }
}

const cleanup: Check = {
  claim: "everything that was created is removed",
  sections: ["api-errors"],
  async run(context) {
    // The JWT was not accepted, so no resource can exist.
    if (!context.projects) return undefined;
    const { count, failures } = await removeAll(context, new Date());
    if (failures.length > 0) throw new CheckFailed(`remove by hand: ${failures.join("; ")}`);
    return count === 0 ? undefined : `${count} removed`;
  },
};

async function outcomeOf(check: Check, context: CheckContext): Promise<Outcome> {
  const startedAt = performance.now();
  const outcome = (verdict: Verdict, note: string | undefined): Outcome => ({
    verdict,
    ms: Math.round(performance.now() - startedAt),
    note,
  });
  try {
    return outcome("ok", await check.run(context));
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof CheckSkipped) {
      if (error.isExcused || !context.options.requiresAll) return outcome("skip", message);
      return outcome("FAIL", `not checked, but --all requires it: ${message}`);
    }
    if (error instanceof CheckWarning) return outcome("warn", message);
    // Not in the cleanup, which reports what it could not remove.
    if (error instanceof CheckInterrupted) return outcome("skip", message);
    // A call to AWS that fails is a finding about the stage, not a bug here.
    if (error instanceof CheckFailed || error instanceof AwsError) return outcome("FAIL", message);
    // A bug in the smoke test itself. It is caught here so that the cleanup still runs.
    return outcome("FAIL", `this is a bug in the smoke test: ${(error as Error).stack ?? message}`);
  }
}

function linesOf(claim: string, { verdict, ms, note }: Outcome, sections: string[]): string[] {
  const time = verdict === "skip" ? "" : `${ms} ms`;
  const head = `  ${style(colors[verdict], verdict.padEnd(4))} ${dim(time.padStart(9))}  ${claim}`;
  if (verdict === "ok") return [note === undefined ? head : `${head} ${dim(`(${note})`)}`];
  if (verdict === "skip") return [`${head}: ${dim(`not checked, ${note}`)}`];
  const indent = " ".repeat(18);
  return [head, `${indent}${note}`, `${indent}${dim(`see docs/runbook.md: ${sections.join(", ")}`)}`];
}

const colors = { ok: "green", warn: "yellow", skip: "dim", FAIL: "red" } as const;

function closing(count: Record<Verdict, number>, isFinished: boolean, seconds: string): string {
  const parts = [
    `${count.ok} ok`,
    ...(count.warn > 0 ? [`${count.warn} with a warning`] : []),
    ...(count.FAIL > 0 ? [`${count.FAIL} failed`] : []),
    ...(count.skip > 0 ? [style("yellow", `${count.skip} skipped`)] : []),
  ];
  const summary = `${parts.join(", ")}, in ${seconds} s.`;
  if (count.FAIL > 0) return `${style("red", "Smoke test failed")}: ${summary}`;
  return `${isFinished ? style("green", "Smoke test passed") : style("yellow", "Smoke test not finished")}: ${summary}`;
}

/** Removes known secrets and everything that looks like a credential: the output may be the log of a CI job. */
function redacted(line: string, secrets: Set<string>): string {
  let text = line;
  for (const secret of secrets) text = text.replaceAll(secret, "…");
  return text.replaceAll(/\b(svcp?_|whsec_)[0-9A-Za-z]{12,}/g, "$1…").replaceAll(/\beyJ[\w-]+(\.[\w-]*)*/g, "eyJ…");
}

function style(format: "bold" | "dim" | "green" | "yellow" | "red", text: string): string {
  return text === "" ? "" : styleText(format, text, { stream: process.stdout });
}

const bold = (text: string) => style("bold", text);
const dim = (text: string) => style("dim", text);
