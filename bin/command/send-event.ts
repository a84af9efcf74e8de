import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { sqs } from "../../functions/foundation/platform/aws.ts";
import { messageBody } from "../../functions/foundation/platform/message-body.ts";

/** Sends a deployment event to the events queue, as the pipeline does. */
export async function sendEvent(QueueUrl: string, event: { project_id: string }): Promise<void> {
  // Fair queues: the events of one busy project do not hold up the others.
  // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
  const MessageGroupId = event.project_id;
  await sqs().send(new SendMessageCommand({ QueueUrl, MessageBody: messageBody(event), MessageGroupId }));
}
