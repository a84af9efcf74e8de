import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { endpoints } from "../../../functions/manifest/endpoints.ts";
import { METRICS_NAMESPACE, metrics } from "../../../functions/manifest/metrics.ts";
import { deadLetterName, type QueueRow, queues } from "../../../functions/manifest/queues.ts";
import { type TableRow, tables } from "../../../functions/manifest/tables.ts";
import { type WorkerRow, workers } from "../../../functions/manifest/workers.ts";
import { oldestHealthySeconds, rollbackAlarmsFor } from "../../../lib/observability/alarms.ts";
import { stageNamed } from "../../../lib/stages.ts";
import { dev, fileOf, type Json, only, type Resource, Synthesised } from "../synthesised.ts";

const isRollback = ({ Properties }: Resource) => Properties.AlarmName.includes("-rollback-");
const alarms = dev.all("AWS::CloudWatch::Alarm").filter((alarm) => !isRollback(alarm));
const nameOf = ({ Properties }: Resource): string => Properties.AlarmName;
const named = (id: string) => only(alarms.filter((alarm) => nameOf(alarm).replace(/^dev-(page|ticket)-/, "") === id));

/** What an alarm reads: its metric, or those in its expression. */
function metricsOf({ Properties }: { Properties: Json }): Json[] {
  if (Properties.Metrics === undefined) return [Properties];
  return Properties.Metrics.flatMap(({ Id, MetricStat }: Json) =>
    MetricStat ? [{ Id, ...MetricStat.Metric, Period: MetricStat.Period, Stat: MetricStat.Stat }] : [],
  );
}

const expressionOf = ({ Properties }: { Properties: Json }): string =>
  Properties.Metrics.find(({ Expression }: Json) => Expression !== undefined).Expression;

/**
 * Whether one period with these values is bad. Computes the expression as CloudWatch does: a metric without data counts as
 * 0. https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
 */
function isBad(alarm: { Properties: Json }, values: Record<string, number>): boolean {
  const code = expressionOf(alarm).replaceAll(" AND ", " && ").replaceAll(" OR ", " || ");
  const ids: string[] = metricsOf(alarm).map(({ Id }) => Id);
  for (const given of Object.keys(values)) expect(ids).toContain(given);
  const compute = new Function("IF", "SERVICE_QUOTA", ...ids, `return ${code}`);
  const value = compute(
    (condition: unknown, yes: number, no: number) => (condition ? yes : no),
    (usage: number) => usage,
    ...ids.map((id) => values[id] ?? 0),
  );
  expect(alarm.Properties.ComparisonOperator).toBe("GreaterThanOrEqualToThreshold");
  return value >= alarm.Properties.Threshold;
}

