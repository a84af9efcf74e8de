import type { Stage } from "../../lib/stage.ts";
import { InvalidStage, validStage } from "../../lib/stage.ts";
import { stageNamed, stages } from "../../lib/stages.ts";
import { everyOption } from "./every-option.ts";

test("without a stage it is dev", () => {
  expect(stageNamed(undefined).name).toBe("dev");
});

test.each(stages)("there is the stage $name", (stage) => {
  expect(stageNamed(stage.name)).toEqual(stage);
});

test.each(["nope", "", "Prod", 1])("an unknown stage is refused with the known ones: %j", (name) => {
  expect(() => stageNamed(name)).toThrow(`There is no stage ${JSON.stringify(name)}. Known stages: dev, prod.`);
});

test("a stage may use every option at once", () => {
  const corsOrigins = [...everyOption.corsOrigins, "https://console.example.com"];
  expect(validStage(everyOption)).toEqual({ ...everyOption, corsOrigins });
});

const key = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";

test.each<[string, unknown, string]>([
  ["name", "Prod", "name: takes up to 20 lower-case letters"],
  ["name", "a-name-that-is-much-too-long", "name: takes up to 20"],
  ["logRetention", 8, "logRetention: "],
  ["throttle", { requestsPerSecond: 0, burst: 10 }, "throttle.requestsPerSecond: "],
  ["jwt", { secretArn: "provider-secret" }, "jwt.secretArn: takes an ARN such as arn:aws:secretsmanager"],
  [
    "jwt",
    { secretArn: "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider" },
    "complete to its last six characters",
  ],
  ["jwt", { maxLifetimeSeconds: -1 }, "jwt.maxLifetimeSeconds: "],
  ["jwt", { isuer: "typo" }, 'jwt: Unrecognized key: "isuer"'],
  ["jwks", { issuer: "http://id.example" }, "jwks.issuer: takes an https URL"],
  ["jwks", {}, "jwks.issuer: "],
  ["deliveries", { retrySchedule: [] }, "deliveries.retrySchedule: "],
  ["deliveries", { retrySchedule: [5, 1.5] }, "deliveries.retrySchedule.1: "],
  ["deliveries", { retrySchedule: Array(21).fill(1) }, "deliveries.retrySchedule: "],
  ["deliveries", { graceSeconds: 0 }, "deliveries.graceSeconds: "],
  [
    "domain",
    { name: "https://api.example.com", certificateArn: everyOption.domain?.certificateArn },
    "domain.name: takes a host name",
  ],
  [
    "domain",
    { name: "api.example.com", certificateArn: key },
    "domain.certificateArn: takes an ARN such as arn:aws:acm",
  ],
  ["corsOrigins", [], "corsOrigins: "],
  ["corsOrigins", ["https://app.example.com/"], "corsOrigins.0: takes an origin"],
  ["corsOrigins", ["*"], "corsOrigins.0: takes an origin"],
  ["firewall", { requestsPerFiveMinutes: 5 }, "firewall.requestsPerFiveMinutes: "],
  ["kmsKey", "alias/mine", "kmsKey: "],
  ["kmsKey", "arn:aws:kms:eu-west-1:111122223333:alias/mine", "kmsKey: "],
  ["alarmEmail", "nobody", "alarmEmail: takes an e-mail address"],
  ["eventProducers", ["arn:aws:s3:::bucket"], "eventProducers.0: takes the ARN of an IAM role"],
  ["eventProducers", ["*"], "eventProducers.0: takes the ARN"],
  ["projectsTable", { name: "a b" }, "projectsTable.name: "],
  ["alarmMail", "ops@example.com", 'stage: Unrecognized key: "alarmMail"'],
])("%s: %j is refused, and the message names the option", (option, value, message) => {
  const refused = () => validStage({ ...everyOption, [option]: value } as Stage);
  expect(refused).toThrow(InvalidStage);
  expect(refused).toThrow(message);
});

test("all that is wrong with a stage is told at once", () => {
  const wrong = { ...everyOption, alarmEmail: "x", firewall: { requestsPerFiveMinutes: 1 } };
  expect(() => validStage(wrong)).toThrow(/firewall.*alarmEmail/s);
});
