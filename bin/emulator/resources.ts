import {
  CreateTableCommand,
  type DynamoDBClient,
  type KeySchemaElement,
  ResourceInUseException,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { CreateTopicCommand, type SNSClient } from "@aws-sdk/client-sns";
import { CreateQueueCommand, GetQueueAttributesCommand, type SQSClient } from "@aws-sdk/client-sqs";
import {
  deadLetterMaxMessageBytes,
  deadLetterName,
  queues,
  retentionSeconds,
} from "../../functions/foundation/manifest/queues.ts";
import { type TableRow, tables } from "../../functions/foundation/manifest/tables.ts";
import { topics } from "../../functions/foundation/manifest/topics.ts";

/*
 * Creates the tables, queues and topics of the manifest's rows on any engine. An existing one is left as it is.
 */

/**
 * Creates all tables.
 * @param prefix of each table's name; empty = none
 * @returns the environment variables with the tables' names, which the functions read
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
 * Creates all queues with their dead-letter queues.
 * @param prefix of each queue's name; empty = none
 * @param urlOf gives the URL of a queue by its name, for an engine that returns URLs that cannot be used
 * @returns the environment variables with the queues' URLs, which the functions read
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
  const created = Object.values(queues).map(async (row) => {
    const deadLetterUrl = await create(`${prefix}${deadLetterName(row)}`, {
      ...retention,
      MaximumMessageSize: String(deadLetterMaxMessageBytes),
    });
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl: deadLetterUrl, AttributeNames: ["QueueArn"] }),
    );
    const url = await create(`${prefix}${row.name}`, {
      ...retention,
      VisibilityTimeout: String(row.visibilitySeconds),
      MaximumMessageSize: String(row.maxMessageBytes),
      RedrivePolicy: JSON.stringify({
        deadLetterTargetArn: Attributes?.QueueArn,
        maxReceiveCount: row.maxReceives,
      }),
    });
    return { [row.deadLetterEnv]: deadLetterUrl, [row.env]: url };
  });
  return Object.assign({}, ...(await Promise.all(created)));
}

/**
 * Creates all topics.
 * @param prefix of each topic's name; empty = none
 * @returns the environment variables with the topics' ARNs, which the functions read
 */
export async function createTopics(client: SNSClient, prefix = ""): Promise<Record<string, string>> {
  const created = Object.values(topics).map(async ({ env, name }) => {
    const { TopicArn = "" } = await client.send(new CreateTopicCommand({ Name: `${prefix}${name}` }));
    return [env, TopicArn];
  });
  return Object.fromEntries(await Promise.all(created));
}
