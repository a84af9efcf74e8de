import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { sqs } from "../platform/aws.ts";
import { deadLetterUrl } from "../platform/env.ts";

/**
 * Copies an invalid message of the events queue to the dead-letter queue, because no retry can succeed. The caller
 * then lets Lambda delete the message from the events queue.
 * @param message body of the message, stored unchanged
 * @param reason stored in the message attribute `reason`
 */
export async function moveToDeadLetterQueue(message: string, reason: string): Promise<void> {
  await sqs().send(
    new SendMessageCommand({
      QueueUrl: deadLetterUrl("events"),
      MessageBody: message,
      MessageAttributes: { reason: { DataType: "String", StringValue: reason } },
    }),
  );
}
