import { metrics } from "../../../functions/foundation/manifest/metrics.ts";
import { notLogged } from "../../support/log-queries.ts";
import { dev, type Json, only, SynthesizedStack } from "../synthesized.ts";
import { isRollback } from "./alarm-summary.ts";

interface Widget {
  type: string;
  x: number;
  y: number;
  width: number;
  height: number;
  properties: Json;
}

/** Returns the widgets of the dashboard, with logical ids instead of references. */
function widgetsOf(stack: SynthesizedStack): Widget[] {
  const { DashboardBody } = only(stack.all("AWS::CloudWatch::Dashboard")).Properties;
  const parts: Json[] = DashboardBody["Fn::Join"][1];
  const text = parts.map((part) => (typeof part === "string" ? part : (part.Ref ?? part["Fn::GetAtt"][0]))).join("");
  return JSON.parse(text).widgets;
}

const widgets = widgetsOf(dev);
const titled = (title: string) => only(widgets.filter(({ properties }) => properties.title === title)).properties;
const everything = JSON.stringify(widgets);

test("the dashboard begins with a guide and the state of every alarm", () => {
  const [guide, alarms] = widgets;
  expect(guide?.properties.markdown).toMatch(/is it us or them\?/);
  const stageAlarms = dev.all("AWS::CloudWatch::Alarm").filter((alarm) => !isRollback(alarm));
  expect(alarms).toMatchObject({ type: "alarm", y: guide?.height });
  expect([...(alarms?.properties.alarms ?? [])].sort()).toEqual(stageAlarms.map(({ id }) => id).sort());
});

