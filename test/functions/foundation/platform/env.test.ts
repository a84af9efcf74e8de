import { type QueueKey, queues } from "../../../../functions/foundation/manifest/queues.ts";
import { type TableKey, tables } from "../../../../functions/foundation/manifest/tables.ts";
import { type TopicKey, topics } from "../../../../functions/foundation/manifest/topics.ts";
import {
  deadLetterUrl,
  queueUrl,
  settings,
  tableName,
  topicArn,
} from "../../../../functions/foundation/platform/env.ts";
import { SettingError } from "../../../../functions/foundation/platform/errors.ts";

const before = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
});

const names: [string, () => string][] = [
  ...Object.entries(tables).map(([key, { env }]): [string, () => string] => [env, () => tableName(key as TableKey)]),
  ...Object.entries(queues).flatMap(([key, { env, deadLetterEnv }]): [string, () => string][] => [
    [env, () => queueUrl(key as QueueKey)],
    [deadLetterEnv, () => deadLetterUrl(key as QueueKey)],
  ]),
  ...Object.entries(topics).map(([key, { env }]): [string, () => string] => [env, () => topicArn(key as TopicKey)]),
];

test("there are 23 names: sixteen tables, three queues, three dead-letter queues, one topic", () => {
  expect(new Set(names.map(([name]) => name)).size).toBe(23);
});

test.each(names)("%s is read on each call, and a missing value throws an error with the name", (name, read) => {
  delete process.env[name];
  expect(read).toThrow(new SettingError(`${name} is not set`));
  process.env[name] = "";
  expect(read).toThrow(new SettingError(`${name} is not set`));
  process.env[name] = "one";
  expect(read()).toBe("one");
  process.env[name] = "two";
  expect(read()).toBe("two");
});

test.each<[string, string, unknown]>([
  ["LAST_USED_RESOLUTION_SECONDS", "0", 0],
  ["LAST_USED_RESOLUTION_SECONDS", " 90 ", 90],
  ["DISABLE_AFTER_SECONDS", "0", 0],
  ["RETRY_SCHEDULE", "5", [5]],
  ["RETRY_SCHEDULE", "5,300, 1800", [5, 300, 1800]],
  ["RETRY_SCHEDULE", "0,0", [0, 0]],
  ["WEBHOOK_ALLOW_CIDRS", "127.0.0.0/8", ["127.0.0.0/8"]],
  ["WEBHOOK_ALLOW_CIDRS", " 127.0.0.0/8 , ::1/128,", ["127.0.0.0/8", "::1/128"]],
])("%s=%p is read as %j", (name, text, expected) => {
  process.env[name] = text;
  expect(readSetting(name)).toEqual(expected);
});

test.each<[string, unknown]>([
  ["LAST_USED_RESOLUTION_SECONDS", 60],
  ["DUPLICATE_SECONDS", 75],
  ["DISABLE_AFTER_SECONDS", 432_000],
  ["RETRY_SCHEDULE", undefined],
  ["JWT_MAX_LIFETIME_SECONDS", 3600],
  ["JWT_CLOCK_SKEW_SECONDS", 60],
  ["STAGE", "local"],
  ["CORS_ORIGINS", []],
  ["WEBHOOK_ALLOW_CIDRS", []],
])("%s, unset or empty, has the default %j", (name, expected) => {
  delete process.env[name];
  expect(readSetting(name)).toEqual(expected);
  process.env[name] = "";
  expect(readSetting(name)).toEqual(expected);
});

const wholeSeconds = ["LAST_USED_RESOLUTION_SECONDS", "DISABLE_AFTER_SECONDS", "RETRY_SCHEDULE"];
const invalidTexts = ["1.5", "-1", "1e3", "5s", "ten", "0x10", "9999999999", "Infinity"];
test.each(wholeSeconds.flatMap((name) => invalidTexts.map((text) => [name, text])))(
  "%s=%s throws an error with the name and the value",
  (name, text) => {
    process.env[name] = text;
    expect(() => readSetting(name)).toThrow(
      new SettingError(`${name} accepts whole seconds, 0 or more, not "${text}"`),
    );
  },
);

test.each(["5,,300", ",5", "5,", "5;300", "5,-1"])(
  "RETRY_SCHEDULE=%s throws instead of returning a shorter schedule",
  (text) => {
    process.env.RETRY_SCHEDULE = text;
    expect(() => settings.retrySchedule()).toThrow(SettingError);
  },
);

test("RETRY_SCHEDULE may have 20 delays, but not 21", () => {
  process.env.RETRY_SCHEDULE = Array(20).fill("1").join(",");
  expect(settings.retrySchedule()).toEqual(Array(20).fill(1));
  process.env.RETRY_SCHEDULE += ",1";
  expect(() => settings.retrySchedule()).toThrow(
    new SettingError("RETRY_SCHEDULE must have at most 20 delays, not 21"),
  );
});

test.each<[string, string[]]>([
  ["", []],
  ["https://app.example.com", ["https://app.example.com"]],
  [" https://app.example.com , http://localhost:5173,", ["https://app.example.com", "http://localhost:5173"]],
])("CORS_ORIGINS=%p is read as %j", (text, expected) => {
  process.env.CORS_ORIGINS = text;
  expect(settings.corsOrigins()).toEqual(expected);
});

function readSetting(name: string): unknown {
  switch (name) {
    case "LAST_USED_RESOLUTION_SECONDS":
      return settings.lastUsedResolutionSeconds();
    case "DUPLICATE_SECONDS":
      return settings.duplicateSeconds();
    case "DISABLE_AFTER_SECONDS":
      return settings.disableAfterSeconds();
    case "RETRY_SCHEDULE":
      return settings.retrySchedule();
    case "JWT_MAX_LIFETIME_SECONDS":
      return settings.jwtMaxLifetimeSeconds();
    case "JWT_CLOCK_SKEW_SECONDS":
      return settings.jwtClockSkewSeconds();
    case "STAGE":
      return settings.stage();
    case "CORS_ORIGINS":
      return settings.corsOrigins();
    case "WEBHOOK_ALLOW_CIDRS":
      return settings.webhookAllowCidrs();
    default:
      throw new Error(`readSetting has no case for ${name}`);
  }
}

test.each([
  [undefined, false],
  ["", false],
  ["false", false],
  ["true", true],
])("JWT_REQUIRES_ISSUED_AT=%j is read as %j", (text, expected) => {
  if (text !== undefined) process.env.JWT_REQUIRES_ISSUED_AT = text;
  expect(settings.jwtRequiresIssuedAt()).toBe(expected);
});

test.each(["1", "TRUE", "yes"])("JWT_REQUIRES_ISSUED_AT=%j is rejected", (text) => {
  process.env.JWT_REQUIRES_ISSUED_AT = text;
  expect(() => settings.jwtRequiresIssuedAt()).toThrow(
    new SettingError(`JWT_REQUIRES_ISSUED_AT must be true or false, not "${text}"`),
  );
});
