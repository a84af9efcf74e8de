import { createHash, createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ConditionalCheckFailedException,
  DynamoDBClient,
  TransactionCanceledException,
} from "@aws-sdk/client-dynamodb";
import {
  GetSecretValueCommand,
  ResourceNotFoundException,
  SecretsManagerClient,
} from "@aws-sdk/client-secrets-manager";
import { SNSClient } from "@aws-sdk/client-sns";
import { SQSClient } from "@aws-sdk/client-sqs";
import {
  BatchGetCommand,
  type BatchGetCommandInput,
  DynamoDBDocumentClient,
  TransactWriteCommand,
  type TransactWriteCommandInput,
} from "@aws-sdk/lib-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { backoffMs } from "./backoff.ts";

/*
 * The AWS clients, created on first use and reused by the whole process. Endpoints and credentials are read from the
 * SDK's own environment variables (AWS_ENDPOINT_URL_DYNAMODB and so on), which local runs set to their engines.
 */

/**
 * Timeouts in milliseconds. A healthy call takes a few milliseconds, so after these bounds a retry on another
 * connection is more likely to succeed. The SDK counts the wait for one of its 50 sockets as connection time, so the
 * connection timeout must be long enough for a burst of calls.
 */
const requestHandler = { connectionTimeout: 3_000, requestTimeout: 3_000, throwOnRequestTimeout: true };

/** SHA-256 for signing requests. Node takes 15 µs to accept a key in a buffer, and 2 µs for one in a text. */
class Sha256 {
  readonly #hash;

  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    const text = typeof key === "object" ? Buffer.from(key as Uint8Array).toString("latin1") : key;
    const encoding = typeof key === "object" ? "latin1" : "utf8";
    this.#hash = text === undefined ? createHash("sha256") : createHmac("sha256", text, { encoding });
  }

  update(chunk: Uint8Array): void {
    this.#hash.update(chunk);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  /** Part of the interface. The signer creates one for each text. */
  reset(): void {}
}

const options = { requestHandler, sha256: Sha256 };

interface SdkClient {
  middlewareStack: { remove(name: string): boolean };
  config: Pick<DynamoDBClient["config"], "signer">;
}

/**
 * Removes what each call would do without a use: fields of a log line, although no logger is set, the SDK's name and version,
 * and a new signer. These and `Sha256` are a quarter of the CPU time of a call.
 */
export function withoutUnused<Client extends SdkClient>(client: Client): Client {
  for (const name of ["loggerMiddleware", "getUserAgentMiddleware"]) client.middlewareStack.remove(name);
  const { signer: create } = client.config;
  let signer: ReturnType<typeof create> | undefined;
  client.config.signer = (scheme) => {
    signer ??= create(scheme);
    return signer;
  };
  return client;
}

let documents: DynamoDBDocumentClient | undefined;
let queueClient: SQSClient | undefined;
let topicClient: SNSClient | undefined;
let secrets: SecretsManagerClient | undefined;

export function dynamo(): DynamoDBDocumentClient {
  documents ??= DynamoDBDocumentClient.from(withoutUnused(new DynamoDBClient(options)), {
    marshallOptions: { removeUndefinedValues: true },
  });
  return documents;
}

export function sqs(): SQSClient {
  queueClient ??= withoutUnused(new SQSClient(options));
  return queueClient;
}

export function sns(): SNSClient {
  topicClient ??= withoutUnused(new SNSClient(options));
  return topicClient;
}

export function secretsManager(): SecretsManagerClient {
  secrets ??= withoutUnused(new SecretsManagerClient(options));
  return secrets;
}

