import { execFileSync } from "node:child_process";
import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { deadLetterName, queues } from "../../functions/foundation/manifest/queues.ts";
import { tables } from "../../functions/foundation/manifest/tables.ts";
import { stackName } from "../../lib/names.ts";
import { stageNamed } from "../../lib/stages.ts";
import { everyOption } from "../lib/every-option.ts";
import { SynthesizedStack } from "../lib/synthesized.ts";
import { notLogged } from "../support/log-queries.ts";

/* The runbook and its scripts name only what exists: alarms, resources, outputs, log fields, files and settings. */

const root = join(import.meta.dirname, "../..");
const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
const scriptNames = readdirSync(join(root, "docs/runbook"));
const scripts = scriptNames.map((name) => readFileSync(join(root, "docs/runbook", name), "utf8"));
const prod = new SynthesizedStack("prod");
const alarms = prod.all("AWS::CloudWatch::Alarm");

/** Returns GitHub's anchor of a heading. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
const anchors = [...runbook.matchAll(/^##+ (.+)$/gm)].map(([, text = ""]) => anchor(text));
const blocks = [...runbook.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(([, code = ""]) => code);
/** All commands: blocks, inline code (where a table escapes | as \|) and the scripts. */
const commands = [
  ...blocks,
  ...[...runbook.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code.replaceAll("\\|", "|")),
  ...scripts,
].join("\n");
const all = (pattern: RegExp, text = commands) => [
  ...new Set([...text.matchAll(pattern)].map(([, found = ""]) => found)),
];

