/**
 * The SQS queues, one row each. Every queue has a dead letter queue of the same name with `-dlq` behind it. Data only.
 * Limits: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */
export interface QueueRow {
  /** Environment variable that holds the queue's URL. */
  env: string;
  /** Environment variable that holds the URL of its dead letter queue. */
  deadLetterEnv: string;
  name: string;
  /** How long a received message stays hidden: at least six times the timeout of the function that consumes it. */
  visibilitySeconds: number;
  /** After so many receives a message moves to the dead letter queue: our own faults only. */
  maxReceives: number;
  maxMessageBytes: number;
}

const FOURTEEN_DAYS = 14 * 24 * 3600;

export const queues = {
  /** Written by the deployment pipeline. The message is the event itself. It must fit into a delivery row of 400 KB. */
  events: {
    env: "EVENTS_QUEUE_URL",
    deadLetterEnv: "EVENTS_DLQ_URL",
    name: "deployment-events",
    visibilitySeconds: 180,
    maxReceives: 5,
    maxMessageBytes: 256 * 1024,
  },
  /** Written by fan-out, send and sweep. The message names a delivery row and the attempt that is due. */
  deliveries: {
    env: "DELIVERIES_QUEUE_URL",
    deadLetterEnv: "DELIVERIES_DLQ_URL",
    name: "deliveries",
    visibilitySeconds: 180,
    maxReceives: 5,
    maxMessageBytes: 256 * 1024,
  },
} as const satisfies Record<string, QueueRow>;

export type QueueKey = keyof typeof queues;

/** Queues and dead letter queues keep a message as long as SQS allows. */
export const retentionSeconds = FOURTEEN_DAYS;
/** A rejected event travels to the dead letter queue with its reason, so that queue takes larger messages. */
export const deadLetterMaxMessageBytes = 1024 * 1024;

export const deadLetterName = (queue: QueueRow): string => `${queue.name}-dlq`;
