import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { sqs } from "../platform/aws.ts";
import { deadLetterUrl } from "../platform/env.ts";

/**
 * Puts a message that can never become an event into the dead letter queue, as it came, with the reason in the message
 * attribute `reason`.
 */
export async function reject(message: string, reason: string): Promise<void> {
  await sqs().send(
    new SendMessageCommand({
      QueueUrl: deadLetterUrl("events"),
      MessageBody: message,
      MessageAttributes: { reason: { DataType: "String", StringValue: reason } },
    }),
  );
}
