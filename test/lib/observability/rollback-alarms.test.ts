import { only, SynthesizedStack } from "../synthesized.ts";
import { isBad, isRollback, nameOf, summaryOf } from "./alarm-summary.ts";

const prod = new SynthesizedStack("prod");
const alarms = prod.all("AWS::CloudWatch::Alarm").filter(isRollback);
const named = (id: string) => only(alarms.filter((alarm) => nameOf(alarm) === `test-prod-rollback-${id}`));

/** The dimensions of an alias: its metrics count the new version and the old one. */
const ofAuthorizer = "{FunctionName=auth-authorizer, Resource=auth-authorizer:live}";
const ofNewAuthorizer = "{ExecutedVersion=new, FunctionName=auth-authorizer, Resource=auth-authorizer:live}";
const ofSender = "{FunctionName=attempts-send, Resource=attempts-send:live}";
const ofFanOut = "{FunctionName=deliveries-fan-out, Resource=deliveries-fan-out:live}";
const ofSlowSender = "{FunctionName=attempts-send-slow, Resource=attempts-send-slow:live}";

const failuresOf = (dimensions: string) => ({
  expression: "IF(errors >= 3, 100 * errors / calls, 0)",
  errors: `Sum of Errors ${dimensions}`,
  calls: `Sum of Invocations ${dimensions}`,
  threshold: ">= 1",
});

const expected = {
  "auth-authorizer-errors": failuresOf(ofAuthorizer),
  "auth-authorizer-slow": {
    expression: "IF(calls >= 100, duration, 0)",
    calls: `Sum of Invocations ${ofAuthorizer}`,
    duration: `p95 of Duration ${ofAuthorizer}`,
    threshold: ">= 1000",
  },
  "auth-authorizer-rejecting": {
    expression:
      "IF(newCalls * (calls - rejected) / calls >= 15, 100 - 100 * (newCalls - newRejected) / (newCalls * (calls - rejected) / calls), 0)",
    rejected: "Sum of RejectedCredentials {stage=prod}",
    calls: `Sum of Invocations ${ofAuthorizer}`,
    newRejected: "Sum of RejectedCredentials {stage=prod, version=new}",
    newCalls: `Sum of Invocations ${ofNewAuthorizer}`,
    threshold: ">= 75",
  },
  "deliveries-fan-out-errors": failuresOf(ofFanOut),
  "deliveries-fan-out-messages-failing": { only: "Sum of MessagesFailed {stage=prod}", threshold: ">= 3" },
  "attempts-send-errors": failuresOf(ofSender),
  // Lambda does not count failed messages as Errors.
  "attempts-send-messages-failing": { only: "Sum of MessagesFailed {stage=prod}", threshold: ">= 3" },
  "attempts-send-slow-errors": failuresOf(ofSlowSender),
  "attempts-send-slow-messages-failing": { only: "Sum of MessagesFailed {stage=prod}", threshold: ">= 3" },
};

test("the rollback alarms are these, and each fires after one minute as listed", () => {
  const found = alarms.map((alarm) => {
    const { reads, fires, missingData, section } = summaryOf(prod, alarm);
    expect({ missingData, section }).toEqual({ missingData: "notBreaching", section: "rolled-back" });
    expect(fires).toMatch(/, for 1 x 60 s$/);
    const threshold = fires.replace(", for 1 x 60 s", "");
    const metrics = typeof reads === "string" ? { only: reads } : reads;
    return [nameOf(alarm).replace("test-prod-rollback-", ""), { ...metrics, threshold }];
  });
  expect(Object.fromEntries(found)).toEqual(expected);
});

test("the rollback alarms notify no topic, because CodeDeploy reads them", () => {
  for (const { Properties } of alarms) expect(Properties.AlarmActions ?? []).toEqual([]);
});

test("a stage without gradual deployments has no rollback alarms", () => {
  expect(new SynthesizedStack("dev").all("AWS::CloudWatch::Alarm").filter(isRollback)).toEqual([]);
});

test.each([
  ["attempts-send-errors", "the tenth of the calls that a new version gets fails", { errors: 10, calls: 100 }, "bad"],
  ["auth-authorizer-errors", "two failures at night", { errors: 2, calls: 4 }, "good"],
  ["auth-authorizer-errors", "the usual number of failures", { errors: 3, calls: 3_000 }, "good"],
  ["auth-authorizer-slow", "a tenth of the calls takes seconds", { calls: 500, duration: 2_500 }, "bad"],
  [
    "auth-authorizer-rejecting",
    "the new version rejects all of its calls",
    { calls: 500, rejected: 60, newCalls: 50, newRejected: 50 },
    "bad",
  ],
  [
    "auth-authorizer-rejecting",
    "the new version rejects all of its calls, and strangers send four invalid credentials for a valid one",
    { calls: 2_000, rejected: 1_640, newCalls: 200, newRejected: 200 },
    "bad",
  ],
  [
    "auth-authorizer-rejecting",
    "strangers send nine invalid credentials for a valid one, and the versions reject alike",
    { calls: 5_000, rejected: 4_500, newCalls: 500, newRejected: 452 },
    "good",
  ],
  [
    "auth-authorizer-rejecting",
    "all credentials are invalid",
    { calls: 5_000, rejected: 5_000, newCalls: 500, newRejected: 500 },
    "good",
  ],
  ["auth-authorizer-rejecting", "no credential is rejected", { calls: 500, newCalls: 50 }, "good"],
  [
    "auth-authorizer-rejecting",
    "the new version happens to have few calls, all invalid",
    { calls: 60, rejected: 6, newCalls: 6, newRejected: 6 },
    "good",
  ],
  [
    "auth-authorizer-rejecting",
    "no deployment, and no calls are counted by version",
    { calls: 500, rejected: 400, newRejected: 400 },
    "good",
  ],
  [
    "auth-authorizer-rejecting",
    "the new version has all calls",
    { calls: 500, rejected: 400, newCalls: 500, newRejected: 400 },
    "good",
  ],
  ["auth-authorizer-slow", "one slow call at night", { calls: 3, duration: 2_500 }, "good"],
])("%s, %s", (id, _, values, verdict) => {
  expect(isBad(prod, named(id), values) ? "bad" : "good").toBe(verdict);
});
