import {
  CreateTableCommand,
  type DynamoDBClient,
  type KeySchemaElement,
  ResourceInUseException,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { CreateQueueCommand, GetQueueAttributesCommand, type SQSClient } from "@aws-sdk/client-sqs";
import {
  deadLetterMaxMessageBytes,
  deadLetterName,
  queues,
  retentionSeconds,
} from "../../functions/manifest/queues.ts";
import { type TableRow, tables } from "../../functions/manifest/tables.ts";

/*
 * The tables and queues of the data tables, made on whatever engine is there. What exists is left as it is.
 */

/**
 * @param prefix goes before each table's name
 * @returns the environment that leads the functions to the tables
 */
export async function createTables(client: DynamoDBClient, prefix = ""): Promise<Record<string, string>> {
  const rows: TableRow[] = Object.values(tables);
  await Promise.all(rows.map((row) => createTable(client, `${prefix}${row.name}`, row)));
  return Object.fromEntries(rows.map(({ env, name }) => [env, `${prefix}${name}`]));
}

async function createTable(client: DynamoDBClient, TableName: string, row: TableRow): Promise<void> {
  const indexes = row.indexes ?? [];
  const types = new Map<string, "S" | "N">([[row.partitionKey, "S"]]);
  if (row.sortKey) types.set(row.sortKey, "S");
  for (const { partitionKey, sortKey } of indexes) types.set(partitionKey.name, partitionKey.type).set(sortKey, "S");
  try {
    await client.send(
      new CreateTableCommand({
        TableName,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [...types].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
        KeySchema: keySchema(row.partitionKey, row.sortKey),
        ...(indexes.length > 0 && {
          GlobalSecondaryIndexes: indexes.map(({ name, partitionKey, sortKey }) => ({
            IndexName: name,
            KeySchema: keySchema(partitionKey.name, sortKey),
            Projection: { ProjectionType: "KEYS_ONLY" },
          })),
        }),
      }),
    );
  } catch (error) {
    if (error instanceof ResourceInUseException) return;
    throw error;
  }
  if (row.ttl) {
    const TimeToLiveSpecification = { AttributeName: row.ttl, Enabled: true };
    await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
  }
}

function keySchema(partitionKey: string, sortKey: string | undefined): KeySchemaElement[] {
  const partition: KeySchemaElement = { AttributeName: partitionKey, KeyType: "HASH" };
  return sortKey ? [partition, { AttributeName: sortKey, KeyType: "RANGE" }] : [partition];
}

/**
 * @param urlOf the URL of a queue by its name, for engines whose own answer is not to be used
 * @returns the environment that leads the functions to the queues
 */
export async function createQueues(
  client: SQSClient,
  { prefix = "", urlOf }: { prefix?: string; urlOf?: (name: string) => string } = {},
): Promise<Record<string, string>> {
  const retention = { MessageRetentionPeriod: String(retentionSeconds) };
  const create = async (name: string, Attributes: Record<string, string>) => {
    const { QueueUrl = "" } = await client.send(new CreateQueueCommand({ QueueName: name, Attributes }));
    return urlOf?.(name) ?? QueueUrl;
  };
  const env: Record<string, string> = {};
  for (const row of Object.values(queues)) {
    const deadLetters = `${prefix}${deadLetterName(row)}`;
    env[row.deadLetterEnv] = await create(deadLetters, {
      ...retention,
      MaximumMessageSize: String(deadLetterMaxMessageBytes),
    });
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl: env[row.deadLetterEnv], AttributeNames: ["QueueArn"] }),
    );
    env[row.env] = await create(`${prefix}${row.name}`, {
      ...retention,
      VisibilityTimeout: String(row.visibilitySeconds),
      MaximumMessageSize: String(row.maxMessageBytes),
      RedrivePolicy: JSON.stringify({
        deadLetterTargetArn: Attributes?.QueueArn,
        maxReceiveCount: row.maxReceives,
      }),
    });
  }
  return env;
}
