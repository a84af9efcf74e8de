import { metrics } from "../../../functions/manifest/metrics.ts";
import { queues } from "../../../functions/manifest/queues.ts";
import { tables } from "../../../functions/manifest/tables.ts";
import { stageNamed } from "../../../lib/stages.ts";
import { unknownIn } from "../../support/log-queries.ts";
import { dev, type Json, only, Synthesised } from "../synthesised.ts";

interface Widget {
  type: string;
  x: number;
  y: number;
  width: number;
  height: number;
  properties: Json;
}

/** The dashboard's widgets, with the logical id in place of each reference. */
function widgetsOf(synthesised: Synthesised): Widget[] {
  const { DashboardBody } = only(synthesised.all("AWS::CloudWatch::Dashboard")).Properties;
  const parts: Json[] = DashboardBody["Fn::Join"][1];
  const text = parts.map((part) => (typeof part === "string" ? part : (part.Ref ?? part["Fn::GetAtt"][0]))).join("");
  return JSON.parse(text).widgets;
}

const widgets = widgetsOf(dev);
const titled = (title: string) => only(widgets.filter(({ properties }) => properties.title === title)).properties;
const everything = JSON.stringify(widgets);
const idOf = (id: string) => expect.stringContaining(id);

test("begins with how to read it, then with the state of every alarm", () => {
  const [guide, alarms] = widgets;
  expect(guide?.properties.markdown).toMatch(/is it us or them\?/);
  const watching = dev
    .all("AWS::CloudWatch::Alarm")
    .filter(({ Properties }) => !Properties.AlarmName.includes("-rollback-"));
  expect(alarms).toMatchObject({ type: "alarm", y: guide?.height });
  expect([...(alarms?.properties.alarms ?? [])].sort()).toEqual(watching.map(({ id }) => id).sort());
});

test("shows ours above theirs, then the front door, then what may run out", () => {
  const headings = widgets.filter(({ type }) => type === "text").slice(1);
  const names = headings.map(({ properties }) => properties.markdown.match(/^## ([\w ]+):/)[1]);
  expect(names).toEqual(["Ours", "Theirs", "Front door", "Capacity"]);
  expect(headings.map(({ y }) => y)).toEqual(headings.map(({ y }) => y).sort((a, b) => a - b));
});

test("is one page of moderate length, on which nothing covers anything", () => {
  expect(widgets.length).toBeLessThanOrEqual(50);
  const cells = widgets.flatMap(({ x, y, width, height }) => {
    expect(x + width).toBeLessThanOrEqual(24);
    return Array.from({ length: width * height }, (_, cell) => `${x + (cell % width)},${y + Math.floor(cell / width)}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
});

test.each(Object.values(metrics))("shows $name", ({ name }) => {
  expect(new RegExp(`"${name}\\\\?"`).test(everything)).toBe(true);
});

test("shows metrics with a dimension of their own by its values, whatever these are", () => {
  const search = (title: string) => titled(title).metrics[0][0].expression;
  expect(search("Attempts by outcome")).toBe(
    `SEARCH('{DeploymentWebhooks,stage,outcome} MetricName="Attempts" stage="dev"', 'Sum', 60)`,
  );
  expect(search("Credentials refused, by reason")).toBe(
    `SEARCH('{DeploymentWebhooks,stage,reason} MetricName="RejectedCredentials" stage="dev"', 'Sum', 60)`,
  );
  expect(titled("Attempts by outcome").stacked).toBe(true);
});

test("shows every queue, its dead letters and every table", () => {
  expect(titled("Oldest message").metrics).toHaveLength(Object.keys(queues).length);
  expect(titled("Dead letters").metrics.length).toBeGreaterThan(Object.keys(queues).length);
  for (const title of ["Read units", "Write units"]) {
    expect(titled(title).metrics).toHaveLength(Object.keys(tables).length);
  }
  expect(titled("Oldest message").metrics[0]).toEqual(expect.arrayContaining(["QueueName", idOf("QueuesEvents")]));
});

test("every graph begins at zero: half of a scale looks like an outage", () => {
  const graphs = widgets.filter(({ type }) => type === "metric");
  expect(graphs.length).toBeGreaterThan(10);
  for (const { properties } of graphs) expect(properties.yAxis.left.min).toBe(0);
});

describe("tables of the log", () => {
  const queries = widgets.filter(({ type }) => type === "log").map(({ properties }) => properties);

  test.each(queries.map(({ title, query }) => [title, query]))("%s asks for what is logged", (_, query) => {
    const [source, ...lines] = query.split("\n| ");
    expect(source).toMatch(/^SOURCE '/);
    expect(unknownIn(lines.join(" | "), false)).toEqual([]);
  });

  test("read the logs of those who write these lines", () => {
    for (const title of ["Failing webhooks", "Busiest projects"]) {
      expect(titled(title).query).toMatch(/^SOURCE 'WorkersAttemptsSendLogs\w{8}' \|/);
    }
    expect(titled("Our own failures, which bring a message back").query).toMatch(/FanOutLogs\w{8}.*AttemptsSendLogs/);
  });
});

test("has a name by which it is found, in every stage", () => {
  for (const name of ["dev", "prod"]) {
    const { DashboardName } = only(new Synthesised(stageNamed(name)).all("AWS::CloudWatch::Dashboard")).Properties;
    expect(DashboardName).toBe(`${name}-deployment-webhooks`);
  }
});

test("the same sources make the same dashboard", () => {
  expect(widgetsOf(new Synthesised(stageNamed("dev")))).toEqual(widgets);
});
