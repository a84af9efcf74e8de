import { setTimeout as sleep } from "node:timers/promises";
import type { Certification, Client, WebhookRef } from "../../../client/src/client.ts";
import { CommandError, exitCodes } from "../terminal/exit-codes.ts";
import { jsonText, note, print, printable } from "../terminal/terminal.ts";
import { type Cell, table } from "../views/table.ts";

const POLL_INTERVAL_MS = 500;
/** The requests take up to 30 seconds. The rest is for the queue in front of them. */
const MAX_WAIT_MS = 90_000;

/**
 * Certifies the receiver of a webhook, waits for the report and prints it. Sets exit code 1 unless all checks passed.
 * @throws CommandError when there is no report in time
 */
export async function certify(api: Client, webhook: WebhookRef, json?: boolean): Promise<void> {
  const { id } = await api.certifyWebhook(webhook);
  note(`Started the certification ${id}. Its requests are marked with X-Service-Probe.`);
  const certification = await finished(api, webhook, id);
  print(json ? jsonText(certification) : report(certification));
  const { passed, note: limit } = certification;
  if (limit !== undefined) note(printable(limit));
  if (passed) {
    const result = limit === undefined ? "accepts valid deliveries and rejects all others" : "accepts a valid delivery";
    return note(`Passed: the receiver ${result}.`);
  }
  process.exitCode = exitCodes.failed;
}

async function finished(api: Client, webhook: WebhookRef, id: string): Promise<Certification> {
  const deadline = Date.now() + MAX_WAIT_MS;
  while (Date.now() < deadline) {
    const certification = await api.getCertification(webhook, id);
    if (certification.status === "finished") return certification;
    if (certification.status === "unfinished") break;
    await sleep(POLL_INTERVAL_MS);
  }
  throw new CommandError(exitCodes.unavailable, `The certification ${id} did not finish.`, "Certify again.");
}

/** Formats the checks as a table, and below it a line for each check that did not pass. */
function report({ checks }: Certification): string {
  const rows = checks.map(({ check, expected, status_code, error_code, duration_ms, passed }) => [
    check,
    resultCell(passed),
    expected,
    responseText(status_code, error_code),
    duration_ms === null ? "" : `${duration_ms} ms`,
  ]);
  const hints = checks.flatMap(({ check, hint }) => (hint === null ? [] : [`${check}: ${printable(hint)}`]));
  return [table(["check", "result", "expected", "response", "time"], rows), ...hints].join("\n\n");
}

const resultCell = (passed: boolean): Cell =>
  passed ? { text: "passed", style: "green" } : { text: "failed", style: "red" };

function responseText(status: number | null, error: string | null): string {
  if (error !== null && error !== "http_status") return error;
  return status === null ? "not sent" : String(status);
}