describe.each(alarms.map((alarm) => [nameOf(alarm), alarm] as const))("%s", (name, alarm) => {
  const { AlarmDescription, AlarmActions, OKActions, ActionsEnabled } = alarm.Properties;

  test("tells the topic when it begins and when it ends", () => {
    const topic = only(dev.all("AWS::SNS::Topic"));
    expect(AlarmActions).toEqual([{ Ref: topic.id }]);
    expect(OKActions).toEqual([{ Ref: topic.id }]);
    expect(ActionsEnabled).not.toBe(false);
  });

  test("says in its name where and how urgent, and in one sentence what it means and where help is", () => {
    expect(name).toMatch(/^dev-(page|ticket)-[a-z0-9-]+$/);
    expect(AlarmDescription).toMatch(/^[A-Z][^.]+\. What to do: docs\/runbook\.md#[a-z-]+$/);
  });

  test("reads ten metrics at most, all over the same time", () => {
    const read = metricsOf(alarm);
    expect(read.length).toBeGreaterThan(0);
    expect(read.length).toBeLessThanOrEqual(10);
    expect(new Set(read.map(({ Period }) => Period)).size).toBe(1);
  });

  test("computes with every metric that it reads and no other", () => {
    if (alarm.Properties.Metrics === undefined) return;
    const ids: string[] = metricsOf(alarm).map(({ Id }) => Id);
    const used = expressionOf(alarm).match(/\b[a-z]\w*/g) ?? [];
    expect(new Set(used)).toEqual(new Set(ids));
  });

  test("reads what the functions write, in its stage", () => {
    const rows: string[] = Object.values(metrics).map((row) => row.name);
    for (const { Namespace, MetricName, Dimensions } of metricsOf(alarm)) {
      if (Namespace !== METRICS_NAMESPACE) continue;
      expect(rows).toContain(MetricName);
      expect(Dimensions).toEqual([{ Name: "stage", Value: "dev" }]);
    }
  });
});

test("silence rings only where something has to happen all the time", () => {
  const breaching = alarms.filter(({ Properties }) => Properties.TreatMissingData === "breaching");
  expect(breaching.map(nameOf)).toEqual(["dev-page-sweep-not-running"]);
  for (const { Properties } of alarms) expect(Properties.TreatMissingData).toMatch(/^(notBreaching|breaching)$/);
});

test("the stages have the same alarms", () => {
  const prod = new Synthesised(stageNamed("prod")).all("AWS::CloudWatch::Alarm").filter((alarm) => !isRollback(alarm));
  expect(prod.map((alarm) => nameOf(alarm).replace(/^prod/, "dev"))).toEqual(alarms.map(nameOf));
});

describe("the topic", () => {
  const statements = only(dev.all("AWS::SNS::TopicPolicy")).Properties.PolicyDocument.Statement;

  test("takes alarms of this account, and nothing without TLS", () => {
    expect(statements).toMatchObject([
      { Effect: "Deny", Principal: "*", Condition: { Bool: { "aws:SecureTransport": "false" } } },
      {
        Effect: "Allow",
        Action: "sns:Publish",
        Principal: { Service: "cloudwatch.amazonaws.com" },
        Condition: { StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } } },
      },
    ]);
  });

  test("mails to the address of the stage, when it has one", () => {
    expect(dev.all("AWS::SNS::Subscription")).toEqual([]);
    const mailed = new Synthesised({ ...stageNamed("dev"), alarmEmail: "on-call@example.com" });
    expect(only(mailed.all("AWS::SNS::Subscription")).Properties).toMatchObject({
      Protocol: "email",
      Endpoint: "on-call@example.com",
      TopicArn: { Ref: only(mailed.all("AWS::SNS::Topic")).id },
    });
  });
});

describe.each(Object.entries<QueueRow>(queues))("the queue %s", (key, row) => {
  test("rings at the first dead letter", () => {
    const { Dimensions, ...alarm } = named(`${key}-dead-letters`).Properties;
    expect(dev.target(only<Json>(Dimensions).Value).id).toBe(dev.queue(`dev-${deadLetterName(row)}`).id);
    expect(alarm).toMatchObject({
      MetricName: "ApproximateNumberOfMessagesVisible",
      Statistic: "Maximum",
      Threshold: 1,
      EvaluationPeriods: 1,
    });
  });

  test("does not ring for the longest delay and three failures of a single message", () => {
    const { Dimensions, Threshold, MetricName } = named(`${key}-waiting`).Properties;
    const queue = dev.queue(`dev-${row.name}`);
    expect(dev.target(only<Json>(Dimensions).Value).id).toBe(queue.id);
    expect(MetricName).toBe("ApproximateAgeOfOldestMessage");
    const longestDelay = key === "deliveries" ? 900 : 0;
    expect(oldestHealthySeconds(key as keyof typeof queues)).toBe(
      longestDelay + 3 * queue.Properties.VisibilityTimeout,
    );
    expect(Threshold).toBeGreaterThan(longestDelay + 3 * queue.Properties.VisibilityTimeout);
  });

  test.each([
    ["a queue that is worked off", { Visible: 500, Received: 900, Done: 900 }, false],
    ["an idle queue", { Visible: 0, Received: 0, Done: 0 }, false],
    ["a queue that nobody reads", { Visible: 3, Received: 0, Done: 0 }, true],
    ["a consumer that fails on every message", { Visible: 0, Received: 40, Done: 0 }, true],
  ])("tells %s", (_, values, expected) => {
    const given = Object.entries(values).map(([name, value]) => [`${key}${name}`, value]);
    expect(isBad(named("queues-stuck"), Object.fromEntries(given))).toBe(expected);
  });
});