/** Reads the current and the previous version of a secret. A version that does not exist is undefined. */
export async function secretVersions(
  arn: string,
  stages = ["AWSCURRENT", "AWSPREVIOUS"],
): Promise<{ current?: string | undefined; previous?: string | undefined; pending?: string | undefined }> {
  const [current, previous, pending] = await Promise.all(
    stages.map(async (VersionStage) => {
      try {
        const value = await secretsManager().send(new GetSecretValueCommand({ SecretId: arn, VersionStage }));
        return value.SecretString;
      } catch (error) {
        if (error instanceof ResourceNotFoundException) return undefined;
        throw error;
      }
    }),
  );
  return { current, previous, pending };
}

type Items = Record<string, unknown>[];

/** DynamoDB kept returning unprocessed keys. `isOutage` recognizes the name as throttling. */
class KeysUnprocessedError extends Error {
  override readonly name = "ProvisionedThroughputExceededException";
}

/** Upper bound on requests per batch: at most three seconds of backoff. */
const MAX_BATCH_ROUNDS = 10;

/**
 * Reads up to 100 items of one or more tables. Consumes the same read units as single reads.
 * @param keys by table name
 * @param ConsistentRead false = eventually consistent, at half the units
 * @returns the items that exist, by table name, in no defined order
 * @throws KeysUnprocessedError when DynamoDB still returns unprocessed keys after all retries
 */
export async function batchGet(keys: Record<string, Items>, ConsistentRead = true): Promise<Record<string, Items>> {
  const found = Object.fromEntries(Object.keys(keys).map((table): [string, Items] => [table, []]));
  const request = Object.entries(keys).map(([table, Keys]) => [table, { Keys, ConsistentRead }]);
  let unprocessed: BatchGetCommandInput["RequestItems"] = Object.fromEntries(request);
  for (let rounds = 0; unprocessed && Object.keys(unprocessed).length > 0; rounds++) {
    // Keys stay unprocessed when the response is full or DynamoDB is busy: retry once at once, then with backoff.
    if (rounds >= MAX_BATCH_ROUNDS) {
      const names = Object.keys(unprocessed).join(", ");
      throw new KeysUnprocessedError(`Keys still unprocessed after ${rounds} requests, in the tables ${names}`);
    }
    if (rounds > 1) await sleep(backoffMs(rounds, Math.random()));
    const { Responses = {}, UnprocessedKeys } = await dynamo().send(new BatchGetCommand({ RequestItems: unprocessed }));
    for (const [table, items] of Object.entries(Responses)) found[table]?.push(...items);
    unprocessed = UnprocessedKeys;
  }
  return found;
}

export type TransactItem = NonNullable<TransactWriteCommandInput["TransactItems"]>[number];

type StoredItem = ConditionalCheckFailedException["Item"];

/** A transaction was canceled because the conditions of these items failed. */
export class ConditionsFailedError extends Error {
  override readonly name = "ConditionsFailedError";
  readonly items: string[];
  /** By name, the items as they are stored, where the write asked for it with `ReturnValuesOnConditionCheckFailure`. */
  readonly stored: Record<string, StoredItem>;

  constructor(items: string[], stored: Record<string, StoredItem> = {}, options?: ErrorOptions) {
    super(`Conditions failed: ${items.join(", ")}`, options);
    this.items = items;
    this.stored = stored;
  }
}

/** Upper bound on retries after a conflict: at most four seconds of backoff. */
const MAX_CONFLICTS = 12;

/**
 * Writes all items or none.
 *
 * Concurrent transactions on the same item (for example the counter of a user's keys) cancel each other. The SDK does
 * not retry a canceled transaction, so this function does, with exponential backoff and jitter.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling
 * @param items by a name that `ConditionsFailedError` reports
 * @throws ConditionsFailedError with the names of the items whose condition failed
 */
