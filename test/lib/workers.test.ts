import { functionRows } from "../../functions/foundation/manifest/function-rows.ts";
import { workerRows } from "../../functions/foundation/manifest/workers.ts";
import { dev, idOf, only, SynthesizedStack } from "./synthesized.ts";

const rows = workerRows;
const mappings = dev.all("AWS::Lambda::EventSourceMapping");

interface Expected {
  timeoutSeconds: number;
  memoryMb: number;
  /** Queue it consumes, with the size of a batch and the maximum number of concurrent batches. */
  consumes?: [queue: string, batchSize: number, maxConcurrency: number];
  schedule?: string;
}

const expected: Record<string, Expected> = {
  "auth-authorizer": { timeoutSeconds: 10, memoryMb: 512 },
  "credentials-verify": { timeoutSeconds: 10, memoryMb: 512 },
  "credentials-revocations": { timeoutSeconds: 10, memoryMb: 256 },
  "deliveries-fan-out": {
    timeoutSeconds: 30,
    memoryMb: 512,
    consumes: ["deployment-webhooks-dev-deployment-events", 10, 50],
  },
  "attempts-send": { timeoutSeconds: 60, memoryMb: 256, consumes: ["deployment-webhooks-dev-deliveries", 10, 300] },
  "attempts-send-slow": {
    timeoutSeconds: 60,
    memoryMb: 256,
    consumes: ["deployment-webhooks-dev-deliveries-slow", 10, 100],
  },
  "deliveries-sweep": { timeoutSeconds: 55, memoryMb: 512, schedule: "rate(1 minute)" },
  "deliveries-publish-notifications": { timeoutSeconds: 55, memoryMb: 256, schedule: "rate(1 minute)" },
  "deliveries-replay": { timeoutSeconds: 55, memoryMb: 512 },
  "projects-upsert-member": { timeoutSeconds: 10, memoryMb: 256 },
  "projects-remove-member": { timeoutSeconds: 10, memoryMb: 256 },
  "projects-sync-members": { timeoutSeconds: 55, memoryMb: 512 },
  "projects-suspend": { timeoutSeconds: 30, memoryMb: 256 },
  "api-keys-provision": { timeoutSeconds: 10, memoryMb: 256 },
  "api-keys-import": { timeoutSeconds: 55, memoryMb: 512 },
  "api-keys-revoke-all": { timeoutSeconds: 55, memoryMb: 256 },
  "webhooks-import": { timeoutSeconds: 55, memoryMb: 512 },
};

test("there is one Lambda per endpoint and per worker", () => {
  const files = dev.all("AWS::Lambda::Function").map(idOf);
  expect(files.sort()).toEqual(functionRows.map((row) => row.id).sort());
  expect(Object.keys(expected).sort()).toEqual(workerRows.map(({ id }): string => id).sort());
});

test.each(rows)("$id runs on Node 24 with its timeout and memory", ({ id }) => {
  expect(dev.functionFor(id).Properties).toMatchObject({
    Runtime: "nodejs24.x",
    Architectures: ["arm64"],
    Handler: "index.handler",
    Timeout: expected[id]?.timeoutSeconds,
    MemorySize: expected[id]?.memoryMb,
  });
});

test.each(rows)("$id has its trigger, and no other", ({ id }) => {
  const { id: logicalId } = dev.functionFor(id);
  const consumed = mappings
    .filter(({ Properties }) => Properties.FunctionName.Ref === logicalId)
    .map(({ Properties: { EventSourceArn, BatchSize, ScalingConfig } }) => [
      dev.target(EventSourceArn).Properties.QueueName,
      BatchSize,
      ScalingConfig.MaximumConcurrency,
    ]);
  const schedules = dev
    .all("AWS::Events::Rule")
    .filter(({ Properties }) => dev.target(only(Properties.Targets as { Arn: unknown }[]).Arn).id === logicalId)
    .map(({ Properties }) => Properties.ScheduleExpression);
  const { consumes, schedule } = expected[id] as Expected;
  expect({ consumed, schedules }).toEqual({
    consumed: consumes ? [consumes] : [],
    schedules: schedule ? [schedule] : [],
  });
});

