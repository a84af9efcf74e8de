import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
} from "@aws-sdk/client-sqs";
import { sqs } from "../../functions/foundation/platform/aws.ts";

export interface DeadLetterQueue {
  /** The queue whose messages end up in this one, and to which a redrive returns them. */
  source: { name: string; url: string };
  url: string;
}

export interface DeadLetter {
  /** ISO 8601. */
  sentAt: string;
  reason: string;
  body: string;
}

/** Long enough to read a whole queue before its first message is visible again, short enough for the next reader. */
const VISIBILITY_SECONDS = 30;
const MAX_LISTED = 1_000;

/** Lists the messages of a dead-letter queue, at most 1,000. They stay in it. */
export async function listDeadLetters({ url }: DeadLetterQueue): Promise<DeadLetter[]> {
  const seen = new Map<string, Message>();
  for await (const message of receiveAll(url, VISIBILITY_SECONDS)) {
    if (seen.has(message.MessageId ?? "") || seen.size >= MAX_LISTED) break;
    seen.set(message.MessageId ?? "", message);
  }
  await makeVisible(url, seen.values());
  return [...seen.values()].map(toDeadLetter);
}

/**
 * Returns all messages to their source queue. Each is deleted only after it was sent: a crash in between leaves it in both
 * queues, which is harmless because consumers are idempotent.
 * @returns the number of messages
 */
export async function redriveDeadLetters({ url, source }: DeadLetterQueue): Promise<number> {
  const startedAt = Date.now();
  let count = 0;
  const rejectedAgain = new Map<string, Message>();
  for await (const message of receiveAll(url, VISIBILITY_SECONDS)) {
    const { MessageId = "", Body, ReceiptHandle, Attributes } = message;
    // A message that was rejected again at once would be redriven forever. Older messages may still follow: the queue has
    // no order.
    if (Number(Attributes?.SentTimestamp) > startedAt) {
      if (rejectedAgain.has(MessageId)) break;
      rejectedAgain.set(MessageId, message);
      continue;
    }
    const group = Attributes?.MessageGroupId;
    const copy = { QueueUrl: source.url, MessageBody: Body, ...(group && { MessageGroupId: group }) };
    await sqs().send(new SendMessageCommand(copy));
    await sqs().send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle }));
    count += 1;
  }
  await makeVisible(url, rejectedAgain.values());
  return count;
}

/** Makes received messages visible again, so that the next reader finds them. One that is visible by now, or gone, is left as it is. */
export async function makeVisible(QueueUrl: string, messages: Iterable<Message>): Promise<void> {
  for (const { ReceiptHandle } of messages) {
    await sqs()
      .send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 1 }))
      .catch((error: Error) => {
        if (!/^(MessageNotInflight|ReceiptHandleIsInvalid|InvalidParameterValue)/.test(error.name)) throw error;
      });
  }
}

/** Receives the messages of a queue until none is visible. */
export async function* receiveAll(QueueUrl: string, VisibilityTimeout: number): AsyncGenerator<Message> {
  for (;;) {
    const { Messages = [] } = await sqs().send(
      new ReceiveMessageCommand({
        QueueUrl,
        VisibilityTimeout,
        MaxNumberOfMessages: 10,
        // Long polling queries all SQS servers. A short poll may return nothing although the queue has messages.
        WaitTimeSeconds: 1,
        MessageAttributeNames: ["All"],
        MessageSystemAttributeNames: ["All"],
      }),
    );
    if (Messages.length === 0) return;
    yield* Messages;
  }
}

function toDeadLetter({ Body = "", Attributes, MessageAttributes }: Message): DeadLetter {
  return {
    sentAt: new Date(Number(Attributes?.SentTimestamp ?? 0)).toISOString(),
    reason: MessageAttributes?.reason?.StringValue ?? "failed too many times; see the log of the function",
    body: Body,
  };
}
