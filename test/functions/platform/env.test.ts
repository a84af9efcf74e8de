import { type QueueKey, queues } from "../../../functions/manifest/queues.ts";
import { type TableKey, tables } from "../../../functions/manifest/tables.ts";
import { deadLetterUrl, queueUrl, settings, tableName } from "../../../functions/platform/env.ts";
import { SettingError } from "../../../functions/platform/errors.ts";

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
];

test("there are ten names: six tables, two queues, two dead letter queues", () => {
  expect(new Set(names.map(([name]) => name)).size).toBe(10);
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
  ["DELIVERY_GRACE_SECONDS", "30", 30],
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
  ["DELIVERY_GRACE_SECONDS", 120],
  ["DISABLE_AFTER_SECONDS", 432_000],
  ["RETRY_SCHEDULE", undefined],
  ["WEBHOOK_ALLOW_CIDRS", []],
])("%s, unset or empty, has the default %j", (name, expected) => {
  delete process.env[name];
  expect(readSetting(name)).toEqual(expected);
  process.env[name] = "";
  expect(readSetting(name)).toEqual(expected);
});

const wholeSeconds = [
  "LAST_USED_RESOLUTION_SECONDS",
  "DELIVERY_GRACE_SECONDS",
  "DISABLE_AFTER_SECONDS",
  "RETRY_SCHEDULE",
];
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
  "RETRY_SCHEDULE=%s throws instead of giving a shorter schedule",
  (text) => {
    process.env.RETRY_SCHEDULE = text;
    expect(() => settings.retrySchedule()).toThrow(SettingError);
  },
);

function readSetting(name: string): unknown {
  switch (name) {
    case "LAST_USED_RESOLUTION_SECONDS":
      return settings.lastUsedResolutionSeconds();
    case "DELIVERY_GRACE_SECONDS":
      return settings.deliveryGraceSeconds();
    case "DISABLE_AFTER_SECONDS":
      return settings.disableAfterSeconds();
    case "RETRY_SCHEDULE":
      return settings.retrySchedule();
    case "WEBHOOK_ALLOW_CIDRS":
      return settings.webhookAllowCidrs();
    default:
      throw new Error(`the test does not know ${name}`);
  }
}
