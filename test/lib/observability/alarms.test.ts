import { METRICS_NAMESPACE, metrics } from "../../../functions/foundation/manifest/metrics.ts";
import { type QueueRow, queues } from "../../../functions/foundation/manifest/queues.ts";
import { type Json, only, SynthesizedStack } from "../synthesized.ts";
import { isBad, isRollback, metricsOf, nameOf, summaryOf } from "./alarm-summary.ts";

const prod = new SynthesizedStack("prod");
const alarms = prod.all("AWS::CloudWatch::Alarm").filter((alarm) => !isRollback(alarm));
const named = (id: string) => only(alarms.filter((alarm) => nameOf(alarm).replace(/^prod-(page|ticket)-/, "") === id));

const errorsOf = (...ids: string[]) => ({
  expression: ids.map((_, index) => `m${index}`).join(" + "),
  ...Object.fromEntries(ids.map((id, index) => [`m${index}`, `Sum of Errors {FunctionName=${id}}`])),
});

/** Each alarm: the metrics it reads, and when it fires. */
const expected = {
  "page-events-dead-letters": {
    reads: "Maximum of ApproximateNumberOfMessagesVisible {QueueName=deployment-webhooks-prod-deployment-events-dlq}",
    fires: ">= 1, for 1 x 60 s",
  },
  "page-deliveries-dead-letters": {
    reads: {
      expression: "deliveries + slowDeliveries",
      deliveries: "Maximum of ApproximateNumberOfMessagesVisible {QueueName=deployment-webhooks-prod-deliveries-dlq}",
      slowDeliveries:
        "Maximum of ApproximateNumberOfMessagesVisible {QueueName=deployment-webhooks-prod-deliveries-slow-dlq}",
    },
    fires: ">= 1, for 1 x 60 s",
  },
  "page-events-waiting": {
    reads: "Maximum of ApproximateAgeOfOldestMessage {QueueName=deployment-webhooks-prod-deployment-events}",
    fires: ">= 600, for 3 x 60 s",
  },
  "page-deliveries-waiting": {
    reads: "Maximum of ApproximateAgeOfOldestMessageInQuietGroups {QueueName=deployment-webhooks-prod-deliveries}",
    fires: ">= 2040, for 3 x 60 s",
  },
  "page-messages-failing": {
    reads: "Maximum of FailedMessageAge {stage=prod}",
    fires: ">= 600, for 1 x 600 s",
  },
  "page-queues-stuck": {
    reads: {
      expression:
        "IF((eventsVisible + eventsReceived) > 0 AND (eventsDone + 0 * eventsVisible) < 1, 1, 0) + " +
        "IF((deliveriesVisible + deliveriesReceived) > 0 AND (deliveriesDone + 0 * deliveriesVisible) < 1, 1, 0) + " +
        "IF((slowDeliveriesVisible + slowDeliveriesReceived) > 0 AND " +
        "(slowDeliveriesDone + 0 * slowDeliveriesVisible) < 1, 1, 0)",
      ...Object.fromEntries(
        Object.entries<QueueRow>(queues).flatMap(([key, { name }]) => [
          [
            `${key}Visible`,
            `Maximum of ApproximateNumberOfMessagesVisible {QueueName=deployment-webhooks-prod-${name}}`,
          ],
          [`${key}Received`, `Sum of NumberOfMessagesReceived {QueueName=deployment-webhooks-prod-${name}}`],
          [`${key}Done`, `Sum of NumberOfMessagesDeleted {QueueName=deployment-webhooks-prod-${name}}`],
        ]),
      ),
    },
    fires: ">= 1, for 5 x 60 s",
  },
  "page-first-attempts-failing": {
    reads: {
      expression: "IF(attempts >= 50, 100 * (1 - success), 0)",
      attempts: "SampleCount of FirstAttemptSuccess {stage=prod}",
      success: "Average of FirstAttemptSuccess {stage=prod}",
    },
    fires: ">= 30, for 3 x 300 s",
  },
  "page-first-attempts-late": {
    reads: {
      expression: "IF(attempts >= 40, 100 - inTime, 0)",
      attempts: "SampleCount of EventToFirstAttempt {stage=prod}",
      inTime: "PR(:10000) of EventToFirstAttempt {stage=prod}",
    },
    fires: ">= 14.4, for 1 x 3600 s",
  },
  "page-sweep-not-running": {
    reads: "SampleCount of SweepLag {stage=prod}",
    fires: "< 1, for 5 x 60 s",
  },
  "ticket-notifications-late": {
    reads: "Maximum of NotificationLag {stage=prod}",
    fires: ">= 900, for 3 x 300 s",
  },
  "page-api-errors": {
    reads: {
      expression: "IF(all - invented >= 5, 100 * (all - invented) / requests, 0)",
      all: "Sum of ServerErrors {stage=prod}",
      invented: "Sum of RejectedCredentials {reason=key_not_looked_up, stage=prod}",
      requests: "SampleCount of Count {ApiName=test-prod, Stage=prod}",
    },
    fires: ">= 5, for 1 x 300 s",
  },
  "ticket-endpoint-errors": {
    reads: {
      expression: "all - invented",
      all: "Sum of ServerErrors {stage=prod}",
      invented: "Sum of RejectedCredentials {reason=key_not_looked_up, stage=prod}",
    },
    fires: ">= 3, for 1 x 300 s",
  },
  "ticket-rejected-credentials": {
    reads: "Sum of RejectedCredentials {stage=prod}",
    fires: ">= 1000, for 2 x 300 s",
  },
  "ticket-delivery-errors": {
    reads: errorsOf(
      "deliveries-fan-out",
      "attempts-send",
      "attempts-send-slow",
      "deliveries-sweep",
      "deliveries-publish-notifications",
    ),
    fires: ">= 5, for 2 x 300 s",
  },
  "ticket-invoked-function-errors": {
    reads: errorsOf(
      "credentials-verify",
      "credentials-revocations",
      "deliveries-replay",
      "projects-upsert-member",
      "projects-remove-member",
      "projects-sync-members",
      "projects-suspend",
      "api-keys-provision",
      "api-keys-revoke-all",
    ),
    fires: ">= 3, for 1 x 300 s",
  },
  "ticket-concurrency-high": {
    reads: {
      expression: "100 * claimed / SERVICE_QUOTA(running)",
      claimed: "Maximum of ClaimedAccountConcurrency {}",
      running: "Maximum of ConcurrentExecutions {}",
    },
    fires: ">= 80, for 1 x 300 s",
  },
};