export async function transact(items: Record<string, TransactItem>): Promise<void> {
  const names = Object.keys(items);
  for (let conflicts = 0; ; conflicts++) {
    try {
      await dynamo().send(new TransactWriteCommand({ TransactItems: Object.values(items) }));
      return;
    } catch (error) {
      if (!(error instanceof TransactionCanceledException)) throw error;
      const reasons = error.CancellationReasons ?? [];
      const codes = reasons.map((reason) => reason.Code);
      const failed = names.filter((_, index) => codes[index] === "ConditionalCheckFailed");
      const stored = Object.fromEntries(names.map((name, index) => [name, reasons[index]?.Item]));
      if (failed.length > 0) throw new ConditionsFailedError(failed, stored, { cause: error });
      if (!codes.includes("TransactionConflict") || conflicts >= MAX_CONFLICTS) throw error;
      await sleep(backoffMs(conflicts, Math.random()));
    }
  }
}

/**
 * Repeats a single write that is rejected because a transaction is writing the same item, which the SDK does not.
 * @throws the error of the write; the conflict itself after four seconds
 */
export async function retryConflicts<Result>(write: () => Promise<Result>): Promise<Result> {
  for (let conflicts = 0; ; conflicts++) {
    try {
      return await write();
    } catch (error) {
      if (!isConflict(error) || conflicts >= MAX_CONFLICTS) throw error;
      await sleep(backoffMs(conflicts, Math.random()));
    }
  }
}

const isConflict = (error: unknown): boolean => error instanceof Error && error.name === "TransactionConflictException";

/** Returns whether a single write was rejected because its condition failed. */
export function isConditionFailed(error: unknown): error is ConditionalCheckFailedException {
  return error instanceof Error && error.name === "ConditionalCheckFailedException";
}

/**
 * Returns the item because of which a condition failed; undefined when it does not exist, or the write did not ask for it
 * with `ReturnValuesOnConditionCheckFailure`.
 */
export const storedItem = ({ Item }: ConditionalCheckFailedException): Record<string, unknown> | undefined =>
  Item && unmarshall(Item);

/**
 * Returns an attribute of the item because of which a condition failed, as text; undefined when the item or the
 * attribute does not exist, or the write did not ask for it with `ReturnValuesOnConditionCheckFailure`.
 *
 * The SDK repeats a write whose response was lost. When the first one took effect, the condition of the repeated one
 * fails, although the caller's write succeeded: a value that only the caller can have written shows that.
 */
export function storedValue({ Item }: ConditionalCheckFailedException, attribute: string): string | undefined {
  const value = Item?.[attribute];
  return value?.S ?? value?.N;
}

/**
 * Returns whether DynamoDB rejected a call because of too many others for the same items or partition, such as those of one
 * project. Of a canceled transaction it does not say which limit was reached; that of a table is 40 times that of a partition.
 * https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
 */
export function isContention(error: unknown): boolean {
  if (error instanceof TransactionCanceledException) {
    return (error.CancellationReasons ?? []).some(({ Code = "" }) =>
      /^(TransactionConflict|ThrottlingError)$/.test(Code),
    );
  }
  const { ThrottlingReasons = [], throttlingReasons = ThrottlingReasons } = Object(error) as Throttled;
  return (
    isConflict(error) || throttlingReasons.some(({ reason = "" }) => reason.endsWith("KeyRangeThroughputExceeded"))
  );
}

/** The errors of DynamoDB differ in the name of the field. */
type Throttled = Partial<Record<"ThrottlingReasons" | "throttlingReasons", { reason?: string }[]>>;

/**
 * Returns whether AWS was unreachable or too busy, so that the same call may succeed later. Other errors (a missing
 * grant, a malformed request) are bugs of this service.
 */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof TransactionCanceledException || isConflict(error)) return true;
  const { $retryable, $fault, code } = error as { $retryable?: unknown; $fault?: string; code?: string };
  const isNetwork = code !== undefined && /^(ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOST|ENET)/.test(code);
  const isBusy = /Timeout|Throttl|Throughput|RequestLimit|ServiceUnavailable|InternalServerError/.test(error.name);
  return isNetwork || isBusy || $fault === "server" || $retryable !== undefined;
}
