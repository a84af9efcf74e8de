import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { metrics } from "../../functions/manifest/metrics.ts";
import { deadLetterName, queues } from "../../functions/manifest/queues.ts";
import { tables } from "../../functions/manifest/tables.ts";
import { stageNamed } from "../../lib/stages.ts";
import { type Json, Synthesised } from "../lib/synthesised.ts";
import { unknownIn } from "../support/log-queries.ts";

/* The runbook is read when nobody has time to find out that it is wrong. */

const root = join(import.meta.dirname, "../..");
const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
const prod = new Synthesised(stageNamed("prod"));
const alarms = prod.all("AWS::CloudWatch::Alarm");

/** GitHub's anchor of a heading. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
const headings = [...runbook.matchAll(/^(##+) (.+)$/gm)].map(([, marks = "", text = ""]) => ({
  level: marks.length,
  text,
}));
const anchors = headings.map(({ text }) => anchor(text));
const blocks = [...runbook.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(([, code = ""]) => code);
/** Everything that may be pasted, inline too; in a table, | is written \|. */
const commands = [
  ...blocks,
  ...[...runbook.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code.replaceAll("\\|", "|")),
].join("\n");
const all = (pattern: RegExp, text = commands) => [
  ...new Set([...text.matchAll(pattern)].map(([, found = ""]) => found)),
];

