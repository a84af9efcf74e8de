import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describeAlarms } from "../../../bin/smoke/aws/cloudwatch.ts";
import type { Limits } from "../../../bin/smoke/check.ts";
import { gateway } from "../../../bin/smoke/gateway-checks.ts";
import { access } from "../../../bin/smoke/operator-checks.ts";
import { operatorGroups, smoke } from "../../../bin/smoke/run.ts";
import { runbookQueries } from "../../../bin/smoke/runbook-queries.ts";
import { type Json, SynthesizedStack } from "../../lib/synthesized.ts";
import { AwsAccount, serveAwsAccount } from "../../support/aws-account.ts";
import { useService } from "../../support/service.ts";
import { startTamperingProxy, type TamperingProxy } from "../../support/tampering-proxy.ts";

/* `npm run smoke -- --operator` passes on a healthy account, and each of its checks fails when its subject is broken. */

const gradual = new SynthesizedStack("devGradual");
const plain = new SynthesizedStack("dev");

const recover = "~1v1~1projects~1{project_id}~1webhooks~1{webhook_id}~1recover/POST";
const limits: Partial<Limits> = { deliveryMs: 1_000, totalMs: 90_000, metricsMs: 300, changeMs: 300, pollMs: 20 };

let account: AwsAccount;
const service = useService();
let proxy: TamperingProxy;
let token: string;
/** False: API Gateway does not apply the settings of the stage. */
let isThrottled = true;

const tooMany = (headers: Record<string, string> = { "retry-after": "1" }) => ({
  status: 429,
  headers: {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-request-id": "r",
    ...headers,
  },
  body: '{"error":{"code":"rate_limited","message":"Wait.","request_id":"r"}}',
});
let throttled = tooMany();

const saved = { ...process.env };
beforeAll(async () => {
  process.env.AWS_ENDPOINT_URL = await serveAwsAccount(() => account);
  proxy = await startTamperingProxy(service.baseUrl, {
    respond({ path, method }) {
      const isClosed = account.methodSettings[recover]?.throttlingRateLimit === 0;
      return isThrottled && isClosed && method === "POST" && path.endsWith("/recover") ? throttled : undefined;
    },
  });
});
afterAll(async () => {
  process.env = saved;
  await proxy.close();
});

const ownMetric = (MetricName: string, stage = "dev") => ({
  Namespace: "DeploymentWebhooks",
  MetricName,
  Dimensions: [{ Name: "stage", Value: stage }],
});

beforeEach(() => {
  proxy.requests.length = 0;
  deploy(gradual);
  isThrottled = true;
  throttled = tooMany();
  token = service.user().token;
});

function deploy(stack: SynthesizedStack, stage = "dev"): void {
  account = new AwsAccount(stack, { stage, isProtected: false });
  account.add(ownMetric("RejectedCredentials", stage), 100);
  account.add(ownMetric("SweepLag", stage), 0);
}

const ofOperator = operatorGroups.flatMap(({ checks }) => checks.map(({ claim }) => claim));
const inOrder = (claims: string[]) => ofOperator.filter((each) => claims.includes(each));

/** @param only the checks with these claims are run, the others of their groups, and what they need; absent = all checks */
async function check({ closesEndpoint = true, stage = "dev", only }: CheckOptions = {}) {
  const lines: string[] = [];
  const options = { baseUrl: proxy.url, token, operator: { stage, closesEndpoint } };
  const hasPassed = await smoke(
    options,
    (line) => lines.push(stripVTControlCharacters(line)),
    new AbortController().signal,
    limits,
    only && groupsOf(only),
  );
  const text = lines.join("\n");
  const claims = (verdict: string) =>
    ofOperator.filter((claim) => lines.some((line) => line.startsWith(`  ${verdict}`) && line.includes(claim)));
  return { hasPassed, text, ok: claims("ok"), warn: claims("warn"), skip: claims("skip"), FAIL: claims("FAIL") };
}
interface CheckOptions {
  closesEndpoint?: boolean;
  stage?: string;
  only?: string[];
}

const groupsOf = (claims: string[]) => [
  gateway,
  ...operatorGroups.filter((group) => group === access || group.checks.some((each) => claims.includes(each.claim))),
];

const claim = {
  stack: "the stack of the stage can be read with the credentials of the environment",
  closed: "a closed endpoint returns 429 with Retry-After, and responds again after it",
  arrive: "the metrics of this run arrive",
  exist: "every metric that an alarm reads exists",
  evaluate: "every alarm's expression can be evaluated",
  quota: "concurrency-high compares with the usage metric of the quota",
  alias: "every alias has the newest version, without a gradual deployment in progress",
  mapping: "every queue's mapping is enabled, and follows the alias if its function has one",
  queries: "the log queries of the runbook run",
};

