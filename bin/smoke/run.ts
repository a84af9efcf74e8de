import { randomBytes } from "node:crypto";
import { createClient } from "../../packages/client/src/client.ts";
import { ApiError } from "../../packages/client/src/errors.ts";
import { style } from "../demo/demo-page.ts";
import { startReceiver } from "../demo/demo-receiver.ts";
import { type Check, type CheckContext, type CheckGroup, CheckSkipped, CheckWarning, type Limits } from "./check.ts";
import { askAt, gateway } from "./gateway-checks.ts";
import { keyJourney, removeAll, webhookJourney } from "./journey.ts";
import { access, closedEndpoint, logQueries, monitoring, versions } from "./operator-checks.ts";
import type { SmokeOptions } from "./options.ts";

const MINUTE_MS = 60_000;

const defaultLimits: Limits = {
  requestMs: 10_000,
  deliveryMs: 30_000,
  totalMs: MINUTE_MS,
  metricsMs: 5 * MINUTE_MS,
  changeMs: MINUTE_MS,
  pollMs: 5_000,
};

/** The checks of every run, in their order: later ones use what earlier ones created. */
export const userGroups: CheckGroup[] = [gateway, keyJourney, webhookJourney];

/** Those of `--operator`. */
export const operatorGroups: CheckGroup[] = [access, closedEndpoint, monitoring, versions, logQueries];

/** Returns the checks that the options ask for. */
function selectedGroups({ operator }: SmokeOptions): CheckGroup[] {
  if (!operator) return userGroups;
  return [...userGroups, ...operatorGroups.filter((group) => operator.closesEndpoint || group !== closedEndpoint)];
}

type Verdict = "ok" | "warn" | "skip" | "FAIL";

/**
 * Checks a stage against its documented behavior, then removes everything that was created there.
 * @param print receives each line of the report, with credentials removed
 * @param interrupt ends the run early: the request in flight is finished, created resources are removed
 * @param given limits other than the defaults
 * @param groups the checks to run, in this order; absent = those that the options ask for
 * @returns whether all checks ran and none failed
 */
export async function smoke(
  options: SmokeOptions,
  print: (line: string) => void,
  interrupt: AbortSignal,
  given: Partial<Limits> = {},
  groups = selectedGroups(options),
): Promise<boolean> {
  const startedAt = new Date();
  // Metrics take minutes to arrive.
  const limits = { ...defaultLimits, ...(options.operator && { totalMs: 15 * MINUTE_MS }), ...given };
  const { baseUrl, token, receiver } = options;
  const stop = AbortSignal.any([interrupt, AbortSignal.timeout(limits.totalMs)]);
  const secrets = new Set([token, ...(typeof receiver === "object" ? [receiver.url] : [])]);
  // Not aborted by `stop`: a request in flight is finished, so that no created resource is missed.
  const clientOf = (credential: string) =>
    createClient({
      baseUrl,
      token: credential,
      timeoutSeconds: limits.requestMs / 1000,
      maxRetries: 3,
      maxWaitSeconds: 10,
    });
  const context: CheckContext = {
    options,
    user: clientOf(token),
    holderOf: clientOf,
    ask: askAt(baseUrl, limits.requestMs),
    mark: `smoke-${startedAt.toISOString().replaceAll(/[-:]|\.\d+/g, "")}-${randomBytes(3).toString("hex")}`,
    startedAt,
    limits,
    stop,
    secrets,
    created: new Map(),
    count: { rejected: 0, tests: 0 },
    ...(receiver === "listen" && { receiver: await startReceiver() }),
  };
  const say = (line: string) => print(redacted(line, secrets));
  const count: Record<Verdict, number> = { ok: 0, warn: 0, skip: 0, FAIL: 0 };
  const report = async (check: Check, sections: string[]): Promise<Verdict> => {
    const begin = performance.now();
    const [verdict, note] = await outcomeOf(check, context);
    count[verdict] += 1;
    for (const line of linesOf(check.claim, verdict, note, performance.now() - begin, sections)) say(line);
    return verdict;
  };

  say(`\n${style("bold", baseUrl)}`);
  const isFinished = await checkAll();
  context.receiver?.close();
  // In every case.
  say(`\n${style("bold", "Cleanup")}`);
  await report(cleanup, ["api-errors"]);

  const counts = `${count.ok} ok, ${count.warn} with a warning, ${count.FAIL} failed, ${count.skip} skipped`;
  const verdict = count.FAIL > 0 ? style("red", "failed") : isFinished ? style("green", "passed") : "not finished";
  say(`\nSmoke test ${verdict}: ${counts}, in ${((Date.now() - startedAt.getTime()) / 1000).toFixed(1)} s.\n`);
  return isFinished && count.FAIL === 0;

  /** @returns whether all checks ran */
  async function checkAll(): Promise<boolean> {
    for (const { title, sections, checks } of groups) {
      say(`\n${style("bold", title)}`);
      for (const check of checks) {
        if ((await report(check, sections)) === "FAIL" && check.isGate) return false;
        if (!stop.aborted) continue;
        const reason = interrupt.aborted ? "Interrupted" : `Time limit of ${limits.totalMs / 1000} s reached`;
        say(`\n${reason}: the remaining checks were not run.`);
        return false;
      }
    }
    return true;
  }
}

const cleanup: Check = {
  claim: "everything that was created is removed",
  async run(context) {
    return `${await removeAll(context)} removed`;
  },
};

/** @returns the verdict, and what is printed beside or below the claim */
async function outcomeOf(check: Check, context: CheckContext): Promise<[Verdict, string | undefined]> {
  try {
    return ["ok", await check.run(context)];
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof CheckSkipped) {
      const isFailure = context.options.requiresAll && !error.isExcused;
      return isFailure ? ["FAIL", `not checked, but --all requires it: ${message}`] : ["skip", message];
    }
    if (error instanceof CheckWarning) return ["warn", message];
    if (error instanceof ApiError) return ["FAIL", `got ${error.status} ${error.code}: ${message}`];
    return ["FAIL", message];
  }
}

function linesOf(claim: string, verdict: Verdict, note: string | undefined, ms: number, sections: string[]): string[] {
  const color = { ok: "green", warn: "bold", skip: "dim", FAIL: "red" } as const;
  const head = `  ${style(color[verdict], verdict.padEnd(4))} ${`${Math.round(ms)} ms`.padStart(9)}  ${claim}`;
  if (verdict === "ok") return [note === undefined ? head : `${head} (${note})`];
  if (verdict === "skip") return [`${head}: not checked, ${note}`];
  const indent = " ".repeat(18);
  return [head, `${indent}${note}`, `${indent}see docs/runbook.md: ${sections.join(", ")}`];
}

/** Removes known secrets and everything that looks like a credential: the output may be the log of a CI job. */
function redacted(line: string, secrets: Set<string>): string {
  let text = line;
  for (const secret of secrets) text = text.replaceAll(secret, "…");
  return text.replaceAll(/\b(svcp?_|whsec_)[0-9A-Za-z]{12,}/g, "$1…").replaceAll(/\beyJ[\w-]+(\.[\w-]*)*/g, "eyJ…");
}
