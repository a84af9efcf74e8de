import { endpoints } from "../../functions/manifest/endpoints.ts";
import { type WorkerRow, workers } from "../../functions/manifest/workers.ts";
import { stageNamed } from "../../lib/stages.ts";
import { dev, fileOf, only, type Resource, Synthesised } from "./synthesised.ts";

const rows: readonly WorkerRow[] = workers;
const mappings = dev.all("AWS::Lambda::EventSourceMapping");

test("there is one Lambda per row", () => {
  const files = dev.all("AWS::Lambda::Function").map(fileOf);
  expect(files.sort()).toEqual([...endpoints, ...workers].map((row) => row.file).sort());
});

test.each(rows)("$file runs on Node 24 with the time and memory of its row", ({ file, timeoutSeconds, memoryMb }) => {
  expect(dev.functionFor(file).Properties).toMatchObject({
    Runtime: "nodejs24.x",
    Architectures: ["arm64"],
    Handler: "index.handler",
    Timeout: timeoutSeconds,
    MemorySize: memoryMb,
  });
});

test("every function logs JSON into a group of its own that forgets", () => {
  const groups = dev.all("AWS::Lambda::Function").map(({ Properties }) => {
    expect(Properties.LoggingConfig.LogFormat).toBe("JSON");
    const group = dev.target(Properties.LoggingConfig.LogGroup);
    expect(group.Properties.RetentionInDays).toBe(7);
    return group.id;
  });
  expect(new Set(groups).size).toBe(groups.length);
});

test.each(rows)("$file is started by what its row says", ({ file, trigger }) => {
  const { id } = dev.functionFor(file);
  const mine = mappings.filter(({ Properties }) => Properties.FunctionName.Ref === id);
  const schedules = dev.all("AWS::Events::Rule").filter((rule) => dev.target(rule.Properties.Targets[0].Arn).id === id);
  expect(mine).toHaveLength(trigger.kind === "queue" ? 1 : 0);
  expect(schedules).toHaveLength(trigger.kind === "everyMinutes" ? 1 : 0);
});

test("a queue's consumer reports the messages that failed, and only those come again", () => {
  for (const { Properties } of mappings) expect(Properties.FunctionResponseTypes).toEqual(["ReportBatchItemFailures"]);
});

test("batches and concurrency are those of the row", () => {
  const sender = mappings.find(({ Properties }) => Properties.FunctionName.Ref === dev.functionFor("attempts/send").id);
  const { EventSourceArn, BatchSize, ScalingConfig } = (sender as Resource).Properties;
  expect(dev.target(EventSourceArn).Properties.QueueName).toBe("dev-deliveries");
  expect(BatchSize).toBe(10);
  expect(ScalingConfig).toEqual({ MaximumConcurrency: 200 });
});

test("the sweep runs every minute, and a missed run is not made up for", () => {
  const { Properties } = only(dev.all("AWS::Events::Rule"));
  expect(Properties).toMatchObject({ ScheduleExpression: "rate(1 minute)", State: "ENABLED" });
  const asynchronous = only(dev.all("AWS::Lambda::EventInvokeConfig"));
  expect(asynchronous.Properties).toMatchObject({ MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 });
});

test("only the function that feeds its own queue may go round for long", () => {
  const allowed = dev.all("AWS::Lambda::Function").filter(({ Properties }) => Properties.RecursiveLoop === "Allow");
  expect(allowed.map(fileOf)).toEqual(["attempts/send"]);
});

describe("a gradual deployment", () => {
  const prod = new Synthesised(stageNamed("prod"));
  const gradual = ["auth/authorizer", "attempts/send"];
  const aliasOf = (stack: Synthesised, file: string) =>
    only(
      stack
        .all("AWS::Lambda::Alias")
        .filter(({ Properties }) => Properties.FunctionName.Ref === stack.functionFor(file).id),
    );

  test("is that of the authorizer and the sender, in prod", () => {
    expect(dev.all("AWS::Lambda::Alias")).toEqual([]);
    expect(prod.all("AWS::Lambda::Alias")).toHaveLength(gradual.length);
    expect(prod.all("AWS::CodeDeploy::DeploymentGroup")).toHaveLength(gradual.length);
  });

  test("gives a tenth of the calls to a new version first, and takes it back on an alarm", () => {
    for (const { Properties } of prod.all("AWS::CodeDeploy::DeploymentGroup")) {
      expect(Properties.DeploymentConfigName).toBe("CodeDeployDefault.LambdaCanary10Percent5Minutes");
      expect(Properties.AlarmConfiguration).toMatchObject({ Enabled: true });
      expect(Properties.AlarmConfiguration.Alarms.length).toBeGreaterThan(0);
      expect(Properties.AutoRollbackConfiguration.Events).toContain("DEPLOYMENT_STOP_ON_ALARM");
    }
  });

  test("leaves the version before in place, to which the alias can go back at once", () => {
    for (const { DeletionPolicy } of prod.all("AWS::Lambda::Version")) expect(DeletionPolicy).toBe("Retain");
  });

  test("of what ends an alarm does not wait for the alarm's end", () => {
    const urgent = new Synthesised(stageNamed("prod"), { isUrgent: true });
    const ignores = (stack: Synthesised) =>
      stack
        .all("AWS::CodeDeploy::DeploymentGroup")
        .map(
          ({ Properties }) =>
            Properties.AlarmConfiguration.IgnorePollAlarmFailure ?? Properties.AlarmConfiguration.Enabled,
        );
    expect(ignores(prod)).not.toEqual(ignores(urgent));
  });

  test("moves what callers call: the API asks the authorizer's alias, the queue's messages go to the sender's", () => {
    const authorizer = only(prod.all("AWS::ApiGateway::Authorizer"));
    expect(JSON.stringify(authorizer.Properties.AuthorizerUri)).toContain(aliasOf(prod, "auth/authorizer").id);
    const sender = aliasOf(prod, "attempts/send");
    const mapped = prod
      .all("AWS::Lambda::EventSourceMapping")
      .map(({ Properties }) => JSON.stringify(Properties.FunctionName));
    expect(mapped.filter((name) => name.includes(":live") || name.includes(sender.id))).toHaveLength(1);
  });
});
