import { styleText } from "node:util";
import { apiKeys } from "./api-keys.ts";
import { bodies, credentials, everyAnswer, reach } from "./auth-checks.ts";
import type { Check, CheckContext, CheckGroup } from "./context.ts";
import { CheckFailed, CheckInterrupted, CheckSkipped, CheckWarning } from "./findings.ts";
import { newMark, removeAll } from "./leftovers.ts";
import { listen } from "./listener.ts";
import type { SmokeOptions } from "./options.ts";
import { type Answer, stageClient } from "./stage-client.ts";
import { webhooks } from "./webhooks.ts";

export interface Limits {
  /** How long a request may take. */
  requestMs: number;
  /** How long a test delivery is waited for. */
  deliveryMs: number;
  /** How long all of it may take, cleaning up included. */
  totalMs: number;
}

export const defaultLimits: Limits = { requestMs: 10_000, deliveryMs: 30_000, totalMs: 60_000 };

type Verdict = "ok" | "warn" | "skip" | "FAIL";

interface Outcome {
  verdict: Verdict;
  ms: number;
  /** What is worth telling. */
  note: string | undefined;
}

/** In the order of their checks, which build on each other. */
export const checkGroups: CheckGroup[] = [reach, credentials, bodies, apiKeys, webhooks, everyAnswer];

/**
 * Holds a stage to what the README promises, line by line, and removes whatever it made there.
 * @param print gets each line as it comes; no credential is in it
 * @param interrupt ends it early: what is under way is finished, what was made is removed
 * @returns whether the stage kept every promise
 */
export async function smoke(
  options: SmokeOptions,
  print: (line: string) => void,
  interrupt: AbortSignal,
  limits: Limits = defaultLimits,
): Promise<boolean> {
  const startedAt = performance.now();
  const { requestMs, deliveryMs, totalMs } = limits;
  // A request that is under way then takes its time, and so does the cleaning up.
  const checkMs = Math.max(totalMs - 2 * requestMs, 0);
  const stop = AbortSignal.any([interrupt, AbortSignal.timeout(checkMs)]);
  const answers: Answer[] = [];
  const secrets = new Set([options.token]);
  const hide = (text: string) => redacted(text, secrets);
  const client = (bounds: { requestMs: number; stop: AbortSignal }) =>
    stageClient(options.baseUrl, bounds, { heard: (answer) => answers.push(answer), hide });
  if (typeof options.receiver === "object") secrets.add(options.receiver.url);
  const scene: CheckContext = {
    send: client({ requestMs, stop }),
    answers,
    options,
    mark: newMark(new Date()),
    patienceMs: deliveryMs,
    stop,
    secrets,
    made: new Map(),
    ...(options.receiver === "listen" && { listener: await listen() }),
  };

  const tell = (line: string) => print(hide(line));
  const count: Record<Verdict, number> = { ok: 0, warn: 0, skip: 0, FAIL: 0 };
  const report = (check: Check, outcome: Outcome, sections: string[]) => {
    count[outcome.verdict] += 1;
    for (const line of linesOf(check.claim, outcome, check.sections ?? sections)) tell(line);
  };

  tell(`\n${bold(options.baseUrl)}`);
  const isFinished = await checkAll();
  scene.listener?.close();

  // However it went, what was made is removed, and in a time of its own.
  scene.send = client({ requestMs: requestMs / 2, stop: AbortSignal.timeout(requestMs / 2) });
  tell(`\n${bold("Afterwards")}`);
  report(cleaning, await outcomeOf(cleaning, scene, "FAIL"), []);

  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  tell(`\n${closing(count, isFinished, seconds)}\n`);
  return isFinished && count.FAIL === 0;

  /** @returns whether it came to the end */
  async function checkAll(): Promise<boolean> {
    for (const { title, sections, checks } of checkGroups) {
      tell(`\n${bold(title)}`);
      for (const check of checks) {
        const outcome = await outcomeOf(check, scene, "skip");
        report(check, outcome, sections);
        if (outcome.verdict === "FAIL" && check.isGate) return false;
        if (stop.aborted) {
          tell(`\n${interrupt.aborted ? "Interrupted" : `${checkMs / 1000} s are up`}: the rest is not checked.`);
          return false;
        }
      }
    }
    return true;
  }
}

