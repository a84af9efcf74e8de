import type { Client } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { webhookEventNames } from "../../../client/src/values.ts";
import { rotationOf } from "../commands/webhooks.ts";
import { printChecked, requireStdout } from "../terminal/checked-output.ts";
import type { Globals } from "../terminal/globals.ts";
import { confirm, jsonText, note, print, printable } from "../terminal/terminal.ts";
import { type Change, isChange } from "./plan.ts";
import { newWebhookOf, planText, toChangeRecord } from "./plan-view.ts";
import { headerValues } from "./webhooks-file.ts";

/** @param unknown events that only a platform can have added: the reader of a plan finds a misspelt one */
export function showPlan(plan: Change[], unknown: readonly string[], { json }: Globals): void {
  const names = webhookEventNames.join(", ");
  const warnings = unknown.map(
    (name) => `! ${name}: only valid if the platform has added it. The service has ${names}.`,
  );
  if (json) {
    for (const warning of warnings) note(warning);
    for (const change of plan) print(jsonText(toChangeRecord(change)));
  } else print([...warnings, planText(plan, process.stdout)].join("\n"));
}

/**
 * Makes the changes of a plan. Creates before it deletes, so that a project never has fewer receivers than before and after.
 * @throws ApiError when the service rejects a change; those before it stay
 */
export async function applyPlan(
  api: Client,
  projectId: string,
  plan: Change[],
  { json, yes }: Globals & { yes?: boolean },
): Promise<void> {
  const changes = actionOrder.flatMap((action) => plan.filter((change) => change.action === action));
  const deletions = plan.filter(({ action }) => action === "delete").length;
  const isAsked = deletions > 0 && !yes;
  // With --json only for the question, whose answer needs the URLs.
  if (!json || isAsked) note(planText(plan, process.stderr));
  if (plan.some(({ action }) => action === "create")) requireStdout();
  // All of them before the first change.
  const values = new Map(changes.map((change) => [change, headersOf(change)]));
  if (isAsked) await confirm(`Delete webhooks: ${deletions}`, yes);
  let made = 0;
  for (const change of changes) {
    try {
      await applyChange(api, projectId, change, values.get(change), json);
    } catch (error) {
      const { action, url } = toChangeRecord(change);
      const isRefused = error instanceof ApiError && [400, 403, 404].includes(error.status);
      const next = isRefused ? "Correct the cause, and repeat the command." : repetition;
      note(`Could not ${action} ${printable(url)}. Changes made before: ${made}. ${next}`);
      throw error;
    }
    if (isChange(change)) made += 1;
  }
  if (!json) note(made === 0 ? "Nothing to change." : `Changes made: ${made}.`);
}

const repetition = "Repeat the command to continue.";
const actionOrder: Change["action"][] = ["create", "update", "delete", "unchanged", "keep"];

/** Returns the values of the headers that a change sends; null = it removes them, undefined = it does not touch them. */
function headersOf(change: Change): Record<string, string> | null | undefined {
  const isSent = change.action === "create" || (change.action === "update" && change.changes.headers);
  if (!isSent) return undefined;
  return change.declared.headers && headerValues(change.declared.headers);
}

/** Prints the record of the change at once: a secret must not be lost when a later change fails. */
async function applyChange(
  api: Client,
  projectId: string,
  change: Change,
  headers: ReturnType<typeof headersOf>,
  json?: boolean,
): Promise<void> {
  const record = toChangeRecord(change);
  if (change.action === "create") {
    const { enabled } = change.declared;
    const created = await api.createWebhook(projectId, {
      ...newWebhookOf(change.declared),
      ...(headers && { headers }),
    });
    const { id, secret, url } = created;
    const webhook = { projectId, webhookId: id };
    if (!json) note(`Created the webhook ${id}. Save its secret now: it is not shown again.`);
    const line = json ? jsonText({ ...record, id, secret }) : `${id}  ${secret}  ${url}`;
    await printChecked(line, `${repetition}\nReplace the secret with: ${rotationOf(webhook)} --overlap 0 --yes`);
    if (enabled === false) await api.updateWebhook(webhook, { enabled });
    return;
  }
  const webhook = { projectId, webhookId: change.webhook.id };
  if (change.action === "update") {
    const changed = Object.entries(change.changes).map(([field, { to }]) => [field, to]);
    await api.updateWebhook(webhook, { ...Object.fromEntries(changed), ...(headers !== undefined && { headers }) });
  }
  if (change.action === "delete") await api.deleteWebhook(webhook);
  if (json) await printChecked(jsonText(record), repetition);
}
