import { randomBytes } from "node:crypto";
import { createClient } from "../../packages/client/src/client.ts";
import { ApiError } from "../../packages/client/src/errors.ts";
import { style } from "../demo/demo-page.ts";
import { startReceiver } from "../demo/demo-receiver.ts";
import type { CheckContext, CheckGroup, Limits, RunCheck } from "./check.ts";
import { gateway } from "./gateway-checks.ts";
import { journey, removeAll } from "./journey.ts";
import { monitoring } from "./operator-checks.ts";
import type { SmokeOptions } from "./options.ts";

const defaultLimits: Limits = { requestMs: 10_000, deliveryMs: 30_000, totalMs: 120_000 };

const cleanup: CheckGroup = {
  title: "Cleanup",
  sections: ["api-errors"],
  async run(context, check) {
    const claim = "everything that was created is removed";
    await check(
      claim,
      () => removeAll(context),
      (removed) => `${removed} removed`,
    );
  },
};

export const groups: CheckGroup[] = [gateway, journey, monitoring, cleanup];

/**
 * Checks a stage against its documented behavior, then removes everything that was created there. A failed check ends the
 * run, because the next ones build on it.
 * @param print receives each line of the report, with credentials removed
 * @param interrupt ends the run early: the request in flight is finished, created resources are removed
 * @param given limits other than the defaults
 * @returns whether all checks ran and none failed
 */
export async function smoke(
  options: SmokeOptions,
  print: (line: string) => void,
  interrupt: AbortSignal,
  given: Partial<Limits> = {},
): Promise<boolean> {
  const startedAt = new Date();
  const limits = { ...defaultLimits, ...given };
  const { baseUrl, token, receiver } = options;
  const stop = AbortSignal.any([interrupt, AbortSignal.timeout(limits.totalMs)]);
  const secrets = new Set([token, ...(typeof receiver === "object" ? [receiver.url] : [])]);
  const timeoutSeconds = limits.requestMs / 1000;
  const context: CheckContext = {
    options,
    // Not aborted by `stop`: a request in flight is finished, so that no created resource is missed.
    clientOf: (credential) =>
      createClient({ baseUrl, token: credential, timeoutSeconds, maxRetries: 3, maxWaitSeconds: 10 }),
    mark: `smoke-${startedAt.toISOString().replaceAll(/[-:]|\.\d+/g, "")}-${randomBytes(3).toString("hex")}`,
    limits,
    stop,
    secrets,
    isAccepted: false,
    ...(receiver === "listen" && { receiver: await startReceiver() }),
  };
  const say = (line: string) => print(redacted(line, secrets));
  const count = { ok: 0, failed: 0 };
  const checkIn =
    ({ sections }: CheckGroup, end?: AbortSignal): RunCheck =>
    async (claim, verify, noteOf) => {
      end?.throwIfAborted();
      const begin = performance.now();
      const head = () => `${`${Math.round(performance.now() - begin)} ms`.padStart(9)}  ${claim}`;
      try {
        const result = await verify();
        count.ok += 1;
        say(`  ${style("green", "ok  ")} ${head()}${noteOf ? ` (${noteOf(result)})` : ""}`);
        return result;
      } catch (error) {
        if (end?.aborted) throw error;
        count.failed += 1;
        const { message } = error as Error;
        const cause = error instanceof ApiError ? `got ${error.status} ${error.code}: ${message}` : message;
        say(`  ${style("red", "FAIL")} ${head()}`);
        for (const line of [cause, `see docs/runbook.md: ${sections.join(", ")}`]) say(`${" ".repeat(18)}${line}`);
        throw error;
      }
    };

  say(`\n${style("bold", baseUrl)}`);
  let isFinished = true;
  for (const group of groups) {
    if (group === monitoring && options.stage === undefined) continue;
    const isCleanup = group === cleanup;
    if (!isFinished && !isCleanup) continue;
    say(`\n${style("bold", group.title)}`);
    await group.run(context, checkIn(group, isCleanup ? undefined : stop)).catch(() => {
      isFinished = false;
      if (isCleanup) return;
      const late = `Time limit of ${limits.totalMs / 1000} s reached`;
      const reason = interrupt.aborted ? "Interrupted" : stop.aborted ? late : "A check failed";
      say(`\n${reason}: the remaining checks were not run.`);
    });
  }
  context.receiver?.close();

  const verdict = count.failed > 0 ? style("red", "failed") : isFinished ? style("green", "passed") : "not finished";
  const seconds = ((Date.now() - startedAt.getTime()) / 1000).toFixed(1);
  say(`\nSmoke test ${verdict}: ${count.ok} ok, ${count.failed} failed, in ${seconds} s.\n`);
  return isFinished && count.failed === 0;
}

/** Removes known secrets and everything that looks like a credential: the output may be the log of a CI job. */
function redacted(line: string, secrets: Set<string>): string {
  let text = line;
  for (const secret of secrets) text = text.replaceAll(secret, "…");
  return text.replaceAll(/\b(svcp?_|whsec_)[0-9A-Za-z]{12,}/g, "$1…").replaceAll(/\beyJ[\w-]+(\.[\w-]*)*/g, "eyJ…");
}
