import { createHash, randomUUID } from "node:crypto";
import http from "node:http";
import { text } from "node:stream/consumers";
import { evaluate } from "../lib/observability/metric-math.ts";
import type { Json, SynthesizedStack } from "../lib/synthesized.ts";
import { listening } from "./listening.ts";

/*
 * An AWS account with one deployed stage, over HTTP, in the protocols of the APIs that operators' programs call. Its
 * resources are those of a synthesized template. Its alarms ring when their own expressions say so, over metrics that
 * follow from what the caller does: an event that is not valid becomes a dead letter, a call without an input an error.
 * Shapes: the service models of AWS, https://github.com/boto/botocore/tree/develop/botocore/data
 */

const REGION = "us-east-1";
const ACCOUNT = "111122223333";

interface Alarm {
  properties: Json;
  state: string;
  /** Seconds since the epoch. */
  history: { Timestamp: number; HistoryItemType: string; HistorySummary: string }[];
}

interface Call {
  service: string;
  action: string;
  input: Json;
}

/** An error response. */
class Rejection extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message = "") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const metricKey = ({ Namespace, MetricName, Dimensions = [] }: Json): string =>
  [Namespace, MetricName, ...Dimensions.map(({ Name, Value }: Json) => `${Name}=${Value}`).sort()].join(" ");

/** Values exist of metrics of which alarms read the maximum or the sum. */
const statistic = (name: string, values: number[]): number =>
  name === "Maximum" ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0);

interface QueuedMessage {
  id: string;
  body: string;
  /** Received a moment ago. */
  isHidden?: boolean;
}

export class AwsAccount {
  readonly calls: Call[] = [];
  readonly alarms = new Map<string, Alarm>();
  readonly queues = new Map<string, QueuedMessage[]>();
  /** Values of metrics in the current period, by metricKey. */
  readonly values = new Map<string, number[]>();
  /** The metrics that ListMetrics returns: at first all that an alarm reads. */
  listed: Json[];
  /** Length of a period: written values count for as long after the latest one. */
  periodMs = Number.POSITIVE_INFINITY;
  writtenAtMs = 0;
  /** False: the topic does not let CloudWatch publish. */
  isTopicOpen = true;
  /** Texts in expressions that GetMetricData rejects, or evaluates without a value. */
  readonly invalidExpressions = new Set<string>();
  readonly notedExpressions = new Set<string>();
  /** Rejects calls of these actions. */
  readonly denied = new Set<string>();
  readonly #stack: SynthesizedStack;
  readonly stage: string;
  /** Host of the latest request, for the URLs of queues. */
  host = "";
  readonly #physical = new Map<string, string>();
  readonly isProtected: boolean;

  constructor(stack: SynthesizedStack, { stage, isProtected }: { stage: string; isProtected: boolean }) {
    this.#stack = stack;
    this.stage = stage;
    this.isProtected = isProtected;
    for (const [id, resource] of Object.entries<Json>(stack.template.Resources)) {
      this.#physical.set(id, this.#nameFor(id, resource));
    }
    for (const { id, Properties } of stack.all("AWS::CloudWatch::Alarm")) {
      const properties = this.resolve(Properties);
      this.#physical.set(id, properties.AlarmName);
      this.alarms.set(properties.AlarmName, { properties, state: "OK", history: [] });
    }
    for (const { Properties } of stack.all("AWS::SQS::Queue")) this.queues.set(Properties.QueueName, []);
    this.listed = structuredClone([...this.alarms.values()].flatMap(({ properties }) => metricsIn(properties)));
  }