test("a stage has exactly the expected alarms, of which ten page and six are tickets", () => {
  const found = alarms.map((alarm) => {
    const { reads, fires, missingData, section } = summaryOf(prod, alarm);
    const name = nameOf(alarm).replace(/^prod-/, "");
    expect([name, section]).toEqual([name, name.replace(/^(page|ticket)-/, "")]);
    // A function that does not run writes nothing.
    const isMissingDataBad = ["page-sweep-not-running", "ticket-notifications-late"].includes(name);
    expect([name, missingData]).toEqual([name, isMissingDataBad ? "breaching" : "notBreaching"]);
    return [name, { reads, fires }];
  });
  expect(Object.fromEntries(found)).toEqual(expected);
  const pages = Object.keys(expected).filter((name) => name.startsWith("page-"));
  expect([pages.length, found.length - pages.length]).toEqual([10, 6]);
});

test("a message that keeps failing is seen in every period of messages-failing", () => {
  const { Period, Threshold } = named("messages-failing").Properties;
  for (const { name } of Object.values<QueueRow>(queues)) {
    const { VisibilityTimeout } = prod.queue(`deployment-webhooks-prod-${name}`).Properties;
    expect(Period).toBeGreaterThan(VisibilityTimeout);
    // One repeat after a fault does not fire.
    expect(Threshold).toBeGreaterThan(VisibilityTimeout);
  }
});

test("a stage without alarms has none, no topic for them and no widget of them, and keeps those that roll a deployment back", () => {
  const silent = new SynthesizedStack("otherForms");
  expect(silent.all("AWS::CloudWatch::Alarm").filter((alarm) => !isRollback(alarm))).toEqual([]);
  expect(silent.all("AWS::CloudWatch::Alarm")).not.toEqual([]);
  expect(silent.all("AWS::SNS::Topic").map(({ Properties }) => Properties.TopicName)).toEqual([
    "deployment-webhooks-other-notifications",
  ]);
  expect(silent.outputs).not.toHaveProperty("AlarmTopicArn");
  expect(JSON.stringify(only(silent.all("AWS::CloudWatch::Dashboard")))).not.toContain("AlarmTopic");
  expect(JSON.stringify(only(silent.all("AWS::CloudWatch::Dashboard")))).not.toContain('\\"type\\":\\"alarm\\"');
});