test("the dashboard shows our side, then the receivers, the API and the capacity", () => {
  const headings = widgets.filter(({ type }) => type === "text").slice(1);
  const names = headings.map(({ properties }) => properties.markdown.match(/^## ([\w ]+):/)[1]);
  expect(names).toEqual(["Us", "Them", "API", "Capacity"]);
  expect(headings.map(({ y }) => y)).toEqual(headings.map(({ y }) => y).sort((a, b) => a - b));
});

test("the dashboard has at most 50 widgets, and none overlap", () => {
  expect(widgets.length).toBeLessThanOrEqual(50);
  const cells = widgets.flatMap(({ x, y, width, height }) => {
    expect(x + width).toBeLessThanOrEqual(24);
    return Array.from({ length: width * height }, (_, cell) => `${x + (cell % width)},${y + Math.floor(cell / width)}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
});

test.each(Object.values(metrics))("the dashboard shows $name", ({ name }) => {
  expect(new RegExp(`"${name}\\\\?"`).test(everything)).toBe(true);
});

test("the dashboard shows a metric with its own dimension as one line per value", () => {
  const search = (title: string) => titled(title).metrics[0][0].expression;
  expect(search("Attempts by outcome")).toBe(
    `SEARCH('{DeploymentWebhooks,stage,outcome} MetricName="Attempts" stage="dev"', 'Sum', 60)`,
  );
  expect(search("Rejected credentials by reason")).toBe(
    `SEARCH('{DeploymentWebhooks,stage,reason} MetricName="RejectedCredentials" stage="dev"', 'Sum', 60)`,
  );
});

test("every graph begins at zero, so that small changes do not look like outages, and parts of a whole are stacked", () => {
  const graphs = widgets.filter(({ type }) => type === "metric");
  expect(graphs.length).toBeGreaterThan(10);
  for (const { properties } of graphs) expect(properties.yAxis.left.min).toBe(0);
  const stacked = graphs.flatMap(({ properties }) => (properties.stacked ? properties.title : []));
  expect(stacked).toEqual(["Attempts by outcome", "Rejected credentials by reason", "Read units", "Write units"]);
});

describe("tables of log queries", () => {
  const queries = widgets.filter(({ type }) => type === "log").map(({ properties }) => properties);

  test.each(queries.map(({ title, query }) => [title, query]))(
    "%s queries fields and messages that are logged",
    (_, query) => {
      const [source, ...lines] = query.split("\n| ");
      expect(source).toMatch(/^SOURCE '/);
      expect(notLogged(lines.join(" | "), false)).toEqual([]);
    },
  );

  test("query the log groups of the functions that write these lines", () => {
    for (const title of ["Failing webhooks", "Busiest projects"]) {
      expect(titled(title).query).toMatch(
        /^SOURCE 'WorkersAttemptsSendLogs\w{8}' \| SOURCE 'WorkersAttemptsSendSlowLogs\w{8}' \|/,
      );
    }
    expect(titled("Failed messages (internal errors, received again)").query).toMatch(
      /FanOutLogs\w{8}.*AttemptsSendLogs\w{8}.*AttemptsSendSlowLogs/,
    );
  });
});

/** The lines of each graph that does not follow from the rows: `<statistic> <metric>`, or the expression. */
const lines = {
  "Event to first attempt": ["p50 EventToFirstAttempt", "p99 EventToFirstAttempt"],
  "Oldest message": [
    ...Array(3).fill("Maximum ApproximateAgeOfOldestMessage"),
    "Maximum ApproximateAgeOfOldestMessageInQuietGroups",
    "Maximum FailedMessageAge",
  ],
  Messages: [
    "Maximum ApproximateNumberOfMessagesVisible",
    "Maximum ApproximateNumberOfMessagesVisible",
    "Maximum ApproximateNumberOfMessagesNotVisible",
    "Maximum ApproximateNumberOfMessagesDelayed",
    "Maximum ApproximateNumberOfMessagesVisible",
    "Maximum ApproximateNumberOfMessagesNotVisible",
    "Maximum ApproximateNumberOfMessagesDelayed",
  ],
  "Function errors (crashes, timeouts)": [
    ...Array(17).fill("Sum Errors"),
    Array.from({ length: 44 }, (_, index) => `e${index}`).join(" + "),
    ...Array(44).fill("Sum Errors"),
  ],
  "Function throttles": Array(17).fill("Sum Throttles"),
  "Sweep and notifications": ["Maximum SweepLag", "Maximum NotificationLag", "Sum Redriven"],
  "Dead letters": [
    ...Array(3).fill("Maximum ApproximateNumberOfMessagesVisible"),
    "Sum RejectedEvents",
    "Sum MessagesFailed",
  ],
  "Successful first attempts": ["100 * success", "Average FirstAttemptSuccess"],
  "Event to success (retries included)": ["p50 DeliveryLatency", "p99 DeliveryLatency"],
  "Retries and failed deliveries": ["Sum Retries", "Sum Exhausted"],
  "Disabled webhooks and blocked addresses": ["Sum WebhooksDisabled", "Sum BlockedAddresses"],
  Requests: ["SampleCount Count", "Sum 4XXError", "Sum ServerErrors"],
  Latency: ["p50 Latency", "p99 Latency"],
  "Read units": Array(16).fill("Sum ConsumedReadCapacityUnits"),
  "Write units": Array(16).fill("Sum ConsumedWriteCapacityUnits"),
  "Concurrent executions": ["Maximum ClaimedAccountConcurrency", ...Array(3).fill("Maximum ConcurrentExecutions")],
};

test.each(Object.entries(lines))("%s shows these metrics, per minute", (title, expected) => {
  const found = titled(title).metrics.map((line: Json[]) => {
    const { expression, stat = "Average", period } = line.at(-1);
    expect(period).toBe(60);
    return expression ?? `${stat} ${line[1]}`;
  });
  expect(found).toEqual(expected);
});

test("the dashboard opens with the last three hours", () => {
  expect(JSON.stringify(dev.all("AWS::CloudWatch::Dashboard"))).toContain('\\"start\\":\\"-PT3H\\"');
});

test.each(["dev", "prod"] as const)(
  "the dashboard is named after its stack and region in %s: an account has one list of dashboards",
  (name) => {
    const { DashboardName } = only(new SynthesizedStack(name).all("AWS::CloudWatch::Dashboard")).Properties;
    expect(DashboardName).toEqual({ "Fn::Join": ["", [`test-${name}-`, { Ref: "AWS::Region" }]] });
  },
);