function section(name: string): string {
  const [, rest = ""] = runbook.split(new RegExp(`^## ${name}$`, "m"));
  return rest.split(/^## /m)[0] ?? "";
}

describe("alarms", () => {
  const sectionsNamed = alarms.map(
    ({ Properties }) => Properties.AlarmDescription.match(/docs\/runbook\.md#([\w-]+)$/)[1],
  );
  const alarmSections = all(/^### (.+)$/gm, section("Alarms"));

  test("each one names a section there is", () => {
    expect(alarms.length).toBeGreaterThan(10);
    expect([...new Set(sectionsNamed)].filter((name) => !alarmSections.includes(name))).toEqual([]);
  });

  test("each section belongs to one that can ring", () => {
    expect(alarmSections.filter((name) => !sectionsNamed.includes(name))).toEqual([]);
  });

  test.each(alarmSections)("%s says what it means for users, what to look at or do", (name) => {
    const [, rest = ""] = runbook.split(new RegExp(`^### ${name}$`, "m"));
    const text = rest.split(/^##/m)[0] ?? "";
    expect(text).toContain("**For users:**");
    expect(text).toMatch(/\*\*(Look|Do):\*\*/);
  });
});

test("no two headings share an anchor, and every link within leads to one", () => {
  expect(new Set(anchors).size).toBe(anchors.length);
  expect(all(/\]\(#([\w-]+)\)/g, runbook).filter((link) => !anchors.includes(link))).toEqual([]);
});

describe("commands", () => {
  test.each(blocks.map((code, index) => [index + 1, code]))("snippet %i is a shell script", (_, code) => {
    expect(() => execFileSync("bash", ["-n"], { input: String(code), stdio: ["pipe", "pipe", "pipe"] })).not.toThrow();
  });

  test("parts of the stack that they name are there, and are one", () => {
    const named = [
      ...[...commands.matchAll(/\bpart (AWS::\w+::\w+) (\w+)/g)].map(([, type = "", id = ""]) => [type, id] as const),
      ...all(/\bfn (\w+)/g).map((id) => ["AWS::Lambda::Function", id] as const),
      ...all(/\bask (\w+)/g).map((id) => ["AWS::Logs::LogGroup", id] as const),
      ...all(/`((?:Workers|Endpoints)\w+Logs)`/g, runbook).map((id) => ["AWS::Logs::LogGroup", id] as const),
    ];
    expect(named.length).toBeGreaterThan(10);
    for (const [type, id] of named) {
      const found = prod.all(type).filter((resource) => resource.id.startsWith(id));
      // Authorizer and sender have one each, and the snippet goes through them.
      if (type !== "AWS::CodeDeploy::Application") expect([id, found.length]).toEqual([id, 1]);
    }
  });

  test("outputs, tables, queues and the dashboard that they name are there", () => {
    expect(all(/\boutput ([A-Z]\w+)/g).filter((name) => !(name in prod.template.Outputs))).toEqual([]);
    const tableNames: string[] = Object.values(tables).map(({ name }) => name);
    expect(all(/\$STAGE-([a-z][a-z-]*)/g).filter((name) => !tableNames.includes(name))).toEqual([]);
    const queueNames: string[] = Object.values(queues).flatMap((row) => [row.name, deadLetterName(row)]);
    expect(all(/--queue ([\w-]+)/g).filter((name) => !queueNames.includes(name))).toEqual([]);
    const [dashboard] = prod.all("AWS::CloudWatch::Dashboard");
    expect(runbook).toContain(`\`${dashboard?.Properties.DashboardName}\``);
  });

  test("npm scripts are there", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const used = all(/npm run (?:--silent )?(\w+)/g);
    expect(used).toEqual(expect.arrayContaining(["dlq", "smoke"]));
    expect(used.filter((name) => !(name in scripts))).toEqual([]);
  });

  test("files are there", () => {
    const files = all(/`((?:lib|functions|docs|bin)\/[\w/.-]+\.\w+)`/g, runbook);
    expect(files.length).toBeGreaterThan(2);
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  test("metrics of AWS are ones that an alarm reads", () => {
    for (const name of all(/--metric-name (\w+)/g)) expect(JSON.stringify(alarms)).toContain(`"MetricName":"${name}"`);
  });

  test("attributes of rows are ones that the functions read or write", () => {
    const sources = execFileSync("grep", ["-rhoE", "\\b[a-z_]+\\b", join(root, "functions")], { encoding: "utf8" });
    const words = new Set(sources.split("\n"));
    const attributes = [
      ...all(/\b([a-z_]+)\.[SN]\b/g),
      ...all(/attribute_(?:not_)?exists\((\w+)\)/g),
      ...all(/AttributeName=(\w+)/g),
    ];
    expect(attributes.length).toBeGreaterThan(5);
    expect(attributes.filter((name) => !words.has(name))).toEqual([]);
    expect(commands).toContain(`AttributeName=${tables.deliveries.ttl}`);
  });
});

describe("queries of the logs", () => {
  const queries = [...commands.matchAll(/\bask (\$?\w+) \d+ '([^']+)'/g)].map(([, logs = "", query = ""]) => ({
    logs,
    query,
  }));

  test("are found", () => expect(queries.length).toBeGreaterThan(15));

  test.each(queries)("$logs: $query", ({ logs, query }) => {
    expect(unknownIn(query, logs === "AccessLog")).toEqual([]);
  });
});

test("the cost table has the alarms of the stack, without those that grow with each endpoint", () => {
  const isEndpoint = ({ Properties }: { Properties: Json }) => Properties.AlarmName.includes("endpoint-errors-");
  const isRollback = ({ Properties }: { Properties: Json }) => Properties.AlarmName.includes("-rollback-");
  const read = (some: typeof alarms) =>
    some.reduce(
      (count, { Properties }) => count + (Properties.Metrics?.filter(({ MetricStat }: Json) => MetricStat).length ?? 1),
      0,
    );
  const row = (some: typeof alarms) => [some.length, read(some), (read(some) / 10).toFixed(2)];
  const documented = [...section("What this costs").matchAll(/\| (\d+) alarms .*?(\d+) metrics.*\$([\d.]+) \|$/gm)].map(
    ([, count, metricCount, dollars]) => [Number(count), Number(metricCount), dollars],
  );
  const [watching, rollback] = [
    alarms.filter((alarm) => !isRollback(alarm) && !isEndpoint(alarm)),
    alarms.filter(isRollback),
  ];
  expect(documented).toEqual([row(watching), row(rollback)]);
  expect(runbook).toContain(`| ${Object.keys(metrics).length} metrics of our own`);
});

test("the stage's limits that open the front door again are those of prod", () => {
  const { requestsPerSecond, burst } = stageNamed("prod").throttle;
  expect(all(/^limit (\d+ \d+) +# open/gm)).toEqual([`${requestsPerSecond} ${burst}`]);
});
