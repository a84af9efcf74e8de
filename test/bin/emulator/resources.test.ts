import { DescribeTableCommand, DescribeTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import { GetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { createQueues, createTables, createTopics } from "../../../bin/emulator/resources.ts";
import { dynamo, sns, sqs } from "../../../functions/foundation/platform/aws.ts";
import { deadLetterUrl, queueUrl, tableName } from "../../../functions/foundation/platform/env.ts";
import { freshResources } from "../../support/resources.ts";

/* Tables and queues of a local run have the properties of those on AWS. The expected values are literals. */

beforeAll(freshResources);

test("the deliveries table has its time to live, and the backlog table none", async () => {
  const ttlOf = async (TableName: string) =>
    (await dynamo().send(new DescribeTimeToLiveCommand({ TableName }))).TimeToLiveDescription;
  expect(await ttlOf(tableName("deliveries"))).toEqual({
    AttributeName: "expires_at",
    TimeToLiveStatus: "ENABLED",
  });
  expect((await ttlOf(tableName("backlog")))?.TimeToLiveStatus).not.toBe("ENABLED");
});

test("the index of the backlog table has keys only", async () => {
  const { Table } = await dynamo().send(new DescribeTableCommand({ TableName: tableName("backlog") }));
  expect(Table?.GlobalSecondaryIndexes).toMatchObject([{ Projection: { ProjectionType: "KEYS_ONLY" } }]);
});

test.each([
  ["events", "180", "deployment-events-dlq"],
  ["deliveries", "360", "deliveries-dlq"],
  ["slowDeliveries", "360", "deliveries-slow-dlq"],
] as const)(
  "the queue %s hides a message for %s s and moves it to %s after 100 receives",
  async (key, seconds, dlq) => {
    const attributesOf = async (QueueUrl: string) =>
      (await sqs().send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }))).Attributes ?? {};
    const attributes = await attributesOf(queueUrl(key));
    expect(attributes).toMatchObject({
      VisibilityTimeout: seconds,
      MessageRetentionPeriod: "1209600",
      MaximumMessageSize: "262144",
    });
    const { deadLetterTargetArn, maxReceiveCount } = JSON.parse(attributes.RedrivePolicy ?? "{}");
    expect(Number(maxReceiveCount)).toBe(100);
    expect(deadLetterTargetArn.endsWith(`-${dlq}`)).toBe(true);
    expect(await attributesOf(deadLetterUrl(key))).toMatchObject({
      MessageRetentionPeriod: "1209600",
      MaximumMessageSize: "1048576",
    });
  },
);

test("creating them again changes nothing", async () => {
  const tables = await createTables(dynamo(), "again-");
  expect(await createTables(dynamo(), "again-")).toEqual(tables);
  expect(tables.DELIVERIES_TABLE).toBe("again-deliveries");
  const options = {
    prefix: "again-",
    urlOf: (name: string) => `${process.env.AWS_ENDPOINT_URL_SQS}/000000000000/${name}`,
  };
  const queues = await createQueues(sqs(), options);
  expect(await createQueues(sqs(), options)).toEqual(queues);
  expect(queues.EVENTS_QUEUE_URL).toMatch(/\/again-deployment-events$/);
  const topics = await createTopics(sns(), "again-");
  expect(await createTopics(sns(), "again-")).toEqual(topics);
  expect(topics).toEqual({ NOTIFICATIONS_TOPIC_ARN: expect.stringMatching(/^arn:aws:sns:.*:again-notifications$/) });
});
