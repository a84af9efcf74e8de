import { deadLetterName, type QueueRow, queues } from "../../functions/foundation/manifest/queues.ts";
import { dev, type Json, type Resource, SynthesizedStack } from "./synthesized.ts";

const every = new SynthesizedStack("everyOption");

interface Expected {
  maxReceives: number;
  visibilitySeconds: number;
  maxMessageBytes: number;
  /** File of the function that consumes the queue. */
  consumer: string;
}

const expected: Record<string, Expected> = {
  events: { maxReceives: 100, visibilitySeconds: 180, maxMessageBytes: 262_144, consumer: "deliveries-fan-out" },
  deliveries: { maxReceives: 100, visibilitySeconds: 360, maxMessageBytes: 262_144, consumer: "attempts-send" },
  slowDeliveries: {
    maxReceives: 100,
    visibilitySeconds: 360,
    maxMessageBytes: 262_144,
    consumer: "attempts-send-slow",
  },
};
const FOURTEEN_DAYS = 1_209_600;
const ONE_MEBIBYTE = 1_048_576;

test("the expected values cover every queue", () => {
  expect(Object.keys(expected).sort()).toEqual(Object.keys(queues).sort());
});

describe.each(Object.entries<QueueRow>(queues))("%s", (key, row) => {
  const { maxReceives, visibilitySeconds, maxMessageBytes, consumer } = expected[key] as Expected;
  const queue = dev.queue(`deployment-webhooks-dev-${row.name}`);
  const deadLetters = dev.queue(`deployment-webhooks-dev-${deadLetterName(row)}`);

  test("moves a message to its dead-letter queue after a hundred receives", () => {
    const { deadLetterTargetArn, maxReceiveCount } = queue.Properties.RedrivePolicy;
    expect(dev.target(deadLetterTargetArn).id).toBe(deadLetters.id);
    expect(maxReceiveCount).toBe(maxReceives);
  });

  test("keeps a message that fails for hours before it becomes a dead letter: an outage makes none", () => {
    const { maxReceiveCount } = queue.Properties.RedrivePolicy;
    expect(maxReceiveCount * queue.Properties.VisibilityTimeout).toBeGreaterThanOrEqual(5 * 3_600);
  });

  // https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
  test("hides a received message for at least six timeouts of its consumer", () => {
    const { Timeout } = dev.functionFor(consumer).Properties;
    expect(queue.Properties.VisibilityTimeout).toBe(visibilitySeconds);
    expect(queue.Properties.VisibilityTimeout).toBeGreaterThanOrEqual(6 * Timeout);
  });

  test("and its dead-letter queue keep messages for 14 days, encrypted", () => {
    for (const { Properties } of [queue, deadLetters]) {
      expect(Properties.MessageRetentionPeriod).toBe(FOURTEEN_DAYS);
      expect(Properties.SqsManagedSseEnabled).toBe(true);
    }
  });

  test("has a dead-letter queue for larger messages, which include the reason of a rejection", () => {
    expect(queue.Properties.MaximumMessageSize).toBe(maxMessageBytes);
    expect(deadLetters.Properties.MaximumMessageSize).toBe(ONE_MEBIBYTE);
  });
});

test("with a customer managed key SQS reuses data keys for an hour", () => {
  for (const { Properties } of every.all("AWS::SQS::Queue")) {
    expect(Properties.KmsDataKeyReusePeriodSeconds).toBe(3_600);
  }
});

describe("event producers", () => {
  test("are not allowed by default: no queue policy has an Allow statement", () => {
    expect(Object.values(grantsByQueue(dev)).flat()).toEqual([]);
  });

  test("may send to the events queue, and to no other", () => {
    const { "deployment-webhooks-every-deployment-events": events = [], ...others } = grantsByQueue(every);
    expect(Object.values(others).flat()).toEqual([]);
    const allowed = events.map(({ Action, Principal, Condition }) => [
      Action,
      ...Object.values(Principal),
      Condition?.ArnEquals,
    ]);
    expect(allowed).toEqual([
      ["sqs:SendMessage", ["arn:aws:iam::444455556666:role/deployments", "arn:aws:iam::777788889999:root"], undefined],
      [
        "sqs:SendMessage",
        "events.amazonaws.com",
        { "aws:SourceArn": "arn:aws:events:eu-west-1:111122223333:rule/deployments" },
      ],
      ["sqs:SendMessage", "sns.amazonaws.com", { "aws:SourceArn": "arn:aws:sns:eu-west-1:111122223333:deployments" }],
    ]);
  });

  function grantsByQueue(stack: SynthesizedStack): Record<string, Json[]> {
    const statementsOf = ({ Properties }: Resource) => Properties.PolicyDocument.Statement;
    const entries = stack
      .all("AWS::SQS::QueuePolicy")
      .map((policy) => [
        stack.target(policy.Properties.Queues[0]).Properties.QueueName,
        statementsOf(policy).filter(({ Effect }: Json) => Effect === "Allow"),
      ]);
    return Object.fromEntries(entries);
  }
});