describe("a minute or five with these values", () => {
  test.each([
    ["api-errors", "one of two requests at night", { errors: 1, requests: 2 }, false],
    ["api-errors", "every request of a quiet night", { errors: 5, requests: 5 }, true],
    ["api-errors", "five of a busy day", { errors: 5, requests: 5_000 }, false],
    ["api-errors", "one in ten of a busy day", { errors: 500, requests: 5_000 }, true],
    ["api-slow", "one slow start at night", { requests: 3, latency: 9_000 }, false],
    ["api-slow", "a slow hundredth", { requests: 5_000, latency: 3_500 }, true],
    ["authorizer-errors", "JWTs fail and API keys do not", { errors: 30, calls: 100 }, true],
    ["authorizer-errors", "a single crash", { errors: 1, calls: 4 }, false],
    ["first-attempts-failing", "one tenant's only webhook at night", { attempts: 6, success: 0 }, false],
    ["first-attempts-failing", "the usual share of broken receivers", { attempts: 900, success: 0.92 }, false],
    ["first-attempts-failing", "receivers that refuse our signature", { attempts: 900, success: 0.4 }, true],
    ["first-attempts-late", "a single late one", { attempts: 1, lateness: 90_000 }, false],
    ["first-attempts-late", "half of many late", { attempts: 900, lateness: 45_000 }, true],
    ["concurrency-high", "half of the account's limit", { claimed: 500, running: 1_000 }, false],
    ["concurrency-high", "nine tenths of it", { claimed: 900, running: 1_000 }, true],
    ["delivery-errors", "one crash", { m0: 1 }, false],
    ["delivery-errors", "a crash a minute in two functions", { m0: 5, m2: 5 }, true],
    ["table-write-throttles", "a burst that the SDK makes good", { m3: 20, beat: 5 }, false],
    ["table-write-throttles", "nothing but the heartbeat", { beat: 5_000 }, false],
    ["table-write-throttles", "a hot partition", { m5: 4_000, beat: 5 }, true],
  ])("%s, %s", (id, _, values, expected) => {
    expect(isBad(named(id), values)).toBe(expected);
  });
});

describe("nothing is forgotten", () => {
  const filesOf = (id: string) =>
    alarms
      .filter((alarm) => nameOf(alarm).endsWith(id) || new RegExp(`${id}-\\d$`).test(nameOf(alarm)))
      .flatMap(metricsOf)
      .map(({ Dimensions }) => fileOf(dev.target(only<Json>(Dimensions).Value)));
  const workersBy = (...kinds: WorkerRow["trigger"]["kind"][]) =>
    workers.filter(({ trigger }) => kinds.includes(trigger.kind)).map(({ file }) => file);

  test("errors of every function count in exactly one alarm", () => {
    expect(filesOf("delivery-errors").sort()).toEqual(workersBy("queue", "everyMinutes").sort());
    const answering = [...endpoints.map(({ file }) => file), ...workersBy("invoke")];
    expect(filesOf("endpoint-errors").sort()).toEqual(answering.sort());
    expect(new Set(filesOf("authorizer-errors"))).toEqual(new Set(workersBy("authorizer")));
  });

  test("throttles of every worker count", () => {
    expect(filesOf("function-throttles").sort()).toEqual(workers.map(({ file }): string => file).sort());
  });

  test.each(["Read", "Write"])("%s throttles of every table and index count", (kind) => {
    const counted = metricsOf(named(`table-${kind.toLowerCase()}-throttles`))
      .filter(({ Namespace }) => Namespace === "AWS/DynamoDB")
      .map(({ MetricName, Dimensions }) => {
        const { TableName, GlobalSecondaryIndexName } = Object.fromEntries(
          Dimensions.map(({ Name, Value }: Json) => [Name, Value]),
        );
        return [MetricName, dev.target(TableName).Properties.TableName, GlobalSecondaryIndexName ?? ""].join(" ");
      });
    const expected = Object.values<TableRow>(tables).flatMap(({ name, indexes = [] }) =>
      ["", ...indexes.map((index) => index.name)].map((index) => `${kind}ThrottleEvents dev-${name} ${index}`),
    );
    expect(counted.sort()).toEqual(expected.sort());
  });

  test("an alarm on a table ends by itself: its expression always has data", () => {
    for (const kind of ["read", "write"]) {
      const beat = only(metricsOf(named(`table-${kind}-throttles`)).filter(({ Id }) => Id === "beat"));
      expect(fileOf(dev.target(only<Json>(beat.Dimensions).Value))).toBe("deliveries/sweep");
    }
  });
});

