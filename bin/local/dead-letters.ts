import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
} from "@aws-sdk/client-sqs";
import { sqs } from "../../functions/platform/aws.ts";

export interface DeadLetterQueue {
  /** The queue that the messages came from. */
  source: { name: string; url: string };
  url: string;
}

export interface DeadLetter {
  sentAt: string;
  reason: string;
  body: string;
}

/** Long enough to see all of a queue before the first message comes back, short enough not to be in anybody's way. */
const LOOK_SECONDS = 30;
const MAX_SHOWN = 1_000;

/** The messages of a dead letter queue, which stay in it. */
export async function listDeadLetters({ url }: DeadLetterQueue): Promise<DeadLetter[]> {
  const seen = new Map<string, Message>();
  for await (const message of receiveAll(url, LOOK_SECONDS)) {
    if (seen.has(message.MessageId ?? "") || seen.size >= MAX_SHOWN) break;
    seen.set(message.MessageId ?? "", message);
  }
  await showAgain(url, seen.values());
  return [...seen.values()].map(toDeadLetter);
}

/**
 * Puts all messages back into the queue they came from. Each is deleted only after it was sent: a crash in between leaves
 * it in both, which does no harm.
 * @returns how many
 */
export async function redriveDeadLetters({ url, source }: DeadLetterQueue): Promise<number> {
  const startedAt = Date.now();
  let count = 0;
  const refusedAgain = new Map<string, Message>();
  for await (const message of receiveAll(url, LOOK_SECONDS)) {
    const { MessageId = "", Body, ReceiptHandle, Attributes } = message;
    // What is refused again at once would go round for ever. Older messages may lie behind it: the queue has no order.
    if (Number(Attributes?.SentTimestamp) > startedAt) {
      if (refusedAgain.has(MessageId)) break;
      refusedAgain.set(MessageId, message);
      continue;
    }
    const group = Attributes?.MessageGroupId;
    const copy = { QueueUrl: source.url, MessageBody: Body, ...(group && { MessageGroupId: group }) };
    await sqs().send(new SendMessageCommand(copy));
    await sqs().send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle }));
    count += 1;
  }
  await showAgain(url, refusedAgain.values());
  return count;
}

/** Ends the hiding of messages that were looked at: the next look should find them. */
async function showAgain(QueueUrl: string, messages: Iterable<Message>): Promise<void> {
  for (const { ReceiptHandle } of messages) {
    await sqs().send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 1 }));
  }
}

async function* receiveAll(QueueUrl: string, VisibilityTimeout: number): AsyncGenerator<Message> {
  for (;;) {
    const { Messages = [] } = await sqs().send(
      new ReceiveMessageCommand({
        QueueUrl,
        VisibilityTimeout,
        MaxNumberOfMessages: 10,
        // Asks all of SQS's servers. Without it an answer may be empty although the queue is not.
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
    reason: MessageAttributes?.reason?.StringValue ?? "failed too many times; the function's log says why",
    body: Body,
  };
}
