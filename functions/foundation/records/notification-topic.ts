import { PublishCommand } from "@aws-sdk/client-sns";
import { sns } from "../platform/aws.ts";
import { topicArn } from "../platform/env.ts";

/** A message of the topic. Part of the API. */
export interface NotificationMessage {
  /** Subscribers recognize a repetition by it. */
  id: string;
  type: string;
  /** null = it is about the key of a person. */
  project_id: string | null;
  timestamp: string;
  data: object;
}

/**
 * Publishes a message to the topic of the stage. The subject is for mail: it is short and plain ASCII, as SNS requires.
 * https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
 */
export async function publish(message: NotificationMessage): Promise<void> {
  const { type, project_id } = message;
  const attribute = (StringValue: string) => ({ DataType: "String", StringValue });
  await sns().send(
    new PublishCommand({
      TopicArn: topicArn("notifications"),
      Subject: `${type}${project_id === null ? "" : ` in project ${project_id}`}`,
      Message: JSON.stringify(message),
      MessageAttributes: {
        type: attribute(type),
        ...(project_id !== null && { project_id: attribute(project_id) }),
      },
    }),
  );
}