test("all stages have the same alarms, unless they have none", () => {
  const names = (stack: SynthesizedStack, stage: string) =>
    stack
      .all("AWS::CloudWatch::Alarm")
      .filter((alarm) => !isRollback(alarm))
      .map((alarm) => nameOf(alarm).replace(new RegExp(`^${stage}-`), ""));
  expect(names(new SynthesizedStack("dev"), "dev")).toEqual(names(prod, "prod"));
});

/**
 * The metrics of AWS that alarms may read: namespace, name, dimensions. An alarm on one that AWS does not publish is
 * accepted, and never fires.
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-concurrency.html
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-metrics-and-dimensions.html
 */
const publishedByAws = [
  "AWS/ApiGateway Count ApiName Stage",
  "AWS/Lambda ClaimedAccountConcurrency",
  "AWS/Lambda ConcurrentExecutions",
  "AWS/Lambda Errors FunctionName",
  "AWS/SQS ApproximateAgeOfOldestMessage QueueName",
  "AWS/SQS ApproximateAgeOfOldestMessageInQuietGroups QueueName",
  "AWS/SQS ApproximateNumberOfMessagesVisible QueueName",
  "AWS/SQS NumberOfMessagesDeleted QueueName",
  "AWS/SQS NumberOfMessagesReceived QueueName",
];

/** Returns the topic of the alarms. That of the notifications has a name. */
const alarmTopicOf = (stack: SynthesizedStack) =>
  only(stack.all("AWS::SNS::Topic").filter(({ Properties }) => Properties.TopicName === undefined));

test.each(alarms.map((alarm) => [nameOf(alarm), alarm] as const))(
  "%s notifies the topic, says what to do, and reads at most ten metrics, which exist, in the same period",
  (name, alarm) => {
    const { AlarmDescription, AlarmActions, OKActions, ActionsEnabled } = alarm.Properties;
    const topic = [{ Ref: alarmTopicOf(prod).id }];
    expect([AlarmActions, OKActions, ActionsEnabled ?? true]).toEqual([topic, topic, true]);
    expect(name).toMatch(/^prod-(page|ticket)-[a-z0-9-]+$/);
    expect(AlarmDescription).toMatch(/^[A-Z][^.]+\. What to do: docs\/runbook\.md#[a-z-]+$/);
    const read = metricsOf(alarm);
    expect(read.length).toBeLessThanOrEqual(10);
    expect(new Set(read.map(({ Period }) => Period)).size).toBe(1);
    const names = [...Object.values(metrics).map((row) => row.name), "ServerErrors"];
    const written = [...names.map((own) => `${own} stage`), "RejectedCredentials reason stage"].map(
      (own) => `${METRICS_NAMESPACE} ${own}`,
    );
    for (const { Namespace, MetricName, Dimensions = [] } of read) {
      const dimensions = Dimensions.map(({ Name }: Json) => Name).sort();
      expect([...written, ...publishedByAws]).toContain([Namespace, MetricName, ...dimensions].join(" "));
    }
  },
);

describe("the topic", () => {
  const every = new SynthesizedStack("everyOption");

  test("accepts alarms of this account, and nothing without TLS", () => {
    const policies = prod.all("AWS::SNS::TopicPolicy").map(({ Properties }) => Properties);
    const { Statement } = only(
      policies.filter(({ Topics: [topic] }) => topic.Ref === alarmTopicOf(prod).id),
    ).PolicyDocument;
    expect(Statement).toMatchObject([
      { Effect: "Deny", Principal: "*", Condition: { Bool: { "aws:SecureTransport": "false" } } },
      {
        Effect: "Allow",
        Action: "sns:Publish",
        Principal: { Service: "cloudwatch.amazonaws.com" },
        Condition: { StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } } },
      },
    ]);
  });

  test("sends email to the address of the stage, if it has one", () => {
    expect(prod.all("AWS::SNS::Subscription")).toEqual([]);
    expect(only(every.all("AWS::SNS::Subscription")).Properties).toMatchObject({
      Protocol: "email",
      Endpoint: "ops@example.com",
      TopicArn: { Ref: alarmTopicOf(every).id },
    });
  });
});

test.each([
  ["events-waiting", "deployment-events", 0],
  ["deliveries-waiting", "deliveries", 900],
])("%s does not fire for the longest delay and three failures of a single message", (id, name, maxDelaySeconds) => {
  const { VisibilityTimeout } = prod.queue(`deployment-webhooks-prod-${name}`).Properties;
  expect(named(id).Properties.Threshold).toBeGreaterThan(maxDelaySeconds + 3 * VisibilityTimeout);
});