test("every function logs JSON, each worker to its own log group and all endpoints to one, for a week in dev", () => {
  const groups = dev.all("AWS::Lambda::Function").map(({ id, Properties }) => {
    // Platform lines of each call would have a price.
    expect(Properties.LoggingConfig).toMatchObject({ LogFormat: "JSON", SystemLogLevel: "WARN" });
    const group = dev.target(Properties.LoggingConfig.LogGroup);
    expect(group.Properties.RetentionInDays).toBe(7);
    return { isEndpoint: id.startsWith("Endpoints"), group: group.id };
  });
  const [ofEndpoints, ofWorkers] = [true, false].map((is) => groups.filter(({ isEndpoint }) => isEndpoint === is));
  expect(new Set(ofEndpoints?.map(({ group }) => group)).size).toBe(1);
  expect(ofEndpoints?.length).toBeGreaterThan(1);
  expect(new Set(groups.map(({ group }) => group)).size).toBe(1 + workerRows.length);
  expect(ofWorkers).toHaveLength(workerRows.length);
});

test("with event pollers, a mapping has them instead of a maximum concurrency, of which each poller has ten", () => {
  const every = new SynthesizedStack("everyOption");
  const pollers = every.all("AWS::Lambda::EventSourceMapping").map(({ Properties }) => {
    expect(Properties.ScalingConfig).toBeUndefined();
    return [
      every.target(Properties.EventSourceArn).Properties.QueueName,
      ...[Properties.ProvisionedPollerConfig.MinimumPollers, Properties.ProvisionedPollerConfig.MaximumPollers],
    ];
  });
  // 50 concurrent fan-outs would need five.
  expect(pollers.sort()).toEqual([
    ["deployment-webhooks-every-deliveries", 8, 30],
    ["deployment-webhooks-every-deliveries-slow", 8, 10],
    ["deployment-webhooks-every-deployment-events", 8, 8],
  ]);
});

test("the consumer of a queue reports the messages that failed, and only those are received again", () => {
  expect(mappings).toHaveLength(3);
  for (const { Properties } of mappings) expect(Properties.FunctionResponseTypes).toEqual(["ReportBatchItemFailures"]);
});

test("a missed run of a scheduled function is not retried", () => {
  const scheduled = ["deliveries-sweep", "deliveries-publish-notifications"].map((id) => dev.functionFor(id).id);
  const rules = dev.all("AWS::Events::Rule").map(({ Properties }) => Properties);
  expect(rules).toHaveLength(scheduled.length);
  for (const rule of rules) {
    expect(rule).toMatchObject({
      State: "ENABLED",
      Targets: [{ RetryPolicy: { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 } }],
    });
  }
  const configs = dev.all("AWS::Lambda::EventInvokeConfig").map(({ Properties }) => Properties);
  for (const config of configs) {
    expect(config).toMatchObject({ MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 });
  }
  expect(configs.map(({ FunctionName }) => FunctionName.Ref).sort()).toEqual(scheduled.sort());
});

test("only the slow sender, whose workers call themselves through its queue, is exempt from Lambda's loop detection", () => {
  const allowed = dev.all("AWS::Lambda::Function").filter(({ Properties }) => Properties.RecursiveLoop === "Allow");
  expect(allowed.map(idOf).sort()).toEqual(["attempts-send-slow"]);
});

const reservedIn = (stack: SynthesizedStack) =>
  Object.fromEntries(
    stack
      .all("AWS::Lambda::Function")
      .filter(({ Properties }) => "ReservedConcurrentExecutions" in Properties)
      .map((resource) => [idOf(resource), resource.Properties.ReservedConcurrentExecutions]),
  );

test("reserved concurrency is set for the authorizer and recover in a stage that keeps data, and for credentials-verify with its option, and never in dev", () => {
  // It must deploy in an account with a quota of 10.
  expect(reservedIn(dev)).toEqual({});
  expect(reservedIn(new SynthesizedStack("prod"))).toEqual({ "auth-authorizer": 200, recoverDeliveries: 70 });
  expect(reservedIn(new SynthesizedStack("everyOption"))).toEqual({
    "auth-authorizer": 300,
    "credentials-verify": 50,
    recoverDeliveries: 100,
  });
});

