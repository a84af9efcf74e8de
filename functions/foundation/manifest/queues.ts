/**
 * An SQS queue. Every queue has a dead-letter queue with the same name and the suffix `-dlq`. Data only.
 * Limits: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */
export interface QueueRow {
  /** Environment variable that holds the queue's URL. */
  env: string;
  /** Environment variable that holds the URL of the dead-letter queue. */
  deadLetterEnv: string;
  name: string;
  /**
   * Visibility timeout of a received message: at least six times the timeout of the function that consumes it.
   * https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
   */
  visibilitySeconds: number;
  /** Receives after which a message moves to the dead-letter queue. Only internal errors lead to a second receive. */
  maxReceives: number;
  maxMessageBytes: number;
}

const FOURTEEN_DAYS = 14 * 24 * 3600;

/**
 * Five hours of failures or more. Messages that are not valid are rejected at once, so a low limit would only turn an
 * outage of DynamoDB into dead letters.
 */
const MAX_RECEIVES = 100;

export const queues = {
  /** Sent by the deployment pipeline. A message is the event itself. It must fit into a DynamoDB item of 400 KB. */
  events: {
    env: "EVENTS_QUEUE_URL",
    deadLetterEnv: "EVENTS_DLQ_URL",
    name: "deployment-events",
    visibilitySeconds: 180,
    maxReceives: MAX_RECEIVES,
    maxMessageBytes: 256 * 1024,
  },
  /** Sent by fan-out. A message carries a delivery that has no row yet, with its first attempt (deliveries/line/delivery-queue.ts). */
  deliveries: {
    env: "DELIVERIES_QUEUE_URL",
    deadLetterEnv: "DELIVERIES_DLQ_URL",
    name: "deliveries",
    visibilitySeconds: 360,
    maxReceives: MAX_RECEIVES,
    maxMessageBytes: 256 * 1024,
  },
  /**
   * Calls of the workers of webhooks, in whose backlog all other deliveries wait, outcomes to be recorded and certifications. A
   * queue and senders of its own, so that they do not occupy the senders of first attempts.
   */
  slowDeliveries: {
    env: "SLOW_DELIVERIES_QUEUE_URL",
    deadLetterEnv: "SLOW_DELIVERIES_DLQ_URL",
    name: "deliveries-slow",
    visibilitySeconds: 360,
    maxReceives: MAX_RECEIVES,
    maxMessageBytes: 256 * 1024,
  },
} as const satisfies Record<string, QueueRow>;

export type QueueKey = keyof typeof queues;

/** Retention of all queues and dead-letter queues: the maximum of SQS. */
export const retentionSeconds = FOURTEEN_DAYS;
/** Larger than `maxMessageBytes`, because a rejected event is stored together with the reason. */
export const deadLetterMaxMessageBytes = 1024 * 1024;

export const deadLetterName = (queue: QueueRow): string => `${queue.name}-dlq`;