describe.each(Object.entries<QueueRow>(queues))("the queue %s", (key) => {
  test.each([
    ["is not stuck while messages are completed", { Visible: 500, Received: 900, Done: 900 }, false],
    ["is not stuck while it is empty", { Visible: 0, Received: 0, Done: 0 }, false],
    ["is stuck when no consumer reads it", { Visible: 3, Received: 0, Done: 0 }, true],
    ["is stuck when the consumer fails on every message", { Visible: 0, Received: 40, Done: 0 }, true],
    ["is stuck when nothing is completed, and that is reported as no data", { Visible: 3, Received: 40 }, true],
    ["is stuck when no consumer reads it, and that is reported as no data", { Visible: 3 }, true],
    ["is not stuck when it has no data at all", {}, false],
  ])("%s", (_, values, isStuck) => {
    const given = Object.entries(values).map(([name, value]) => [`${key}${name}`, value]);
    expect(isBad(prod, named("queues-stuck"), Object.fromEntries(given))).toBe(isStuck);
  });
});

/**
 * The quota of concurrent executions, by the usage metric that Service Quotas names for it: `aws service-quotas
 * get-service-quota --service-code lambda --quota-code L-B99A9384 --query Quota.UsageMetric`. SERVICE_QUOTA has no value
 * for any other metric of Lambda.
 */
const lambdaQuota = (limit: number) => ({ "AWS/Lambda ConcurrentExecutions {}": limit });

test("concurrency-high compares with the quota of a new account too", () => {
  const values = { claimed: 9, running: 9 };
  expect(isBad(prod, named("concurrency-high"), values, lambdaQuota(10))).toBe(true);
  expect(isBad(prod, named("concurrency-high"), values, lambdaQuota(1_000))).toBe(false);
});

describe("a period with these values", () => {
  test.each([
    ["api-errors", "one error in two requests at night", { all: 1, requests: 2 }, "good"],
    ["api-errors", "every request of a quiet night fails", { all: 5, requests: 5 }, "bad"],
    ["api-errors", "five errors of a busy day", { all: 5, requests: 5_000 }, "good"],
    ["api-errors", "one error in ten requests of a busy day", { all: 500, requests: 5_000 }, "bad"],
    ["api-errors", "a stranger invents keys", { all: 9_000, invented: 9_000, requests: 9_100 }, "good"],
    ["api-errors", "the API fails while one does", { all: 10_000, invented: 9_000, requests: 10_000 }, "bad"],
    ["endpoint-errors", "a stranger invents keys", { all: 9_002, invented: 9_000 }, "good"],
    ["endpoint-errors", "an endpoint fails three times", { all: 3 }, "bad"],
    ["api-errors", "no request fails, so that none is counted", { requests: 5_000 }, "good"],
    ["first-attempts-failing", "the only webhook of a tenant fails at night", { attempts: 6, success: 0 }, "good"],
    ["first-attempts-failing", "the usual share of broken receivers", { attempts: 900, success: 0.92 }, "good"],
    ["first-attempts-failing", "receivers reject our signature", { attempts: 900, success: 0.4 }, "bad"],
    ["first-attempts-late", "a single late attempt at night", { attempts: 1, inTime: 0 }, "good"],
    ["first-attempts-late", "the objective is just met", { attempts: 9_000, inTime: 99 }, "good"],
    ["first-attempts-late", "a twentieth is late for an hour", { attempts: 9_000, inTime: 95 }, "good"],
    ["first-attempts-late", "a fifth is late for an hour", { attempts: 9_000, inTime: 80 }, "bad"],
    ["first-attempts-late", "all are late for ten minutes", { attempts: 9_000, inTime: 83 }, "bad"],
    ["concurrency-high", "half of the account's limit", { claimed: 500, running: 400 }, "good"],
    ["concurrency-high", "nine tenths of the account's limit", { claimed: 900, running: 600 }, "bad"],
    ["concurrency-high", "the account is idle", {}, "good"],
    ["deliveries-dead-letters", "no message in either queue", { deliveries: 0, slowDeliveries: 0 }, "good"],
    ["deliveries-dead-letters", "one message in the queue of slow webhooks", { slowDeliveries: 1 }, "bad"],
    ["delivery-errors", "one crash", { m0: 1 }, "good"],
    ["delivery-errors", "a crash per minute in two functions", { m0: 5, m2: 5 }, "bad"],
  ])("%s, %s", (id, _, values, verdict) => {
    expect(isBad(prod, named(id), values, lambdaQuota(1_000)) ? "bad" : "good").toBe(verdict);
  });
});
