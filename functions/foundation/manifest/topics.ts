/** An SNS topic to which the functions publish, and to which the platform subscribes. Data only. */
export interface TopicRow {
  /** Environment variable that holds the topic's ARN. */
  env: string;
  /** Name of the topic. A deployment adds the stage as a prefix. */
  name: string;
}

export const topics = {
  /** Notifications for owners of webhooks and keys. The platform sends mail from it. */
  notifications: { env: "NOTIFICATIONS_TOPIC_ARN", name: "notifications" },
} as const satisfies Record<string, TopicRow>;

export type TopicKey = keyof typeof topics;
