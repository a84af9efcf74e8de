/**
 * A CloudWatch metric that the functions write in the embedded metric format, and that the dashboard and the alarms of
 * the stack read. Data only. CloudWatch bills each combination of stage and dimension value as a metric of its own, so
 * a dimension must have few values and must never be an id.
 */
export interface MetricRow {
  name: string;
  unit: "Count" | "Milliseconds" | "Seconds";
  /** Dimensions beside the stage. The metric is written without them, and with each of them alone. */
  dimensions?: readonly string[];
}

/** Reason of a rejected credential: strangers invent more keys of an issuer than are looked up. */
export const KEY_NOT_LOOKED_UP = "key_not_looked_up";

export const METRICS_NAMESPACE = "DeploymentWebhooks";

export const metrics = {
  /** Delivery attempts. The outcome is `succeeded` or the error code of the attempt. */
  attempts: { name: "Attempts", unit: "Count", dimensions: ["outcome"] },
  /**
   * 1 for a first attempt that succeeded, 0 for one that failed: the average is the success rate. Only scheduled first
   * attempts count. Test deliveries, redeliveries, recoveries, and deliveries that waited because the receiver was down
   * or busy do not count.
   */
  firstAttemptSuccess: { name: "FirstAttemptSuccess", unit: "Count" },
  /** Time from the event's arrival on our queue to the first attempt, for the attempts of `firstAttemptSuccess`. */
  eventToFirstAttempt: { name: "EventToFirstAttempt", unit: "Milliseconds" },
  /**
   * Time from the event's arrival on our queue to the end of the successful attempt, including retries and the
   * receiver's own time. Redelivered deliveries do not count, because a user chose their time.
   */
  deliveryLatency: { name: "DeliveryLatency", unit: "Milliseconds" },
  /** Scheduled attempts after the first one. */
  retries: { name: "Retries", unit: "Count" },
  /** Deliveries whose last attempt failed. Test deliveries do not count. */
  exhausted: { name: "Exhausted", unit: "Count" },
  /** Webhooks disabled because they kept failing or because the receiver responded with 410. */
  webhooksDisabled: { name: "WebhooksDisabled", unit: "Count" },
  /** Attempts blocked because the host resolved to an address that is not public. */
  blockedAddresses: { name: "BlockedAddresses", unit: "Count" },
  /**
   * Rejected credentials. The reason is the error code, or that the key of a JWT was not looked up, which is a 503. The version is that of the authorizer: a gradual deployment compares
   * its versions. API Gateway itself rejects requests without a credential.
   */
  rejectedCredentials: { name: "RejectedCredentials", unit: "Count", dimensions: ["reason", "version"] },
  /** Queue messages that failed because of an internal error. Each retry that fails counts again. */
  messagesFailed: { name: "MessagesFailed", unit: "Count" },
  /**
   * For how long a queue message has been failing because of an internal error: from its first receive to its latest
   * failure. The age that SQS reports leaves out messages that were received three times, and includes their delay.
   */
  failedMessageAge: { name: "FailedMessageAge", unit: "Seconds" },
  /** Messages that are not valid events and were moved to the dead-letter queue. */
  rejectedEvents: { name: "RejectedEvents", unit: "Count" },
  /**
   * By how much the longest overdue row was late when the sweep read it, 0 when no row was due. Every run without an
   * error emits it, so that missing data means that no run succeeded.
   */
  sweepLag: { name: "SweepLag", unit: "Seconds" },
  /**
   * By how much the longest overdue notification was late when it was read, 0 when none was due. Every run without an
   * error of a read emits it, so that missing data means that no run succeeded.
   */
  notificationLag: { name: "NotificationLag", unit: "Seconds" },
  /** Rows that the sweep enqueued: retries beyond the maximum delay of SQS, and rows whose message was lost. */
  redriven: { name: "Redriven", unit: "Count" },
} as const satisfies Record<string, MetricRow>;

export type MetricKey = keyof typeof metrics;