describe("the alarms of a gradual deployment", () => {
  const stack = new Stack(new App({ analyticsReporting: false }), "test");
  const created = ["auth/authorizer", "attempts/send"].map((file) => {
    const fn = new lambda.Function(stack, file.replace("/", ""), {
      code: lambda.Code.fromInline("//"),
      handler: "index.handler",
      runtime: lambda.Runtime.NODEJS_24_X,
    });
    return rollbackAlarmsFor(fn, { file, alias: fn.addAlias("live"), stage: { name: "test" } }).length;
  });
  const rollback: Json[] = Object.values(Template.fromStack(stack).findResources("AWS::CloudWatch::Alarm"));
  const of = (id: string) => only(rollback.filter(({ Properties }) => Properties.AlarmName === `test-rollback-${id}`));

  test("are those that were asked for, and name their section", () => {
    expect(created).toEqual([3, 2]);
    for (const { Properties } of rollback) expect(Properties.AlarmDescription).toContain("docs/runbook.md#rolled-back");
  });

  test("watch the alias, which counts the new version and the old", () => {
    const ofLambda = rollback.flatMap(metricsOf).filter(({ Namespace }) => Namespace === "AWS/Lambda");
    expect(ofLambda).toHaveLength(7);
    for (const { Dimensions } of ofLambda) {
      const { Resource } = Object.fromEntries(Dimensions.map(({ Name, Value }: Json) => [Name, Value]));
      expect(JSON.stringify(Resource)).toContain(":live");
    }
  });

  test("ring when messages fail, which is no Error to Lambda", () => {
    const { MetricName, Statistic, Threshold } = of("attempts-send-messages-failing").Properties;
    expect([MetricName, Statistic, Threshold]).toEqual(["MessagesFailed", "Sum", 3]);
  });

  test("ring within a minute, so that five minutes are enough", () => {
    for (const alarm of rollback) {
      expect(alarm.Properties.EvaluationPeriods).toBe(1);
      for (const { Period } of metricsOf(alarm)) expect(Period).toBe(60);
    }
  });

  test.each([
    ["attempts-send-errors", "a tenth of the calls that fails always", { errors: 10, calls: 100 }, true],
    ["auth-authorizer-errors", "two failures at night", { errors: 2, calls: 4 }, false],
    ["auth-authorizer-errors", "as many failures as there always are", { errors: 3, calls: 3_000 }, false],
    ["auth-authorizer-slow", "a tenth of the calls that takes seconds", { calls: 500, duration: 2_500 }, true],
    ["auth-authorizer-refusing", "a tenth of the calls that is refused", { refused: 60, calls: 500 }, true],
    ["auth-authorizer-refusing", "what is always refused", { refused: 20, calls: 500 }, false],
    ["auth-authorizer-refusing", "a handful of bad credentials at night", { refused: 9, calls: 9 }, false],
    ["auth-authorizer-slow", "one slow call at night", { calls: 3, duration: 2_500 }, false],
  ])("%s, %s", (id, _, values, expected) => {
    expect(isBad(of(id), values)).toBe(expected);
  });
});
