import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { helpPage, readArguments, UsageError } from "../../bin/command/command.ts";
import { drillProgram, readDrillOptions } from "../../bin/commands/drill.ts";
import { type DrillName, drills } from "../../bin/drill/drills.ts";
import { runDrills } from "../../bin/drill/run.ts";
import { SynthesizedStack } from "../lib/synthesized.ts";
import { AwsAccount, serveAwsAccount } from "../support/aws-account.ts";
import { commandHere } from "../support/command-here.ts";
import { eventually } from "../support/eventually.ts";
import { runCommand, startProgram } from "../support/local-run.ts";

/* `npm run drill` rings alarms by real faults, says which did not ring, and undoes what it did. */

const dev = new SynthesizedStack("devGradual");
const prod = new SynthesizedStack("prod");

let account: AwsAccount;
const aws = { AWS_ENDPOINT_URL: "", AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" };

const saved = { ...process.env };
beforeAll(async () => {
  aws.AWS_ENDPOINT_URL = await serveAwsAccount(() => account);
  Object.assign(process.env, aws);
  delete process.env.AWS_ENDPOINT_URL_SQS;
});
afterAll(() => {
  process.env = saved;
});

const alarm = (name: string) => account.alarms.get(name) as NonNullable<ReturnType<typeof account.alarms.get>>;
const never = new AbortController().signal;
const limits = { minuteMs: 40, pollMs: 8 };

async function drill(
  names: DrillName[],
  stage = "dev",
  { isConfirmed = false, interrupt = never, minuteMs = limits.minuteMs } = {},
) {
  const lines: string[] = [];
  const print = (line: string) => lines.push(line);
  const allRang = await runDrills({ names, stage, isConfirmed }, print, interrupt, { ...limits, minuteMs });
  return { allRang, lines, text: lines.join("\n") };
}

const names = Object.keys(drills) as DrillName[];

/** What a drill must have deleted when it has ended. */
const messages = () => [...account.queues.values()].flat();

describe("in dev", () => {
  beforeEach(() => {
    account = new AwsAccount(dev, { stage: "dev", isProtected: false });
    account.periodMs = 2 * limits.minuteMs;
  });

  test("each drill has an alarm, and each other alarm a command in the runbook", () => {
    const ofStage = [...account.alarms.keys()].flatMap(
      (name) => /^dev-((?:page|ticket)-.+?)(?:-\d+)?$/.exec(name)?.[1] ?? [],
    );
    const withDrill = ofStage.filter((name) => names.some((drill) => name.replace(/^\w+-/, "") === drill));
    expect(withDrill).toHaveLength(names.length);
    const commands = readFileSync(join(import.meta.dirname, "../../docs/runbook.md"), "utf8");
    const [, rest = ""] = commands.split("### Ring an alarm on purpose\n");
    const [section = ""] = rest.split("\n### ");
    const others = [...new Set(ofStage)].filter((name) => !withDrill.includes(name));
    expect(others.length).toBeGreaterThan(5);
    expect(others.filter((name) => !new RegExp(`\\b${name}(?!-?[a-z])`).test(section))).toEqual([]);
  });

  test.each(names)("%s rings for the reason that its drill causes, and nothing is left", async (name) => {
    const { allRang, text } = await drill([name]);
    expect({ allRang, text }).toMatchObject({ allRang: true });
    expect(text).toMatch(new RegExp(`rang +dev-(page|ticket)-${name}: after \\d+ s, and notified its topic`));
    expect(messages()).toEqual([]);
  });

  test("says when an alarm stays silent, and undoes the fault", async () => {
    alarm("dev-page-events-dead-letters").properties.Threshold = 2;
    const ended = { HistoryItemType: "StateUpdate", HistorySummary: "Alarm updated from ALARM to OK" };
    alarm("dev-page-events-dead-letters").history.push({ Timestamp: Date.now() / 1000 + 60, ...ended });
    const { allRang, text } = await drill(["events-dead-letters"]);
    expect(allRang).toBe(false);
    expect(text).toMatch(/SILENT {2}dev-page-events-dead-letters: did not ring within/);
    expect(messages()).toEqual([]);
  });

  test.each([
    ["has no action", /SILENT .*rang after \d+ s, but notified no topic/],
    [
      "may not publish",
      /SILENT .*rang after \d+ s, but Failed to execute action .*not authorized to perform: SNS:Publish/,
    ],
  ])("fails when an alarm rings but %s", async (fault, message) => {
    if (fault === "has no action") for (const { properties } of account.alarms.values()) delete properties.AlarmActions;
    else account.isTopicOpen = false;
    const { allRang, text } = await drill(["events-dead-letters"]);
    expect(allRang).toBe(false);
    expect(text).toMatch(message);
    expect(messages()).toEqual([]);
  });

  test("an interrupted drill still deletes its message", async () => {
    const interrupt = new AbortController();
    alarm("dev-page-events-dead-letters").properties.Threshold = 2;
    setTimeout(() => interrupt.abort(), 100);
    const { text } = await drill(["events-dead-letters"], "dev", { interrupt: interrupt.signal });
    expect(text).toContain("dev-page-events-dead-letters: interrupted");
    expect(text).not.toContain("LEFT BEHIND");
    expect(messages()).toEqual([]);
  });

  test.each([
    ["SendMessage", /SILENT {2}dev-page-events-dead-letters: .*not authorized: SendMessage/, false],
    ["DeleteMessage", /LEFT BEHIND: not authorized: DeleteMessage/, true],
  ])(
    "says what went wrong when it may not call %s, and names what it could not undo",
    async (action, message, isLeft) => {
      account.denied.add(action);
      const { allRang, text } = await drill(["events-dead-letters"]);
      expect({ allRang, isLeft: text.includes("LEFT BEHIND") }).toEqual({ allRang: false, isLeft });
      expect(text).toMatch(message);
    },
  );

  test("deletes only its own message from a dead-letter queue, and shows the others again", async () => {
    const queue = account.queue("deployment-webhooks-dev-deliveries-dlq");
    queue.push({ id: "other", body: "{}" });
    const { text } = await drill(["deliveries-dead-letters"]);
    expect(text).toContain("skip    dev-page-deliveries-dead-letters: is in ALARM already: find out why first");
    alarm("dev-page-deliveries-dead-letters").properties.Threshold += 1;
    expect(await drill(["deliveries-dead-letters"])).toMatchObject({ allRang: true });
    expect(queue).toEqual([{ id: "other", body: "{}", isHidden: false }]);
  });

  test("deletes a message that arrives in the dead-letter queue two minutes after the fault has ended", async () => {
    const { consumeEvents } = account;
    account.consumeEvents = () => void setTimeout(() => consumeEvents.call(account), 2 * limits.minuteMs);
    alarm("dev-page-events-dead-letters").properties.Threshold = 0;
    const { text } = await drill(["events-dead-letters"]);
    expect(text).not.toContain("LEFT BEHIND");
    expect(messages()).toEqual([]);
  });
});

describe("in a stage that keeps its data", () => {
  beforeEach(() => {
    account = new AwsAccount(prod, { stage: "prod", isProtected: true });
  });

  test("does nothing without --yes", async () => {
    await expect(drill(["events-dead-letters"], "prod")).rejects.toThrow("pass --yes to confirm");
    expect(new Set(account.calls.map(({ action }) => action))).toEqual(
      new Set(["DescribeStacks", "ListStackResources"]),
    );
  });

  test("rings the alarms with --yes", async () => {
    // Many at once: on a busy machine the answers would arrive after two short minutes.
    const minuteMs = 10 * limits.minuteMs;
    const { allRang, text } = await drill(names, "prod", { isConfirmed: true, minuteMs });
    expect({ allRang, text }).toMatchObject({ allRang: true });
    expect(messages()).toEqual([]);
  });
});

describe("the command line", () => {
  test("lists every drill with what it does and costs", () => {
    const page = helpPage(drillProgram);
    for (const name of names) {
      expect(page).toContain(`  ${name} `);
      expect(page).toContain(`costs: ${drills[name].costs}`);
    }
  });

  const read = (args: string[]) => {
    const { values, words } = readArguments(drillProgram, args);
    return readDrillOptions(values, words);
  };

  test.each<[string[], object | undefined]>([
    [[], undefined],
    [["--stage", "dev"], undefined],
    [["delivery-errors", "--stage", "dev"], { names: ["delivery-errors"], stage: "dev", isConfirmed: false }],
    [["all", "--stage", "prod", "--yes"], { names, stage: "prod", isConfirmed: true }],
  ])("parses %j", (args, expected) => {
    expect(read(args)).toEqual(expected);
  });

  test.each([
    [["delivery-errors"], "--stage must be the name of a stage"],
    [["nope", "--stage", "dev"], "No drill named nope"],
    [["toString", "--stage", "dev"], "No drill named toString"],
    [["delivery-errors", "events-dead-letters", "--stage", "dev"], "Pass one name, or all"],
    [["delivery-errors", "--stage", "dev!dev"], "--stage must be the name of a stage"],
    [["delivery-errors", "--stag", "dev"], "Unknown option '--stag'"],
  ])("rejects %j", (args, message) => {
    expect(() => read(args)).toThrow(UsageError);
    expect(() => read(args)).toThrow(message);
  });

  test("exits with 0 when the alarm rang, 1 without the stack or credentials, 2 on a usage error, 130 on Ctrl-C", async () => {
    account = new AwsAccount(dev, { stage: "dev", isProtected: false });
    const unsigned = { HOME: "/nonexistent", AWS_EC2_METADATA_DISABLED: "true", AWS_REGION: "us-east-1" };
    const missing = await commandHere("drill", ["delivery-errors", "--stage", "other"], aws);
    const wrong = await commandHere("drill", ["delivery-errors", "--stage"], aws);
    const [rang, noCredentials] = await Promise.all([
      runCommand("drill", ["deliveries-dead-letters", "--stage", "dev"], aws),
      runCommand("drill", ["delivery-errors", "--stage", "dev"], unsigned),
    ]);
    expect(rang).toMatchObject({ code: 0, stderr: "" });
    expect(rang.stdout).toContain("Drill finished: 1 rang, 0 silent, 0 skipped.");
    expect(missing).toMatchObject({ code: 1, stdout: "" });
    expect(missing.stderr).toBe(
      "DescribeStacks: ValidationError: Stack with id deployment-webhooks-other does not exist\n",
    );
    expect(noCredentials).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^DescribeStacks: .*Could not load credentials.*\. Set AWS_PROFILE and AWS_REGION\.\n$/,
      ),
    });
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toMatch(/^.*argument missing\.\nUsage: npm run --silent drill/);
    alarm("dev-page-events-dead-letters").properties.Threshold = 2;
    const interrupted = startProgram(["bin/run.cjs", "drill", "events-dead-letters", "--stage", "dev"], aws);
    await eventually(() => expect(messages()).toHaveLength(1));
    interrupted.kill("SIGINT");
    expect(await once(interrupted, "exit")).toEqual([130, null]);
    expect(messages()).toEqual([]);
  });
});