const cleaning: Check = {
  claim: "nothing is left behind",
  sections: ["api-errors"],
  async run(scene) {
    // Nobody was let in, so nothing can have been made.
    if (!scene.projects) return undefined;
    const { count, left } = await removeAll(scene, new Date());
    if (left.length > 0) throw new CheckFailed(`to be removed by hand: ${left.join("; ")}`);
    return count === 0 ? undefined : `${count} removed`;
  },
};

async function outcomeOf(check: Check, scene: CheckContext, whenStopped: Verdict): Promise<Outcome> {
  const startedAt = performance.now();
  const outcome = (verdict: Verdict, note: string | undefined): Outcome => ({
    verdict,
    ms: Math.round(performance.now() - startedAt),
    note,
  });
  try {
    return outcome("ok", await check.run(scene));
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof CheckSkipped) {
      if (error.isExcused || !scene.options.wantsAll) return outcome("skip", message);
      return outcome("FAIL", `not checked, although --all wants it: ${message}`);
    }
    if (error instanceof CheckWarning) return outcome("warn", message);
    if (error instanceof CheckInterrupted) return outcome(whenStopped, message);
    if (error instanceof CheckFailed) return outcome("FAIL", message);
    // Not even then may anything be left behind.
    return outcome("FAIL", `the smoke test itself is at fault: ${(error as Error).stack ?? message}`);
  }
}

function linesOf(claim: string, { verdict, ms, note }: Outcome, sections: string[]): string[] {
  const time = verdict === "skip" ? "" : `${ms} ms`;
  const head = `  ${paint(styles[verdict], verdict.padEnd(4))} ${dim(time.padStart(9))}  ${claim}`;
  if (verdict === "ok") return [note === undefined ? head : `${head} ${dim(`(${note})`)}`];
  if (verdict === "skip") return [`${head}: ${dim(`not checked, ${note}`)}`];
  const indent = " ".repeat(18);
  return [head, `${indent}${note}`, `${indent}${dim(`see docs/runbook.md: ${sections.join(", ")}`)}`];
}

const styles = { ok: "green", warn: "yellow", skip: "dim", FAIL: "red" } as const;

function closing(count: Record<Verdict, number>, isFinished: boolean, seconds: string): string {
  const parts = [
    `${count.ok} ok`,
    ...(count.warn > 0 ? [`${count.warn} to look at`] : []),
    ...(count.FAIL > 0 ? [`${count.FAIL} failed`] : []),
  ];
  const gaps = count.skip === 0 ? "" : `, with ${count.skip} check${count.skip === 1 ? "" : "s"} not made`;
  const told = (style: "red" | "green" | "yellow", text: string) => paint(style, text) + paint("yellow", gaps);
  const summary = `${parts.join(", ")}, in ${seconds} s.`;
  if (count.FAIL > 0) return `${told("red", "Something is wrong here")}: ${summary}`;
  return `${isFinished ? told("green", "All is well") : told("yellow", "Not finished")}: ${summary}`;
}

/** Credentials, known or of known form, never reach the screen: it may be a CI job's log. */
function redacted(line: string, secrets: Set<string>): string {
  let text = line;
  for (const secret of secrets) text = text.replaceAll(secret, "…");
  return text.replaceAll(/\b(svcp?_|whsec_)[0-9A-Za-z]{12,}/g, "$1…").replaceAll(/\beyJ[\w-]+(\.[\w-]*)*/g, "eyJ…");
}

function paint(style: "bold" | "dim" | "green" | "yellow" | "red", text: string): string {
  return text === "" ? "" : styleText(style, text, { stream: process.stdout });
}

const bold = (text: string) => paint("bold", text);
const dim = (text: string) => paint("dim", text);