test("a healthy account passes every check, and only the closed endpoint is changed, and restored", async () => {
  const before = structuredClone(account.methodSettings);
  const { hasPassed, text, ok } = await check();
  // One request gets the 429, and one the response of the open endpoint: a 429 is not retried here.
  expect(proxy.requests.filter(({ path }) => path.endsWith("/recover"))).toHaveLength(2);
  expect({ hasPassed, text }).toMatchObject({ hasPassed: true });
  expect(ok).toEqual(Object.values(claim));
  expect(account.methodSettings).toEqual(before);
  const changes = account.calls
    .map(({ action }) => action)
    .filter((action) => !/^(Get|List|Describe|StartQuery)/.test(action));
  expect(changes).toEqual(["UpdateStage", "UpdateStage"]);
});

test("without --close-endpoint nothing in the account is changed", async () => {
  const { hasPassed, text } = await check({ closesEndpoint: false });
  expect(hasPassed).toBe(true);
  expect(text).not.toContain(claim.closed);
  expect(account.calls.map(({ action }) => action)).not.toContain("UpdateStage");
});

test("limits that the endpoint has of its own are restored", async () => {
  account.methodSettings[recover] = { throttlingRateLimit: 5, throttlingBurstLimit: 10 };
  const before = structuredClone(account.methodSettings);
  expect((await check({ only: [claim.closed] })).ok).toContain(claim.closed);
  expect(account.methodSettings).toEqual(before);
});

test("a stage without gradual deployments: there is no alias to check", async () => {
  deploy(plain);
  const { hasPassed, skip, ok } = await check({ only: [claim.alias, claim.mapping] });
  expect({ hasPassed, skip }).toEqual({ hasPassed: true, skip: [claim.alias] });
  expect(ok).toContain(claim.mapping);
});

const alarm = (suffix: string): Json => {
  const [, found] = [...account.alarms].find(([name]) => name.endsWith(suffix)) ?? [];
  return found?.properties;
};
const sender = () => account.nameOf("AWS::Lambda::Function", "WorkersAttemptsSendFunction");
const mappingOf = (name: string) =>
  [...account.mappings.values()].find(({ FunctionArn }) => FunctionArn.includes(`:${name}`)) as {
    State: string;
    FunctionArn: string;
  };
const unlist = (matches: (metric: Json) => boolean) => {
  account.listed = account.listed.filter((metric) => !matches(metric));
};

/** A row that deploys again is before those that break what it deploys. */
const faults: [title: string, breakIt: () => void, claim: string, message: string | RegExp][] = [
  [
    "an endpoint that stays open",
    () => {
      isThrottled = false;
    },
    claim.closed,
    "POST /v1/projects/{project_id}/webhooks/{webhook_id}/recover: a closed endpoint still returns 404",
  ],
  [
    "a 429 without Retry-After",
    () => {
      throttled = tooMany({});
    },
    claim.closed,
    "expected retry-after to match /^\\d+$/, got no such header",
  ],
  [
    "a 429 in the shape of API Gateway",
    () => {
      throttled = { ...tooMany(), body: '{"message":"Limit Exceeded"}' };
    },
    claim.closed,
    'expected 429 rate_limited, got 429 {"message":"Limit Exceeded"}',
  ],
  [
    "an operator who may not change the stage",
    () => account.denied.add("UpdateStage"),
    claim.closed,
    "UpdateStage: AccessDeniedException: not authorized: UpdateStage",
  ],
  [
    "metrics that CloudWatch does not extract",
    () => account.values.clear(),
    claim.arrive,
    /expected RejectedCredentials ≥ \d+, got 0; expected SweepLag ≥ 1, got 0: CloudWatch extracts these metrics from the logs/,
  ],
  [
    "fewer rejections in CloudWatch than in responses",
    () => account.values.set("DeploymentWebhooks RejectedCredentials stage=dev", [1]),
    claim.arrive,
    /expected RejectedCredentials ≥ [2-9], got 1/,
  ],
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
  [
    "another usage metric of the quota",
    () => {
      account.quotaUsage = {
        MetricNamespace: "AWS/Usage",
        MetricName: "ResourceCount",
        MetricDimensions: { Service: "Lambda" },
      };
    },
    claim.quota,
    "the quota's usage metric is AWS/Usage ResourceCount Service=Lambda, the alarm reads AWS/Lambda ConcurrentExecutions",
  ],
  [
    "an alias that was moved back",
    () => {
      const state = account.versions.get(sender());
      if (state) state.live = 9;
    },
    claim.alias,
    /physical-WorkersAttemptsSendFunction\w+: live is version 9, the newest one is 10/,
  ],
  [
    "a gradual deployment that was left half-way",
    () => {
      const state = account.versions.get(sender());
      if (state) state.weights = { "9": 0.1 };
    },
    claim.alias,
    /version 9 gets 10 % of the calls/,
  ],
  [
    "a disabled mapping",
    () => {
      mappingOf(sender()).State = "Disabled";
    },
    claim.mapping,
    /the mapping of physical-WorkersAttemptsSendFunction\w+ is Disabled/,
  ],
  [
    "a mapping of the function instead of its alias",
    () => {
      const mapping = mappingOf(sender());
      mapping.FunctionArn = mapping.FunctionArn.replace(/:live$/, "");
    },
    claim.mapping,
    /the mapping of physical-WorkersAttemptsSendFunction\w+ calls \$LATEST, expected the alias live/,
  ],
  [
    "a log query that is not valid",
    () => {
      account.queryStatus = (query) => {
        if (query.includes('"sweep"')) account.reject("MalformedQueryException", "unexpected symbol");
        return "Complete";
      };
    },
    claim.queries,
    /WorkersDeliveriesSweepLogs: filter level = "ERROR" or message = "sweep".*: StartQuery: MalformedQueryException: unexpected symbol/,
  ],
  [
    "a log query that fails",
    () => {
      account.queryStatus = (query) => (query.includes("filter status >= 500") ? "Failed" : "Complete");
    },
    claim.queries,
    /AccessLog: filter status >= 500.*: Failed/,
  ],
  [
    "a log query that does not end",
    () => {
      account.queryStatus = (query) => (query.includes("filter status >= 500") ? "Running" : "Complete");
    },
    claim.queries,
    /AccessLog: filter status >= 500.*: still Running/,
  ],
];

