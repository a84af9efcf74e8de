import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../../foundation/platform/aws.ts";
import { readItem, updateIf } from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { changing, when } from "../../foundation/platform/expression.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import { readForRequest } from "../line/delivery-store.ts";
import { type Certification, partitionOf } from "./certification.ts";

/*
 * The certifications of webhooks. They are in the table of deliveries, each webhook's in a partition of its own, and
 * expire like deliveries.
 */

const certificationKey = (webhook_id: string, id: string) => ({
  TableName: tableName("deliveries"),
  Key: { webhook_id, id },
});

/** Stores a new certification. Its id is random, so a repeated write stores the same row. */
export async function insert(certification: Certification): Promise<void> {
  await dynamo().send(new PutCommand({ TableName: tableName("deliveries"), Item: certification }));
}

/**
 * Returns a certification of a webhook. Strongly consistent.
 * @throws ApiError `not_found` when the webhook has no certification with this id
 */
export async function get(webhookId: string, id: string): Promise<Certification> {
  const found = await readItem<Certification>(certificationKey(partitionOf(webhookId), id));
  if (!found) throw new ApiError("not_found", "No certification with this id exists.");
  return found;
}

interface CertificationKeys {
  project_id: string;
  webhook_id: string;
  certification_id: string;
}

/** Reads all inputs of the probes. */
export const readForProbes = (keys: CertificationKeys) =>
  readForRequest<Certification>({ webhook_id: partitionOf(keys.webhook_id), id: keys.certification_id }, keys);

/** What is stored when the probes were sent. */
type Finished = Required<Pick<Certification, "results" | "finished_at">> & Pick<Webhook, "format">;

/** Stores the results, once: when two senders received the message, the first results stay. */
export async function finish({ webhook_id, id }: Certification, finished: Finished): Promise<void> {
  const isUnfinished = when`attribute_exists(id) AND attribute_not_exists(finished_at)`;
  await updateIf(certificationKey(webhook_id, id), changing({ set: { ...finished }, when: isUnfinished }));
}
