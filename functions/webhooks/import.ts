import { randomBytes } from "node:crypto";
import { platform } from "../access/actor.ts";
import { ConditionsFailedError } from "../platform/aws.ts";
import { settings } from "../platform/env.ts";
import type { ApiError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { inParallel } from "../platform/parallel.ts";
import { parseCidrs } from "../receivers/receiver-address.ts";
import { forRow, type ImportResult } from "../schema/import-rows.ts";
import { invalidField, parse } from "../schema/input.ts";
import { requireNotSuspended } from "./suspension.ts";
import { type ProjectState, projectState } from "./suspension-store.ts";
import {
  type ImportedWebhook,
  importedWebhookInput,
  importInput,
  importWebhook,
  MAX_WEBHOOKS_PER_PROJECT,
  WEBHOOK_RANDOM_BYTES,
  type Webhook,
} from "./webhook.ts";
import { hasSecret } from "./webhook-secret-store.ts";
import * as webhooks from "./webhook-store.ts";

/** Projects at once. The webhooks of one project are stored one after the other: they share the item that counts them. */
const PARALLEL_PROJECTS = 20;

/**
 * Stores webhooks of the platform's earlier service with the secrets that their receivers have. They are then webhooks like any
 * other. The same row again changes nothing, so that an import is repeated from its beginning. The platform invokes this function
 * with IAM credentials.
 * @param input `{webhooks: [{project_id, url, name, events, secret, enabled, mode}], dry_run}`, at most 1,000
 * @returns the index of each row that is refused, with the reason. The others are imported
 */
export async function handler(input: unknown): Promise<ImportResult> {
  const { webhooks: given, dry_run = false } = parse(importInput, input);
  const schema = importedWebhookInput(parseCidrs(settings.webhookAllowCidrs()));
  const result: ImportResult = { imported: 0, unchanged: 0, refused: [] };
  const rows: { index: number; row: ImportedWebhook }[] = [];
  for (const [index, each] of given.entries()) {
    await forRow(result, index, () => void rows.push({ index, row: parse(schema, each) }));
  }
  const byProject = Map.groupBy(rows, ({ row }) => row.project_id);
  await inParallel([...byProject.values()], PARALLEL_PROJECTS, async (ofProject) => {
    const planned: Planned[] | undefined = dry_run ? [] : undefined;
    for (const { index, row } of ofProject) {
      await forRow(result, index, async () => {
        if (await isKnown(row, planned)) result.unchanged += 1;
        else result.imported += 1;
      });
    }
  });
  result.refused.sort((a, b) => a.index - b.index);
  const { imported, unchanged, refused } = result;
  if (!dry_run) log.info("webhooks imported", { imported, unchanged, refused: refused.length });
  return result;
}

/** A webhook that a dry run would have stored. */
type Planned = Webhook & { secret: string };

/**
 * Stores the webhook of a row, unless the project has it.
 * @param planned the webhooks of the rows before it; undefined = this is no dry run
 * @returns whether the project has it
 * @throws ApiError when the row is refused
 */
async function isKnown(row: ImportedWebhook, planned: Planned[] | undefined): Promise<boolean> {
  // Users of the project create at most 20 webhooks, so this ends.
  for (;;) {
    const state = await projectState(row.project_id);
    requireNotSuspended(state);
    const existing: (Webhook | Planned)[] = [...state.webhooks, ...(planned ?? [])];
    let refusal: ApiError | undefined;
    for (const webhook of existing.filter(({ url }) => url === row.url)) {
      const field = await differenceFrom(webhook, row);
      if (field === undefined) return true;
      const other = "secret" in webhook ? "an earlier row" : `the webhook ${webhook.id}`;
      refusal ??= invalidField(field, `must be the same as in ${other}, which has this URL`);
    }
    if (refusal) throw refusal;
    if (existing.length >= MAX_WEBHOOKS_PER_PROJECT) throw webhooks.limitReached();
    const webhook = importWebhook(row, new Date(), randomBytes(WEBHOOK_RANDOM_BYTES));
    if (planned) planned.push({ ...webhook, secret: row.secret });
    else if (!(await insertUnlessChanged(webhook, row.secret, state))) continue;
    return false;
  }
}

/** @returns the field that differs. Name, mode and whether it is enabled may have been changed since, and do not count */
async function differenceFrom(webhook: Webhook | Planned, row: ImportedWebhook): Promise<string | undefined> {
  if (webhook.events.toSorted().join() !== row.events.toSorted().join()) return "events";
  const isSame = "secret" in webhook ? webhook.secret === row.secret : await hasSecret(webhook.id, row.secret);
  return isSame ? undefined : "secret";
}

/** @returns false when a webhook of the project was created or deleted since `state` was read, perhaps by a repeated call */
async function insertUnlessChanged(webhook: Webhook, secret: string, state: ProjectState): Promise<boolean> {
  try {
    await webhooks.insert(webhook, secret, platform, {}, state);
    return true;
  } catch (error) {
    if (error instanceof ConditionsFailedError) return false;
    throw error;
  }
}
