import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient, TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import {
  GetSecretValueCommand,
  ResourceNotFoundException,
  SecretsManagerClient,
} from "@aws-sdk/client-secrets-manager";
import { SQSClient } from "@aws-sdk/client-sqs";
import {
  BatchGetCommand,
  type BatchGetCommandInput,
  DynamoDBDocumentClient,
  TransactWriteCommand,
  type TransactWriteCommandInput,
} from "@aws-sdk/lib-dynamodb";

/*
 * The AWS clients, made on first use and kept for the life of the process. Endpoints and credentials come from the
 * environment as the SDK defines it (AWS_ENDPOINT_URL_DYNAMODB and so on), which is how local runs reach their engines.
 */

/**
 * A healthy call takes milliseconds. Past these bounds a retry on another connection is the better bet. The SDK counts the
 * wait for one of its 50 sockets as connecting: a burst in a busy process must fit in.
 */
const requestHandler = { connectionTimeout: 3_000, requestTimeout: 3_000, throwOnRequestTimeout: true };

let documents: DynamoDBDocumentClient | undefined;
let queueClient: SQSClient | undefined;
let secrets: SecretsManagerClient | undefined;

export function dynamo(): DynamoDBDocumentClient {
  documents ??= DynamoDBDocumentClient.from(new DynamoDBClient({ requestHandler }), {
    marshallOptions: { removeUndefinedValues: true },
  });
  return documents;
}

export function sqs(): SQSClient {
  queueClient ??= new SQSClient({ requestHandler });
  return queueClient;
}

export function secretsManager(): SecretsManagerClient {
  secrets ??= new SecretsManagerClient({ requestHandler });
  return secrets;
}

/** The values of a secret's current and previous version, as far as it has them. */
export async function secretVersions(
  arn: string,
): Promise<{ current?: string | undefined; previous?: string | undefined }> {
  const [current, previous] = await Promise.all(
    ["AWSCURRENT", "AWSPREVIOUS"].map(async (VersionStage) => {
      try {
        const value = await secretsManager().send(new GetSecretValueCommand({ SecretId: arn, VersionStage }));
        return value.SecretString;
      } catch (error) {
        if (error instanceof ResourceNotFoundException) return undefined;
        throw error;
      }
    }),
  );
  return { current, previous };
}

type Items = Record<string, unknown>[];

/** DynamoDB is too busy to read all that was asked for. An outage, by its name (isOutage). */
class NotAllRead extends Error {
  override readonly name = "ProvisionedThroughputExceededException";
}

/** About two seconds of asking for what was left. */
const MAX_READ_ROUNDS = 10;

/**
 * Reads items of one or more tables in one request, a hundred at most, each as it is now. Costs the read units of as many
 * single reads.
 * @param keys by table
 * @returns those that exist, by table, in no order
 * @throws NotAllRead when DynamoDB leaves some unread again and again
 */
export async function batchGet(keys: Record<string, Items>): Promise<Record<string, Items>> {
  const found = Object.fromEntries(Object.keys(keys).map((table): [string, Items] => [table, []]));
  const request = Object.entries(keys).map(([table, Keys]) => [table, { Keys, ConsistentRead: true }]);
  let unread: BatchGetCommandInput["RequestItems"] = Object.fromEntries(request);
  for (let rounds = 0; unread && Object.keys(unread).length > 0; rounds++) {
    // DynamoDB may answer a part and leave the rest to be asked for again: at once when the answer was full, later when it is busy.
    if (rounds >= MAX_READ_ROUNDS)
      throw new NotAllRead(`Not read in ${rounds} rounds: ${Object.keys(unread).join(", ")}`);
    if (rounds > 1) await sleep(Math.random() * Math.min(20 * 2 ** rounds, 500));
    const { Responses = {}, UnprocessedKeys } = await dynamo().send(new BatchGetCommand({ RequestItems: unread }));
    for (const [table, items] of Object.entries(Responses)) found[table]?.push(...items);
    unread = UnprocessedKeys;
  }
  return found;
}

export type TransactItem = NonNullable<TransactWriteCommandInput["TransactItems"]>[number];

/** The transaction did not happen because the conditions of these items did not hold. */
export class ConditionsFailed extends Error {
  override readonly name = "ConditionsFailed";
  readonly items: string[];

  constructor(items: string[], options?: ErrorOptions) {
    super(`Conditions failed: ${items.join(", ")}`, options);
    this.items = items;
  }
}

const MAX_CONFLICTS = 12;

/**
 * Writes all items or none. The names tell the caller which condition failed.
 *
 * Two transactions on one item (the counter of a user's keys, say) cancel each other, and the SDK does not repeat a
 * cancelled transaction: that is done here, with growing random waits, for about three seconds in all.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling
 * @throws ConditionsFailed
 */
export async function transact(items: Record<string, TransactItem>): Promise<void> {
  const names = Object.keys(items);
  for (let conflicts = 0; ; conflicts++) {
    try {
      await dynamo().send(new TransactWriteCommand({ TransactItems: Object.values(items) }));
      return;
    } catch (error) {
      if (!(error instanceof TransactionCanceledException)) throw error;
      const codes = (error.CancellationReasons ?? []).map((reason) => reason.Code);
      const failed = names.filter((_, index) => codes[index] === "ConditionalCheckFailed");
      if (failed.length > 0) throw new ConditionsFailed(failed, { cause: error });
      if (!codes.includes("TransactionConflict") || conflicts >= MAX_CONFLICTS) throw error;
      await sleep(Math.random() * Math.min(20 * 2 ** conflicts, 500));
    }
  }
}

/** The single write did not happen because its condition did not hold. */
export function isConditionFailed(error: unknown): error is Error & { Item?: Record<string, unknown> } {
  return error instanceof Error && error.name === "ConditionalCheckFailedException";
}

/**
 * Whether an error means that AWS could not be reached or was too busy, so that the same call may succeed later. The rest
 * (a missing grant, a malformed request) is our own mistake.
 */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof TransactionCanceledException) return true;
  const { $retryable, $fault, code } = error as { $retryable?: unknown; $fault?: string; code?: string };
  const isNetwork = code !== undefined && /^(ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOST|ENET)/.test(code);
  const isBusy = /Timeout|Throttl|Throughput|RequestLimit|ServiceUnavailable|InternalServerError/.test(error.name);
  return isNetwork || isBusy || $fault === "server" || $retryable !== undefined;
}