function section(name: string): string {
  const [, rest = ""] = runbook.split(new RegExp(`^## ${name}$`, "m"));
  return rest.split(/^## /m)[0] ?? "";
}

describe("alarms", () => {
  const namedSections: string[] = alarms.map(
    ({ Properties }) => Properties.AlarmDescription.match(/docs\/runbook\.md#([\w-]+)$/)[1],
  );
  const alarmSections = all(/^### (.+)$/gm, section("Alarms"));

  test("each alarm names an existing section", () => {
    expect(alarms.length).toBeGreaterThan(10);
    expect([...new Set(namedSections)].filter((name) => !alarmSections.includes(name))).toEqual([]);
  });

  test("the tasks have a list", () => {
    const tasks = section("Tasks");
    const [list = ""] = tasks.split(/^### /m);
    const linked = all(/\]\(#([\w-]+)\)/g, list);
    expect(linked).toEqual(all(/^### (.+)$/gm, tasks).map(anchor));
  });

  test("each section belongs to an alarm", () => {
    expect(alarmSections.filter((name) => !namedSections.includes(name))).toEqual([]);
  });

  test.each(alarmSections)("%s has a meaning, a check, a fix, and when it can wait", (name) => {
    const [, rest = ""] = runbook.split(new RegExp(`^### ${name}$`, "m"));
    const labels = all(/^\*\*(Meaning|Check|Fix|Can wait until morning if)\b/gm, rest.split(/^##/m)[0]);
    expect(labels).toEqual(["Meaning", "Check", "Fix", "Can wait until morning if"]);
  });
});

test("all headings have different anchors, and all links lead to one of them", () => {
  expect(new Set(anchors).size).toBe(anchors.length);
  expect(all(/\]\(#([\w-]+)\)/g, runbook).filter((link) => !anchors.includes(link))).toEqual([]);
  expect(all(/docs\/runbook\.md#([\w-]+)/g, scripts.join()).filter((link) => !anchors.includes(link))).toEqual([]);
});

test("the role that may reach the signing secrets is named as in the policy of their table", () => {
  const [{ Properties } = { Properties: {} }] = prod
    .all("AWS::DynamoDB::Table")
    .filter((table) => table.Properties.ResourcePolicy);
  expect(JSON.stringify(Properties.ResourcePolicy)).toContain(":role/deployment-webhooks-prod-break-glass");
  expect(runbook).toContain("one role, `deployment-webhooks-prod-break-glass`");
  expect(commands).toMatch(/ROLE=\$\{STACK\}-break-glass\n/);
});

describe("scripts", () => {
  test("are all mentioned in the runbook, and exist", () => {
    expect(all(/docs\/runbook\/([\w-]+\.sh)/g, runbook).sort()).toEqual([...scriptNames].sort());
  });

  test.each(scriptNames.filter((name) => name !== "tools.sh"))("%s is executable and prints its usage", (name) => {
    const path = join(root, "docs/runbook", name);
    expect(() => accessSync(path, constants.X_OK)).not.toThrow();
    expect(execFileSync(path, ["--help"], { encoding: "utf8" })).toContain(`Usage: STAGE=prod docs/runbook/${name}`);
  });
});

describe("commands", () => {
  test.each(blocks.map((code, index) => [index + 1, code]))("snippet %i is a shell script", (_, code) => {
    expect(() => execFileSync("bash", ["-n"], { input: String(code), stdio: ["pipe", "pipe", "pipe"] })).not.toThrow();
  });

  test("name resources of the stack that exist and are unique", () => {
    const named = [
      ...[...commands.matchAll(/\bpart (AWS::\w+::\w+) (\w+)/g)].map(([, type = "", id = ""]) => [type, id] as const),
      ...all(/\bfn (\w+)/g, runbook).map((id) => ["AWS::Lambda::Function", id] as const),
      ...all(/\bask (\w+) \d/g).map((id) => ["AWS::Logs::LogGroup", id] as const),
      ...all(/\b((?:Workers\w+|Endpoints)Logs)\b/g, runbook).map((id) => ["AWS::Logs::LogGroup", id] as const),
    ];
    expect(named.length).toBeGreaterThan(10);
    for (const [type, id] of named) {
      const found = prod.all(type).filter((resource) => resource.id.startsWith(id));
      expect([id, found.length]).toEqual([id, 1]);
    }
  });

  test("name outputs, tables, queues and a dashboard that exist", () => {
    expect(all(/\boutput ([A-Z]\w+)/g, runbook).filter((name) => !(name in prod.outputs))).toEqual([]);
    const tableNames: string[] = Object.values(tables).map(({ name }) => name);
    const namedTables = all(/\$STACK-([a-z][a-z-]*)/g);
    expect(namedTables.length).toBeGreaterThan(3);
    expect(namedTables.filter((name) => !tableNames.includes(name))).toEqual([]);
    const queueNames: string[] = Object.values(queues).flatMap((row) => [row.name, deadLetterName(row)]);
    expect(all(/--queue ([\w-]+)/g).filter((name) => !queueNames.includes(name))).toEqual([]);
    const [dashboard] = prod.all("AWS::CloudWatch::Dashboard");
    expect(dashboard?.Properties.DashboardName["Fn::Join"][1]).toEqual(["test-prod-", { Ref: "AWS::Region" }]);
    expect(runbook).toContain(`\`${stackName(stageNamed("prod"))}-<region>\``);
  });

  test("move a stage with every option that is bound to a region", () => {
    const [, rest = ""] = runbook.split(/^### Move a stage to another region$/m);
    const [moving = ""] = rest.split(/^##/m);
    // A certificate of CloudFront is in us-east-1 wherever the stage is.
    const isRegional = (value: unknown) => /"arn:aws:\w+:(?!us-east-1)[a-z]+-[a-z]+-\d:/.test(JSON.stringify(value));
    const paths = Object.entries(everyOption).flatMap(([name, value]): [path: string, value: unknown][] =>
      Array.isArray(value) || typeof value !== "object"
        ? [[name, value]]
        : Object.entries(value).map(([part, inner]) => [`${name}.${part}`, inner]),
    );
    const regional = paths.filter(([, value]) => isRegional(value)).map(([path]) => path);
    expect(regional.length).toBeGreaterThan(4);
    expect([...regional, "kmsKey"].filter((path) => !moving.includes(`\`${path}\``))).toEqual([]);
    const copied = [...moving.matchAll(/^ *copy ([\w-]+) (\w+)$/gm)].map(([, name, key]) => [name, key]);
    // Items of a minute and of a day.
    const temporary: string[] = ["request-budgets", "idempotency-keys", "revocations"];
    const kept = Object.values(tables).filter(({ name }) => !temporary.includes(name));
    expect(copied.sort()).toEqual(kept.map(({ name, partitionKey }) => [name, partitionKey]).sort());
  });

  test("move a stage only after its old region has stopped sending: sweep first, then both senders, then the rows", () => {
    const [, rest = ""] = runbook.split(/^### Move a stage to another region$/m);
    const [moving = ""] = rest.split(/^##/m);
    const steps = ["disable-rule", "old counts", "--no-enabled", "LatestRestorableDateTime", "copy deliveries"].map(
      (command) => moving.indexOf(command === "old counts" ? "   old counts\n" : command),
    );
    expect(steps).not.toContain(-1);
    expect(steps).toEqual(steps.toSorted((a, b) => a - b));
    const [prefix = ""] = all(/part AWS::Lambda::EventSourceMapping '(\w+)'/g, moving);
    const senders = prod.all("AWS::Lambda::EventSourceMapping").filter(({ id }) => id.startsWith(prefix));
    expect(senders.map(({ Properties }) => prod.target(Properties.EventSourceArn).id).sort()).toEqual(
      prod
        .all("AWS::SQS::Queue")
        .map(({ id }) => id)
        .filter((id) => /^Queues(Slow)?Deliveries(?!DeadLetters)/.test(id))
        .sort(),
    );
    for (const needed of ["`AWS_REGION`", "`Resource`"]) expect(moving).toContain(needed);
  });

  test("turn off the termination protection before they delete a stack", () => {
    const deleting = blocks.filter((code) => code.includes("aws cloudformation delete-stack"));
    expect(deleting).toHaveLength(2);
    for (const code of deleting) expect(code).toMatch(/--no-enable-termination-protection\n[\s\S]*delete-stack/);
    expect(runbook).not.toMatch(/`aws cloudformation delete-stack/);
  });

  test("restore a table with its name and partition key", () => {
    const restored = [...runbook.matchAll(/restore-table\.sh copy-rows ([\w-]+) (\w+)/g)];
    expect(restored.length).toBeGreaterThan(0);
    const keys = Object.fromEntries(Object.values(tables).map(({ name, partitionKey }) => [name, partitionKey]));
    for (const [, name = "", key] of restored) expect(key).toBe(keys[name]);
  });

  test("name npm scripts that exist", () => {
    const packageJson = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const used = all(/npm run (?:--silent )?(\w+)/g);
    expect(used).toEqual(expect.arrayContaining(["dlq", "smoke"]));
    expect(used.filter((name) => !(name in packageJson.scripts))).toEqual([]);
  });

  test("query metrics of AWS that an alarm reads", () => {
    const names = all(/--metric-name (\w+)/g);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect(JSON.stringify(alarms)).toContain(`"MetricName":"${name}"`);
  });

  test("use attributes that the functions read or write", () => {
    const sources = execFileSync("grep", ["-rhoE", "\\b[a-z_]+\\b", join(root, "functions")], { encoding: "utf8" });
    const words = new Set(sources.split("\n"));
    const attributes = [
      ...all(/\b([a-z_]+)\.[SN]\b/g),
      ...all(/\\?"([a-z_]+)\\?":\{\\?"[SN]\\?"/g),
      ...all(/attribute_(?:not_)?exists\((\w+)\)/g),
      ...all(/AttributeName=(\w+)/g),
    ];
    expect(attributes.length).toBeGreaterThan(5);
    expect(attributes.filter((name) => !words.has(name))).toEqual([]);
    expect(commands).toContain(`attribute=${tables.deliveries.ttl}`);
  });
});

describe("log queries", () => {
  const queries = [...commands.matchAll(/\bask (\$?\w+) \d+ '([^']+)'/g)].map(([, logs = "", query = ""]) => ({
    logs,
    query,
  }));

  test("are found in the runbook", () => expect(queries.length).toBeGreaterThan(15));

  test.each(queries)("$logs: $query", ({ logs, query }) => {
    expect(notLogged(query, logs === "AccessLog")).toEqual([]);
  });
});

test("the limits that open the API again are those of prod", () => {
  const { requestsPerSecond, burst } = stageNamed("prod").throttle;
  expect(all(/^docs\/runbook\/set-throttle\.sh (\d+ \d+) +# open/gm)).toEqual([`${requestsPerSecond} ${burst}`]);
});
