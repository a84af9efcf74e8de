import { deadLetterName, type QueueRow, queues } from "../../functions/manifest/queues.ts";
import { type WorkerRow, workers } from "../../functions/manifest/workers.ts";
import { dev, type Json, only } from "./synthesised.ts";

const rows = Object.entries<QueueRow>(queues);
const FOURTEEN_DAYS = 1_209_600;

describe.each(rows)("%s", (key, row) => {
  const queue = dev.queue(`dev-${row.name}`);
  const deadLetters = dev.queue(`dev-${deadLetterName(row)}`);

  test("hands a message over to its dead letter queue after the row's number of receives", () => {
    const { deadLetterTargetArn, maxReceiveCount } = queue.Properties.RedrivePolicy;
    expect(dev.target(deadLetterTargetArn).id).toBe(deadLetters.id);
    expect(maxReceiveCount).toBe(row.maxReceives);
  });

  test("hides a message for six runs of the function that consumes it", () => {
    const consumer = only(
      workers.filter(({ trigger }: WorkerRow) => trigger.kind === "queue" && trigger.queue === key),
    );
    const { Timeout } = dev.functionFor(consumer.file).Properties;
    expect(queue.Properties.VisibilityTimeout).toBeGreaterThanOrEqual(6 * Timeout);
  });

  test("keeps what it holds for 14 days, encrypted, and so does its dead letter queue", () => {
    for (const { Properties } of [queue, deadLetters]) {
      expect(Properties.MessageRetentionPeriod).toBe(FOURTEEN_DAYS);
      expect(Properties.SqsManagedSseEnabled).toBe(true);
    }
  });

  test("refuses connections without TLS, and so does its dead letter queue", () => {
    for (const { id } of [queue, deadLetters]) {
      const policies = dev
        .all("AWS::SQS::QueuePolicy")
        .filter(({ Properties }) => Properties.Queues.some((reference: Json) => reference.Ref === id));
      expect(only(policies).Properties.PolicyDocument.Statement).toMatchObject([
        { Effect: "Deny", Action: "sqs:*", Condition: { Bool: { "aws:SecureTransport": "false" } } },
      ]);
    }
  });

  test("has room in its dead letter queue for a message and the reason of its rejection", () => {
    expect(queue.Properties.MaximumMessageSize).toBe(row.maxMessageBytes);
    expect(deadLetters.Properties.MaximumMessageSize).toBeGreaterThan(row.maxMessageBytes);
  });
});
