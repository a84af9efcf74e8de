import { randomBytes } from "node:crypto";
import { settings } from "../../foundation/platform/env.ts";
import type { ApiError } from "../../foundation/platform/errors.ts";
import { inParallel } from "../../foundation/platform/parallel.ts";
import { forRow, type ImportResult, importRows, type Row } from "../../foundation/schema/import-rows.ts";
import { invalidField, parse } from "../../foundation/schema/input.ts";
import { parseCidrs } from "../receiver/receiver-address.ts";
import { requireNotSuspended } from "./suspension.ts";
import { projectState } from "./suspension-store.ts";
import {
  createWebhook,
  type ImportedWebhook,
  importedWebhookInput,
  importInput,
  MAX_WEBHOOKS_PER_PROJECT,
  type NewWebhook,
  WEBHOOK_RANDOM_BYTES,
  type Webhook,
} from "./webhook.ts";
import { hasSecret } from "./webhook-secret-store.ts";
import * as webhooks from "./webhook-store.ts";

/** Projects at once. */
const PARALLEL_PROJECTS = 20;

/**
 * Stores webhooks of the platform's earlier service with the secrets that their receivers have. They are then webhooks like any
 * other. The same row again changes nothing, so that an import is repeated from its beginning. The platform invokes this function
 * with IAM credentials.
 * @param input `{webhooks: [{project_id, url, name, events, secret, enabled, mode, …}], dry_run}`, at most 1,000
 * @returns the index of each row that is refused, with the reason. The others are imported
 */
export async function handler(input: unknown): Promise<ImportResult> {
  const { webhooks: given, dry_run = false } = parse(importInput, input);
  const schema = importedWebhookInput(parseCidrs(settings.webhookAllowCidrs()));
  return importRows(given, schema, dry_run, (rows, result) => {
    const byProject = Map.groupBy(rows, ({ values }) => values.project_id);
    return inParallel([...byProject], PARALLEL_PROJECTS, ([projectId, ofProject]) =>
      importInto(projectId, ofProject, result, dry_run),
    );
  });
}

type WebhookRow = Row<ImportedWebhook>;

async function importInto(
  projectId: string,
  rows: WebhookRow[],
  result: ImportResult,
  isDryRun: boolean,
): Promise<void> {
  const state = await projectState(projectId);
  const now = Date.now();
  const added: (WebhookRow & NewWebhook)[] = [];
  for (const { index, values } of rows) {
    await forRow(result, index, async () => {
      requireNotSuspended(state);
      if (await isKnown(values, state.webhooks, added)) {
        result.unchanged += 1;
        return;
      }
      if (state.webhooks.length + added.length >= MAX_WEBHOOKS_PER_PROJECT) throw webhooks.limitReached();
      // A millisecond apart, so that lists have them in the order of the rows.
      const createdAt = new Date(now + added.length);
      const webhook = createWebhook(values, projectId, createdAt, randomBytes(WEBHOOK_RANDOM_BYTES));
      added.push({ index, values, ...webhook, secret: values.secret });
    });
  }
  const isDone = isDryRun || added.length === 0;
  if (isDone || (await webhooks.insertImported(projectId, added, state.webhook_count))) result.imported += added.length;
  // A webhook of the project was created or deleted meanwhile, perhaps by a repeated call, or the project was suspended.
  else await importInto(projectId, added, result, isDryRun);
}

/**
 * Returns whether the project has the webhook of a row. Name, mode and whether it is enabled may have been changed since.
 * @param added the webhooks of the rows before it
 * @throws ApiError `validation_error` when the webhooks with its URL have other events or another secret
 */
async function isKnown(row: ImportedWebhook, stored: Webhook[], added: NewWebhook[]): Promise<boolean> {
  let refusal: ApiError | undefined;
  for (const { webhook, secret } of [...stored.map((webhook) => ({ webhook, secret: undefined })), ...added]) {
    if (webhook.url !== row.url) continue;
    const hasEvents = webhook.events.toSorted().join() === row.events.toSorted().join();
    const isSecret = secret === undefined ? await hasSecret(webhook.id, row.secret) : secret === row.secret;
    if (hasEvents && isSecret) return true;
    const other = secret === undefined ? `the webhook ${webhook.id}` : "an earlier row";
    refusal ??= invalidField(hasEvents ? "secret" : "events", `must be the same as in ${other}, which has this URL`);
  }
  if (refusal) throw refusal;
  return false;
}