  #nameFor(id: string, { Type, Properties }: Json): string {
    if (Type === "AWS::SQS::Queue") return Properties.QueueName;
    if (Type === "AWS::ApiGateway::Stage") return Properties.StageName;
    return `physical-${id}`;
  }

  /** Resolves the intrinsic functions in a part of the template. */
  resolve(value: Json): Json {
    if (Array.isArray(value)) return value.map((each) => this.resolve(each));
    if (typeof value !== "object" || value === null) return value;
    if (value.Ref !== undefined) return this.#physical.get(value.Ref) ?? value.Ref;
    if (value["Fn::GetAtt"]) return this.#physical.get(value["Fn::GetAtt"][0]);
    if (value["Fn::Join"]) return this.resolve(value["Fn::Join"][1]).join(value["Fn::Join"][0]);
    if (value["Fn::Split"]) return this.resolve(value["Fn::Split"][1]).split(value["Fn::Split"][0]);
    if (value["Fn::Select"]) return this.resolve(value["Fn::Select"][1])[value["Fn::Select"][0]];
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.resolve(each)]));
  }

  /** Answers a request. */
  respond({ method = "", url = "", headers }: http.IncomingMessage, body: string): [number, Json, string] {
    const scope =
      /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/([\w-]+)\/([\w-]+)\/aws4_request, SignedHeaders=\S*host\S*, /;
    const [, region, service = ""] = scope.exec(headers.authorization ?? "") ?? [];
    const isXml = service === "cloudformation";
    try {
      if (region !== REGION) throw new Rejection(403, "SignatureDoesNotMatch", `region ${region}`);
      const [action, input] = actionOf(service, method, url, headers, body);
      this.host = headers.host ?? "";
      this.calls.push({ service, action, input });
      if (this.denied.has(action)) throw new Rejection(403, "AccessDeniedException", `not authorized: ${action}`);
      const handle = handlers[action];
      if (!handle) throw new Rejection(400, "UnknownOperationException", action);
      const output = handle(this, input);
      return [200, {}, typeof output === "string" ? output : output === undefined ? "" : JSON.stringify(output)];
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      const { status, code, message } = error;
      const xml = `<ErrorResponse><Error><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`;
      if (isXml) return [status, {}, xml];
      return [status, { "x-amzn-errortype": `${code}:http://internal/` }, JSON.stringify({ __type: code, message })];
    }
  }

  get resources(): { type: string; id: string; name: string; status?: string }[] {
    return Object.entries<Json>(this.#stack.template.Resources).map(([id, { Type }]) => ({
      type: Type,
      id,
      name: this.#physical.get(id) as string,
    }));
  }

  add(metric: Json, ...values: number[]): void {
    const key = metricKey(metric);
    this.values.set(key, [...(this.values.get(key) ?? []), ...values]);
  }

  queue(url: string): QueuedMessage[] {
    const found = this.queues.get(url.replace(/^.*\//, ""));
    if (!found) throw new Rejection(400, "QueueDoesNotExist");
    return found;
  }

  /** The fan-out moves every event to its dead-letter queue: those of drills are not valid. */
  consumeEvents(): void {
    const [events, deadLetters] = ["deployment-events", "deployment-events-dlq"].map((name) =>
      this.queue(`deployment-webhooks-${this.stage}-${name}`),
    );
    deadLetters?.push(...(events?.splice(0) ?? []));
  }

  /** Returns the values of a metric in the current period. */
  #valuesOf(metric: Json): number[] {
    if (Date.now() - this.writtenAtMs > this.periodMs) this.values.clear();
    const written = this.values.get(metricKey(metric)) ?? [];
    const waiting = this.queues.get(metric.Dimensions?.[0]?.Value)?.length ?? 0;
    if (metric.MetricName === "ApproximateNumberOfMessagesVisible") return [waiting];
    return written;
  }

  /** Evaluates all alarms, as CloudWatch does every minute. */
  evaluate(): void {
    for (const [name, alarm] of this.alarms) {
      if (alarm.properties.Metrics?.some(({ Expression = "" }) => Expression.includes("SERVICE_QUOTA"))) continue;
      this.setState(name, this.#isBad(alarm.properties) ? "ALARM" : "OK");
    }
  }

  #isBad(properties: Json): boolean {
    const value = this.#valueOf(properties);
    if (value === undefined) return properties.TreatMissingData === "breaching";
    const isBelow = properties.ComparisonOperator === "LessThanThreshold";
    return isBelow ? value < properties.Threshold : value >= properties.Threshold;
  }

  #valueOf(properties: Json): number | undefined {
    const of = (metric: Json, stat: string) => {
      const values = this.#valuesOf(metric);
      return values.length === 0 ? undefined : statistic(stat, values);
    };
    if (!properties.Metrics) return of(properties, properties.Statistic ?? properties.ExtendedStatistic);
    const { Expression } = properties.Metrics.find((each: Json) => each.Expression);
    const metricOf = (id: string) => {
      const { MetricStat } = properties.Metrics.find(({ Id }: Json) => Id === id);
      return of(MetricStat.Metric, MetricStat.Stat);
    };
    return evaluate(Expression, { metricOf, quotaOf: () => 1_000 });
  }

  setState(name: string, state: string): void {
    const alarm = this.alarms.get(name) as Alarm;
    if (alarm.state === state) return;
    const Timestamp = Date.now() / 1000;
    alarm.history.push({
      Timestamp,
      HistoryItemType: "StateUpdate",
      HistorySummary: `Alarm updated from ${alarm.state} to ${state}`,
    });
    alarm.state = state;
    for (const topic of state === "ALARM" ? (alarm.properties.AlarmActions ?? []) : []) {
      const HistorySummary = this.isTopicOpen
        ? `Successfully executed action ${topic}`
        : `Failed to execute action ${topic}. Received error: "not authorized to perform: SNS:Publish"`;
      alarm.history.push({ Timestamp, HistoryItemType: "Action", HistorySummary });
    }
  }

  invoke(name: string): void {
    this.writtenAtMs = Date.now();
    const metric = (MetricName: string) => ({
      Namespace: "AWS/Lambda",
      MetricName,
      Dimensions: [{ Name: "FunctionName", Value: name }],
    });
    this.add(metric("Errors"), 1);
  }
}

