/**
 * What the functions count and time, one row each: they write these as CloudWatch metrics (embedded metric format), the
 * dashboard and the alarms of the stack read them. Data only. A metric exists once per stage, and once per value of its
 * own dimension: each of those costs money, so a dimension has a handful of values and is never an id.
 */
export interface MetricRow {
  name: string;
  unit: "Count" | "Milliseconds" | "Seconds";
  /** A second dimension, beside the stage. The metric is written with and without it. */
  dimension?: string;
}

export const METRICS_NAMESPACE = "DeploymentWebhooks";

export const metrics = {
  /** Every attempt; its outcome is `succeeded` or the attempt's error code. */
  attempts: { name: "Attempts", unit: "Count", dimension: "outcome" },
  /**
   * 1 for a first attempt that succeeded and 0 for one that did not: the average is the rate. First is what the schedule
   * sends first: no sample, no redelivery, no recovery, and nothing that has waited for a receiver that was down or busy.
   */
  firstAttemptSuccess: { name: "FirstAttemptSuccess", unit: "Count" },
  /** From the event's arrival on our queue to the dial of its first attempt (as above): the part that is ours. */
  eventToFirstAttempt: { name: "EventToFirstAttempt", unit: "Milliseconds" },
  /**
   * From the event's arrival on our queue to the end of the attempt that succeeded, retries and the receiver's own time
   * included. Not of a delivery that somebody has sent once more, whose time is theirs.
   */
  deliveryLatency: { name: "DeliveryLatency", unit: "Milliseconds" },
  /** Attempts that the schedule made after the first. */
  retries: { name: "Retries", unit: "Count" },
  /** Deliveries that failed for good: their last attempt failed. Samples do not count. */
  exhausted: { name: "Exhausted", unit: "Count" },
  /** Webhooks that were disabled because they keep failing or answered 410. */
  webhooksDisabled: { name: "WebhooksDisabled", unit: "Count" },
  /** Attempts whose host led to an address that is not public. */
  blockedAddresses: { name: "BlockedAddresses", unit: "Count" },
  /** Requests whose credential was refused; the reason is the error code. Without any, API Gateway refuses on its own. */
  rejectedCredentials: { name: "RejectedCredentials", unit: "Count", dimension: "reason" },
  /** Messages that a fault of ours kept from being done. They come back, and are counted each time. */
  messagesFailed: { name: "MessagesFailed", unit: "Count" },
  /** Events that were no events and went to the dead letter queue. */
  rejectedEvents: { name: "RejectedEvents", unit: "Count" },
  /**
   * How long the row that was due first has been waiting when the sweep comes to it. Every run writes it, 0 when nothing was
   * due: a minute without a value is one in which no sweep has run to its end.
   */
  sweepLag: { name: "SweepLag", unit: "Seconds" },
  /** Rows that the sweep handed over: retries that were too far away for the queue, and messages that were lost. */
  redriven: { name: "Redriven", unit: "Count" },
} as const satisfies Record<string, MetricRow>;

export type MetricKey = keyof typeof metrics;
