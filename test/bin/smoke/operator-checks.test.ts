import { stripVTControlCharacters } from "node:util";
import { describeAlarms } from "../../../bin/smoke/aws/cloudwatch.ts";
import { smoke } from "../../../bin/smoke/run.ts";
import { type Json, SynthesizedStack } from "../../lib/synthesized.ts";
import { AwsAccount, serveAwsAccount } from "../../support/aws-account.ts";
import { useService } from "../../support/service.ts";

/* `npm run smoke -- --stage` passes on a healthy account, and each of its checks fails when its subject is broken. */

const gradual = new SynthesizedStack("devGradual");

let account: AwsAccount;
const service = useService();
let token: string;

const saved = { ...process.env };
beforeAll(async () => {
  process.env.AWS_ENDPOINT_URL = await serveAwsAccount(() => account);
  const user = service.user();
  await service.project(user.userId);
  token = user.token;
});
afterAll(() => {
  process.env = saved;
});

beforeEach(() => {
  account = new AwsAccount(gradual, { stage: "dev", isProtected: false });
});

const claim = {
  alarms: "the alarms of the stage can be read with the credentials of the environment",
  exist: "every metric that an alarm reads exists",
  evaluate: "every alarm's expression can be evaluated",
};

async function check(stage = "dev") {
  const lines: string[] = [];
  const options = { baseUrl: service.baseUrl, token, stage };
  const print = (line: string) => lines.push(stripVTControlCharacters(line));
  const hasPassed = await smoke(options, print, new AbortController().signal, { totalMs: 90_000 });
  const claims = (verdict: string) =>
    Object.values(claim).filter((each) => lines.some((line) => line.startsWith(`  ${verdict}`) && line.includes(each)));
  return { hasPassed, text: lines.join("\n"), ok: claims("ok"), FAIL: claims("FAIL") };
}

test("a healthy account passes every check, and nothing in it is changed", async () => {
  const { hasPassed, text, ok } = await check();
  expect({ hasPassed, text }).toMatchObject({ hasPassed: true });
  expect(ok).toEqual(Object.values(claim));
  expect(account.calls.filter(({ action }) => !/^(Get|List|Describe)/.test(action))).toEqual([]);
});

const alarm = (suffix: string): Json => {
  const [, found] = [...account.alarms].find(([name]) => name.endsWith(suffix)) ?? [];
  return found?.properties;
};
const unlist = (matches: (metric: Json) => boolean) => {
  account.listed = account.listed.filter((metric) => !matches(metric));
};

const faults: [title: string, breakIt: () => void, claim: string, message: string | RegExp][] = [
  [
    "an alarm on a metric that no service writes",
    () => {
      alarm("-concurrency-high").Metrics[1].MetricStat.Metric.MetricName = "NoSuchMetric";
    },
    claim.exist,
    /no such metric had a value in two weeks .*: AWS\/Lambda NoSuchMetric \(dev-ticket-concurrency-high\)/,
  ],
  [
    "an alarm on a metric with other dimensions than its service writes",
    () => {
      const dimensions = alarm("-events-waiting").Dimensions;
      alarm("-events-waiting").Dimensions = [...dimensions, { Name: "Region", Value: "us-east-1" }];
    },
    claim.exist,
    /AWS\/SQS ApproximateAgeOfOldestMessage QueueName=[\w-]+,Region=us-east-1 \(dev-page-events-waiting\)/,
  ],
  [
    "a sweep that writes no metric",
    () => unlist(({ MetricName }) => MetricName === "SweepLag"),
    claim.exist,
    "DeploymentWebhooks SweepLag stage=dev (dev-page-sweep-not-running)",
  ],
  [
    "an expression that CloudWatch rejects",
    () => account.invalidExpressions.add("SERVICE_QUOTA"),
    claim.evaluate,
    /dev-ticket-concurrency-high: GetMetricData: ValidationException: .*SERVICE_QUOTA/,
  ],
  [
    "an expression without a value, with a message",
    () => account.notedExpressions.add("SERVICE_QUOTA"),
    claim.evaluate,
    "dev-ticket-concurrency-high: ArithmeticError: One or more data-points have been dropped",
  ],
];

test.each(faults)("%s: fails exactly the check concerned", async (_, breakIt, each, message) => {
  breakIt();
  const { hasPassed, FAIL, text } = await check();
  expect({ hasPassed, FAIL, text }).toMatchObject({ hasPassed: false, FAIL: [each] });
  expect(text).toMatch(message);
  expect(text.match(/\n {18}see docs\/runbook\.md: [\w-]/g)).toHaveLength(1);
});

test("an unknown stage fails once", async () => {
  const { hasPassed, FAIL, ok, text } = await check("other");
  expect({ hasPassed, FAIL, ok }).toEqual({ hasPassed: false, FAIL: [claim.alarms], ok: [] });
  expect(text).toContain("DescribeStacks: ValidationError: Stack with id deployment-webhooks-other does not exist");
});

test("alarms are read in calls of a hundred names, the most that CloudWatch accepts", async () => {
  const [known = ""] = account.alarms.keys();
  const names = [...Array.from({ length: 100 }, (_, index) => `unknown-${index}`), known];
  expect((await describeAlarms(names)).map(({ AlarmName }) => AlarmName)).toEqual([known]);
});

test("an alarm that does not exist in the region fails the first check", async () => {
  const [name = ""] = account.alarms.keys();
  account.alarms.delete(name);
  const { FAIL, text } = await check();
  expect(FAIL).toEqual([claim.alarms]);
  const defined = account.alarms.size + 1;
  expect(text).toContain(`${account.alarms.size} of ${defined} alarms of deployment-webhooks-dev exist in this region`);
});

test("a stage without alarms passes", async () => {
  account = new AwsAccount(new SynthesizedStack("otherForms"), { stage: "other", isProtected: false });
  const { hasPassed, text } = await check("other");
  expect({ hasPassed, text }).toMatchObject({ hasPassed: true });
});

test("metrics that no one has caused yet are no failure", async () => {
  const kinds: ((metric: Json) => boolean)[] = [
    ({ MetricName }) => MetricName === "FailedMessageAge",
    // Calls of a new version.
    ({ Dimensions = [] }) => Dimensions.some(({ Name }: Json) => Name === "ExecutedVersion"),
    // Calls of one function.
    ({ Dimensions = [] }) => Dimensions.some(({ Value }: Json) => /WorkersProjectsSuspend/.test(Value)),
  ];
  for (const matches of kinds) {
    const count = account.listed.length;
    unlist(matches);
    expect(account.listed.length).toBeLessThan(count);
  }
  expect(await check()).toMatchObject({ hasPassed: true });
});