/**
 * Starts a server that answers as the account which `current` returns.
 * @returns its base URL, for AWS_ENDPOINT_URL
 */
export async function serveAwsAccount(current: () => AwsAccount): Promise<string> {
  const server = http.createServer(async (request, response) => {
    const [status, headers, content] = current().respond(request, await text(request));
    response.writeHead(status, headers).end(content);
  });
  return listening(server);
}

function metricsIn(properties: Json): Json[] {
  if (!properties.Metrics) return [properties];
  return properties.Metrics.flatMap(({ MetricStat }: Json) => (MetricStat ? [MetricStat.Metric] : []));
}

/** Returns the name of the operation and its input, from the protocol of the service. */
function actionOf(
  service: string,
  method: string,
  url: string,
  headers: http.IncomingHttpHeaders,
  body: string,
): [string, Json] {
  if (service === "cloudformation") {
    const input = Object.fromEntries(new URLSearchParams(body));
    return [String(input.Action), input];
  }
  const target = /^(?:GraniteServiceVersion20100801|AmazonSQS)\.(\w+)$/;
  const action = target.exec(String(headers["x-amz-target"] ?? ""))?.[1];
  if (action !== undefined) return [action, JSON.parse(body)];
  const [, name] = /^\/2015-03-31\/functions\/([\w-]+)\/invocations$/.exec(url) ?? [];
  if (name !== undefined && method === "POST") return ["Invoke", { name }];
  throw new Rejection(404, "UnknownRoute", `${method} ${url}`);
}

const md5 = (body: string) => createHash("md5").update(body).digest("hex");

/** Resources per page of ListStackResources. */
const PAGE = 100;
/** CloudFormation also lists what an update has removed. */
const removed: AwsAccount["resources"][number] = {
  type: "AWS::Lambda::Alias",
  id: "Removed",
  name: "removed",
  status: "DELETE_COMPLETE",
};