describe("a gradual deployment", () => {
  const prod = new SynthesizedStack("prod");
  const groupsOf = (stack: SynthesizedStack) => stack.all("AWS::CodeDeploy::DeploymentGroup");
  const aliasOf = (id: string) =>
    only(
      prod
        .all("AWS::Lambda::Alias")
        .filter(({ Properties }) => Properties.FunctionName.Ref === prod.functionFor(id).id),
    );

  test("is used for the authorizer, the fan-out and both senders, in prod", () => {
    expect(dev.all("AWS::Lambda::Alias")).toEqual([]);
    const functions = prod.all("AWS::Lambda::Alias").map(({ Properties }) => prod.target(Properties.FunctionName));
    expect(functions.map(idOf).sort()).toEqual([
      "attempts-send",
      "attempts-send-slow",
      "auth-authorizer",
      "deliveries-fan-out",
    ]);
    expect(groupsOf(prod)).toHaveLength(4);
  });

  test("shares one application and one role of CodeDeploy", () => {
    const application = only(prod.all("AWS::CodeDeploy::Application"));
    const roles = groupsOf(prod).map(({ Properties }) => {
      expect(Properties.ApplicationName).toEqual({ Ref: application.id });
      return prod.target(Properties.ServiceRoleArn).id;
    });
    const { ManagedPolicyArns } = prod.target({ Ref: only([...new Set(roles)]) }).Properties;
    expect(JSON.stringify(only(ManagedPolicyArns))).toContain(
      ":iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited",
    );
    expect(dev.all("AWS::CodeDeploy::Application")).toEqual([]);
  });

  test("sends a tenth of the calls to the new version, and rolls back on an alarm, a failure or a stop", () => {
    for (const { Properties } of groupsOf(prod)) {
      expect(Properties.DeploymentConfigName).toBe("CodeDeployDefault.LambdaCanary10Percent5Minutes");
      expect(Properties.AlarmConfiguration).toMatchObject({ Enabled: true });
      expect(Properties.AutoRollbackConfiguration).toEqual({
        Enabled: true,
        Events: ["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_REQUEST", "DEPLOYMENT_STOP_ON_ALARM"],
      });
    }
  });

  test("has the rollback alarms of its own function", () => {
    const names = groupsOf(prod).map(({ Properties }) =>
      Properties.AlarmConfiguration.Alarms.map(({ Name }: { Name: unknown }) => {
        return prod.target(Name).Properties.AlarmName.replace("test-prod-rollback-", "");
      }),
    );
    expect(names).toEqual([
      ["auth-authorizer-errors", "auth-authorizer-slow", "auth-authorizer-rejecting"],
      ["deliveries-fan-out-errors", "deliveries-fan-out-messages-failing"],
      ["attempts-send-errors", "attempts-send-messages-failing"],
      ["attempts-send-slow-errors", "attempts-send-slow-messages-failing"],
    ]);
  });

  test("keeps old versions for the alias, not that of a rollback: Lambda publishes the same code only once", () => {
    expect(prod.all("AWS::Lambda::Version")).toHaveLength(4);
    for (const version of prod.all("AWS::Lambda::Version"))
      expect(version).toMatchObject({ UpdateReplacePolicy: "Retain", DeletionPolicy: "RetainExceptOnCreate" });
  });

  test("ignores the alarms when it is urgent", () => {
    const isEnabled = (stack: SynthesizedStack) =>
      groupsOf(stack).map(({ Properties }) => Properties.AlarmConfiguration.Enabled);
    expect(isEnabled(prod)).toEqual([true, true, true, true]);
    expect(isEnabled(new SynthesizedStack("prodWithKey"))).toEqual([false, false, false, false]);
  });

  test("moves the aliases that API Gateway and the event source mappings call", () => {
    const authorizer = only(prod.all("AWS::ApiGateway::Authorizer"));
    expect(JSON.stringify(authorizer.Properties.AuthorizerUri)).toContain(aliasOf("auth-authorizer").id);
    const consumers = ["deliveries-fan-out", "attempts-send", "attempts-send-slow"].map(aliasOf);
    const mapped = prod
      .all("AWS::Lambda::EventSourceMapping")
      .map(({ Properties }) => JSON.stringify(Properties.FunctionName));
    for (const { id } of consumers) expect(mapped.filter((name) => name.includes(id))).toHaveLength(1);
  });
});