/** The faults in rounds: one of each check. */
const rounds: (typeof faults)[] = [];
for (const fault of faults) {
  const round = rounds.find((each) => each.every(([, , claim]) => claim !== fault[2]));
  if (round) round.push(fault);
  else rounds.push([fault]);
}

test.each(rounds.map((round) => [round.map(([title]) => title).join(", "), round] as const))(
  "%s: fail exactly the checks concerned, and the endpoint is open again",
  async (_, round) => {
    for (const [, breakIt] of round) breakIt();
    const before = structuredClone(account.methodSettings);
    const claims = round.map(([, , each]) => each);
    const { hasPassed, FAIL, text } = await check({ only: claims });
    expect({ hasPassed, FAIL, text }).toMatchObject({ hasPassed: false, FAIL: inOrder(claims) });
    for (const [, , , message] of round) expect(text).toMatch(message);
    expect(text.match(/\n {18}see docs\/runbook\.md: [\w-]/g)).toHaveLength(round.length);
    expect(account.methodSettings).toEqual(before);
  },
);

test("every check has a fault that makes it fail", () => {
  const tested = [...faults.map(([, , each]) => each), claim.stack];
  expect(inOrder(tested)).toEqual(ofOperator);
});

test("an unknown stage fails once, and the checks that need it are skipped", async () => {
  const { hasPassed, FAIL, skip, text } = await check({ stage: "other" });
  expect({ hasPassed, FAIL }).toEqual({ hasPassed: false, FAIL: [claim.stack] });
  expect(skip).toEqual(Object.values(claim).filter((each) => each !== claim.stack));
  expect(text).toContain("DescribeStacks: ValidationError: Stack with id deployment-webhooks-other does not exist");
  expect(text).toContain("not checked, the stack of the stage could not be read");
});

test("alarms are read in calls of a hundred names, the most that CloudWatch accepts", async () => {
  const [known = ""] = account.alarms.keys();
  const names = [...Array.from({ length: 100 }, (_, index) => `unknown-${index}`), known];
  expect((await describeAlarms(names)).map(({ AlarmName }) => AlarmName)).toEqual([known]);
});

test("an alarm that does not exist in the region fails the check of the stack", async () => {
  const [name = ""] = account.alarms.keys();
  account.alarms.delete(name);
  const { FAIL, text } = await check({ only: [claim.stack] });
  expect(FAIL).toEqual([claim.stack]);
  const defined = account.alarms.size + 1;
  expect(text).toContain(`${account.alarms.size} of ${defined} alarms of deployment-webhooks-dev exist in this region`);
});

test("a stage without alarms passes, and has no concurrency-high to compare", async () => {
  deploy(new SynthesizedStack("otherForms"), "other");
  const { hasPassed, skip, text } = await check({ stage: "other", only: [claim.exist, claim.evaluate, claim.quota] });
  expect({ hasPassed, skip, text }).toMatchObject({ hasPassed: true, skip: [claim.quota] });
});

test("a quota without a usage metric is a warning: Service Quotas does not name one for every quota", async () => {
  account.quotaUsage = undefined;
  expect(await check({ only: [claim.quota] })).toMatchObject({ hasPassed: true, warn: [claim.quota] });
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
  expect(await check({ only: [claim.exist] })).toMatchObject({ hasPassed: true });
});

test("the runbook's queries are found, those in loops and tables too", () => {
  const runbook = readFileSync(join(import.meta.dirname, "../../../docs/runbook.md"), "utf8");
  const found = runbookQueries(runbook);
  expect(found.length).toBeGreaterThan(35);
  expect(new Set(found.map(({ logs }) => logs))).toContain("WorkersDeliveriesSweepLogs");
  expect(found.filter(({ logs, query }) => logs.startsWith("$") || query.includes("\\|"))).toEqual([]);
  const looped =
    "for logs in A B; do\n  ask $logs 30 'stats count(*) by x'\ndone\n| `ask C 5 'filter a \\| limit 5'` |";
  expect(runbookQueries(looped)).toEqual([
    { logs: "A", minutes: 30, query: "stats count(*) by x" },
    { logs: "B", minutes: 30, query: "stats count(*) by x" },
    { logs: "C", minutes: 5, query: "filter a | limit 5" },
  ]);
});