const handlers: Record<string, (account: AwsAccount, input: Json) => unknown> = {
  DescribeStacks(account, { StackName }) {
    if (StackName !== `deployment-webhooks-${account.stage}`) {
      throw new Rejection(400, "ValidationError", `Stack with id ${StackName} does not exist`);
    }
    return `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><EnableTerminationProtection>${account.isProtected}</EnableTerminationProtection></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`;
  },
  ListStackResources({ resources }, { NextToken = "0" }) {
    const start = Number(NextToken);
    const members = [removed, ...resources.slice(start, start + PAGE)].map(
      ({ type, id, name, status }) =>
        `<member><LogicalResourceId>${id}</LogicalResourceId><PhysicalResourceId>${name}</PhysicalResourceId><ResourceType>${type}</ResourceType><ResourceStatus>${status ?? "CREATE_COMPLETE"}</ResourceStatus></member>`,
    );
    const next = start + PAGE < resources.length ? `<NextToken>${start + PAGE}</NextToken>` : "";
    return `<ListStackResourcesResponse><ListStackResourcesResult><StackResourceSummaries>${members.join("")}</StackResourceSummaries>${next}</ListStackResourcesResult></ListStackResourcesResponse>`;
  },
  DescribeAlarms(account, { AlarmNames }) {
    account.evaluate();
    const found = AlarmNames.flatMap((AlarmName: string) => {
      const alarm = account.alarms.get(AlarmName);
      return alarm ? [{ ...alarm.properties, StateValue: alarm.state }] : [];
    });
    return { MetricAlarms: found, CompositeAlarms: [] };
  },
  DescribeAlarmHistory(account, { AlarmName, StartDate }) {
    account.evaluate();
    const items = account.alarms.get(AlarmName)?.history ?? [];
    return {
      AlarmHistoryItems: items.filter(({ Timestamp }) => Timestamp >= StartDate),
    };
  },
  ListMetrics({ listed }, { Namespace, MetricName, NextToken = "0" }) {
    const found = listed.filter((each) => each.Namespace === Namespace && each.MetricName === MetricName);
    // One metric per page.
    const end = Number(NextToken) + 1;
    return {
      Metrics: found.slice(end - 1, end).map(({ Dimensions = [] }) => ({ Namespace, MetricName, Dimensions })),
      ...(end < found.length && { NextToken: String(end) }),
    };
  },
  GetMetricData(account, { MetricDataQueries, StartTime }) {
    // All values are of the current minute.
    const isInRange = Number(StartTime) * 1000 <= Date.now();
    const valuesOf = (metric: Json) => (isInRange && account.values.get(metricKey(metric))) || [];
    const expressions = MetricDataQueries.map(({ Expression = "" }: Json) => Expression).join();
    const uses = (texts: Set<string>) => [...texts].find((each) => expressions.includes(each));
    const invalid = uses(account.invalidExpressions);
    if (invalid !== undefined) throw new Rejection(400, "ValidationError", `Error in expression: ${invalid}`);
    const noted = { Code: "ArithmeticError", Value: "One or more data-points have been dropped" };
    return {
      MetricDataResults: MetricDataQueries.map(({ Id, MetricStat }: Json) => {
        const values = MetricStat ? valuesOf(MetricStat.Metric) : [0];
        const Values = values.length === 0 ? [] : [MetricStat ? statistic(MetricStat.Stat, values) : 0];
        return { Id, Label: Id, Timestamps: Values.map(() => 1), Values, StatusCode: "Complete" };
      }),
      Messages: uses(account.notedExpressions) === undefined ? [] : [noted],
    };
  },
  Invoke(account, { name }) {
    account.invoke(name);
    return { errorType: "TypeError" };
  },
  GetQueueUrl: ({ host }, { QueueName }) => ({ QueueUrl: `http://${host}/${ACCOUNT}/${QueueName}` }),
  SendMessage(account, { QueueUrl, MessageBody }) {
    account.queue(QueueUrl).push({ id: randomUUID(), body: MessageBody });
    account.consumeEvents();
    return { MessageId: randomUUID(), MD5OfMessageBody: md5(MessageBody) };
  },
  ReceiveMessage(account, { QueueUrl }) {
    const found = account
      .queue(QueueUrl)
      .filter(({ isHidden }) => !isHidden)
      .slice(0, 10);
    for (const message of found) message.isHidden = true;
    return {
      Messages: found.map(({ id, body }) => ({ MessageId: id, ReceiptHandle: id, Body: body, MD5OfBody: md5(body) })),
    };
  },
  DeleteMessage(account, { QueueUrl, ReceiptHandle }) {
    const queue = account.queue(QueueUrl);
    queue.splice(
      queue.findIndex(({ id }) => id === ReceiptHandle),
      1,
    );
    return {};
  },
  ChangeMessageVisibility(account, { QueueUrl, ReceiptHandle }) {
    for (const message of account.queue(QueueUrl)) message.isHidden &&= message.id !== ReceiptHandle;
    return {};
  },
};
