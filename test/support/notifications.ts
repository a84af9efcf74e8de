import { randomUUID } from "node:crypto";
import { SubscribeCommand } from "@aws-sdk/client-sns";
import { CreateQueueCommand, DeleteMessageCommand, ReceiveMessageCommand } from "@aws-sdk/client-sqs";
import { paginateScan } from "@aws-sdk/lib-dynamodb";
import { dynamo, sns, sqs } from "../../functions/foundation/platform/aws.ts";
import { tableName, topicArn } from "../../functions/foundation/platform/env.ts";
import type { Notification } from "../../functions/foundation/records/notification.ts";
import type { NotificationMessage } from "../../functions/foundation/records/notification-topic.ts";

/** A message as a subscriber of the topic gets it. */
export interface Mail {
  subject: string;
  attributes: Record<string, string>;
  message: NotificationMessage;
}

/** Subscribes a new queue to the topic. @returns a function that receives and deletes its messages */
export async function subscribeToTopic(): Promise<() => Promise<Mail[]>> {
  const name = `mail-${randomUUID()}`;
  await sqs().send(new CreateQueueCommand({ QueueName: name }));
  const QueueUrl = `${process.env.AWS_ENDPOINT_URL_SQS}/000000000000/${name}`;
  const Endpoint = `arn:aws:sqs:us-east-1:000000000000:${name}`;
  await sns().send(new SubscribeCommand({ TopicArn: topicArn("notifications"), Protocol: "sqs", Endpoint }));
  return async () => {
    const taken: Mail[] = [];
    while (true) {
      const { Messages = [] } = await sqs().send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }));
      if (Messages.length === 0) return taken;
      for (const { Body = "", ReceiptHandle } of Messages) {
        const { Subject, Message, MessageAttributes = {} } = JSON.parse(Body);
        const attributes = Object.entries<{ Value: string }>(MessageAttributes).map(([key, { Value }]) => [key, Value]);
        taken.push({ subject: Subject, attributes: Object.fromEntries(attributes), message: JSON.parse(Message) });
        await sqs().send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
      }
    }
  };
}

/** Reads the notifications that are not published, also those that are due later, in order of their due time. */
export async function notifications(): Promise<Notification[]> {
  const rows: Notification[] = [];
  for await (const { Items = [] } of paginateScan(
    { client: dynamo() },
    { TableName: tableName("notifications"), ConsistentRead: true },
  )) {
    rows.push(...(Items as Notification[]));
  }
  return rows.toSorted((a, b) => (a.due < b.due ? -1 : 1));
}

/** Reads the notifications that are not published about a webhook or a key, by its id. */
export const notificationsAbout = async (id: string): Promise<Notification[]> =>
  (await notifications()).filter(({ data }) => ("webhook_id" in data ? data.webhook_id : data.api_key_id) === id);
