import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_SCHEDULE } from "../functions/attempts/retry.ts";
import { endpoints } from "../functions/manifest/endpoints.ts";
import type { Grants } from "../functions/manifest/grants-schema.ts";
import { workers } from "../functions/manifest/workers.ts";
import { type Assumptions, asDeployed, assumed, billedMs, type Config, setupOf } from "./billed-time.ts";
import type { Bench, Result, Table, Target } from "./harness.ts";
import { frontDoorTable, limitsTable } from "./limits.ts";
import { dollarsFor, hosted, type PriceKey, prices } from "./prices.ts";
import { countUnits, type RequestUnits, startEngines, type Taken, type Units, unitsFile } from "./units.ts";

/*
 * Dollars for a million requests and a million deliveries: counted units times list prices.
 *
 *     node bench/cost.ts --markdown     prints the tables of docs/scale.md, from bench/units.json
 *     node bench/cost.ts --write        puts them there
 */

const MILLION = 1_000_000;
const SECONDS_A_MONTH = 730 * 3600;

/** An item of the bill: how many units a million requests or deliveries take. */
export interface Line {
  what: string;
  price: PriceKey;
  units: number;
}

const dollars = (lines: Line[]): number => lines.reduce((sum, { price, units }) => sum + dollarsFor(price, units), 0);

/**
 * What Lambda writes by itself about a call when its system log level is INFO.
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
 */
const id = "2f5ff1c8-7d1c-4c0f-9a52-7f6c5a3e0c11";
const systemLines = [
  { time: "2026-11-21T10:18:41.112Z", type: "platform.start", record: { requestId: id, version: "$LATEST" } },
  {
    time: "2026-11-21T10:18:41.131Z",
    type: "platform.report",
    record: {
      requestId: id,
      metrics: { durationMs: 18.345, billedDurationMs: 19, memorySizeMB: 512, maxMemoryUsedMB: 101 },
      status: "success",
    },
  },
];
const SYSTEM_BYTES = systemLines.reduce((sum, line) => sum + JSON.stringify(line).length + 26, 0);

interface CallOf {
  what: string;
  file: string;
  taken: Taken;
  /** Of a million. */
  calls: number;
  /** How often it waits for AWS; absent = as counted. */
  waits?: number;
  elsewhereMs?: number;
}

/** What calls of one function come to: Lambda, DynamoDB, SQS and logs. */
function linesOf({ what, file, taken, calls, waits = taken.waits, elsewhereMs = 0 }: CallOf, config: Config): Line[] {
  const setup = setupOf(config, file);
  const gbSeconds = (setup.memoryMb / 1024) * (billedMs(taken, waits, elsewhereMs, setup, config) / 1000);
  const logBytes = taken.logBytes + (setup.hasSystemLines ? SYSTEM_BYTES : 0);
  return [
    { what: `${what}: calls`, price: "invocation", units: calls },
    { what: `${what}: time`, price: setup.cpu === "arm" ? "armSecond" : "x86Second", units: calls * gbSeconds },
    { what: `${what}: reads`, price: "read", units: calls * taken.reads },
    { what: `${what}: writes`, price: "write", units: calls * taken.writes },
    { what: `${what}: index writes`, price: "write", units: calls * taken.indexWrites },
    { what: `${what}: queue requests`, price: "queueRequest", units: calls * taken.queueRequests },
    { what: `${what}: log lines`, price: "logByte", units: calls * logBytes },
  ];
}

/** A million requests of one kind. */
export function requestLines(units: RequestUnits, file: string, config: Config): Line[] {
  return [
    { what: "API Gateway", price: "apiRequest", units: MILLION },
    ...linesOf({ what: "authorizer", file: "auth/authorizer", taken: units.authorizer, calls: MILLION }, config),
    ...linesOf({ what: "endpoint", file, taken: units.endpoint, calls: MILLION }, config),
    { what: "access log", price: "logByte", units: MILLION * units.accessLogBytes },
    { what: "answers", price: "byteOut", units: MILLION * units.responseBytes },
  ];
}

export interface DeliveryMix {
  /** Webhooks that an event goes to. */
  webhooks: number;
  /** Messages in a batch of either queue: 10 when they are busy, 1 when they are quiet. */
  batch: 1 | 10;
}

function found<Item>(items: Item[], is: (item: Item) => boolean): Item {
  const item = items.find(is);
  if (item === undefined) throw new Error("That was not counted");
  return item;
}

/** A million deliveries that succeed at once. */
export function deliveryLines(units: Units, { webhooks, batch }: DeliveryMix, config: Config): Line[] {
  const fanOut = found(units.fanOut, (each) => each.events === batch && each.webhooks === webhooks);
  const alone = found(units.fanOut, (each) => each.events === 1 && each.webhooks === webhooks);
  const send = found(units.send, ({ messages }) => messages === batch);
  const events = MILLION / webhooks;
  return [
    { what: "events queue: sent", price: "queueRequest", units: events },
    { what: "events queue: received, deleted", price: "queueRequest", units: (2 * events) / batch },
    ...linesOf(
      {
        what: "fan-out",
        file: "deliveries/fan-out",
        taken: fanOut.taken,
        calls: events / batch,
        // Of a batch only the calls that are under way together can be told, and not which wait for which.
        waits: alone.taken.waits,
      },
      config,
    ),
    { what: "deliveries queue: received, deleted", price: "queueRequest", units: (2 * MILLION) / batch },
    {
      what: "deliveries queue: fair",
      price: "fairQueueRequest",
      units: (events / batch) * fanOut.taken.queueRequests + (2 * MILLION) / batch,
    },
    ...linesOf(
      {
        what: "send",
        file: "attempts/send",
        taken: send.taken,
        calls: MILLION / batch,
        waits: found(units.send, ({ messages }) => messages === 1).taken.waits,
        elsewhereMs: config.receiverMs,
      },
      config,
    ),
    { what: "requests to receivers", price: "byteOut", units: MILLION * units.sizes.requestBytes },
  ];
}

/** A million deliveries of which a share fails: the attempts that a happy delivery does not have. */
export function failureLines(units: Units, share: number, attempts: "one" | "all", config: Config): Line[] {
  const failed = attempts === "all" ? units.failedAttempts : units.failedAttempts.slice(0, 1);
  const deliveries = share * MILLION;
  const attempt = (taken: Taken, what: string): Line[] => [
    ...linesOf({ what, file: "attempts/send", taken, calls: deliveries, elsewhereMs: config.receiverMs }, config),
    { what: `${what}: received, deleted`, price: "queueRequest", units: 2 * deliveries },
    { what: `${what}: fair`, price: "fairQueueRequest", units: (2 + taken.queueRequests) * deliveries },
    { what: `${what}: sent`, price: "byteOut", units: deliveries * units.sizes.requestBytes },
  ];
  const swept = attempts === "all" ? DEFAULT_SCHEDULE.filter((seconds) => seconds > 900).length : 0;
  const sweep = found(units.sweep, ({ rows }) => rows > 0);
  const idle = found(units.sweep, ({ rows }) => rows === 0);
  const perRow = (name: "writes" | "indexWrites" | "queueRequests") =>
    (sweep.taken[name] - idle.taken[name]) / sweep.rows;
  return [
    ...failed.flatMap((taken, index) => attempt(taken, `attempt ${index + 1}`)),
    { what: "sweep: writes", price: "write", units: swept * deliveries * perRow("writes") },
    { what: "sweep: index writes", price: "write", units: swept * deliveries * perRow("indexWrites") },
    { what: "sweep: queue requests", price: "queueRequest", units: swept * deliveries * perRow("queueRequests") },
    // One that recovers ends with a success that also notes the end of the failure; one that does not never had its success.
    ...(attempts === "one"
      ? [
          {
            what: "webhook healthy again",
            price: "write" as const,
            units: deliveries * (units.recovered.writes - sendAlone(units).writes),
          },
        ]
      : negative(attempt(sendAlone(units), "no success"))),
  ];
}

const sendAlone = (units: Units): Taken => found(units.send, ({ messages }) => messages === 1).taken;

const negative = (lines: Line[]): Line[] => lines.map((line) => ({ ...line, units: -line.units }));

/** What a stage costs in a month in which nothing happens. */
export function idleLines({ stage, sweep }: Units, config: Config): Line[] {
  const runs = SECONDS_A_MONTH / 60;
  const { taken } = found(sweep, ({ rows }) => rows === 0);
  // Lambda keeps five long polls of 20 s open on each queue. That it goes down to two does not hold with a maximum concurrency.
  // https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
  const polls = stage.pollers.length * 5 * (SECONDS_A_MONTH / 20);
  return [
    {
      what: `${stage.alarms} alarms on ${stage.alarmMetrics} metrics`,
      price: "alarmMetric",
      units: stage.alarmMetrics,
    },
    { what: "dashboard", price: "dashboard", units: stage.dashboards },
    { what: "metrics of the sweep", price: "customMetric", units: stage.idleMetrics },
    { what: "polls of idle queues", price: "queueRequest", units: polls },
    { what: "JWT secret", price: "secret", units: stage.secrets },
    ...linesOf({ what: "sweep", file: "deliveries/sweep", taken, calls: runs }, config),
  ];
}

/** The bill by what is charged for. */
const groups: Record<string, (line: Line) => boolean> = {
  "API Gateway": ({ price }) => price === "apiRequest",
  "DynamoDB writes": ({ price, what }) => price === "write" && !what.includes("index"),
  "index writes": ({ price, what }) => price === "write" && what.includes("index"),
  "DynamoDB reads": ({ price }) => price === "read",
  SQS: ({ price }) => price === "queueRequest" || price === "fairQueueRequest",
  "Lambda calls": ({ price }) => price === "invocation",
  "Lambda time": ({ price }) => price === "armSecond" || price === "x86Second",
  logs: ({ price }) => price === "logByte",
  "bytes out": ({ price }) => price === "byteOut",
};

const money = (value: number): string => value.toFixed(2);

function breakdown(title: string, columns: Record<string, Line[]>): Table {
  const used = Object.entries(groups).filter(([, is]) =>
    Object.values(columns).some((lines) => dollars(lines.filter(is)) > 0),
  );
  return {
    title,
    columns: ["$ a million", ...Object.keys(columns)],
    rows: [
      ...used.map(([name, is]) => [name, ...Object.values(columns).map((lines) => money(dollars(lines.filter(is))))]),
      ["all", ...Object.values(columns).map((lines) => money(dollars(lines)))],
    ],
  };
}

const fileOf = (route: string): string => filesByRoute.get(route) ?? route;

const filesByRoute = new Map(endpoints.map(({ method, path, file }) => [`${method} ${path}`, file]));

const HEADLINE = "GET /v1/projects";

const requestOf = (units: Units, route: string, credential: "jwt" | "key"): RequestUnits =>
  found(units.requests, (each) => each.route === route && each.credential === credential);

const priceOf = (units: Units, route: string, credential: "jwt" | "key", config = asDeployed(units)): number =>
  dollars(requestLines(requestOf(units, route, credential), fileOf(route), config));

const HAPPY: DeliveryMix = { webhooks: 1, batch: 10 };

const happy = (units: Units, mix = HAPPY, config = asDeployed(units)): number =>
  dollars(deliveryLines(units, mix, config));

export interface Lever {
  name: string;
  /** What it takes off the bill of a million. */
  request: number;
  delivery: number;
  note: string;
}

/** The plain way to build the same: what each thing that is set otherwise saves, taken alone. */
function setLevers(units: Units): Lever[] {
  const config = asDeployed(units);
  const plain = asDeployed(units, { cpu: "x86", memoryMb: () => 1024 });
  const request = (changed: Config) => priceOf(units, HEADLINE, "key", changed) - priceOf(units, HEADLINE, "key");
  const delivery = (changed: Config, mix = HAPPY) => happy(units, mix, changed) - happy(units);
  return [
    {
      name: "arm64 and 512 MB, 256 for the sender, not x86 and 1,024 MB",
      request: request(plain),
      delivery: delivery(plain),
      note: "most of a send is waiting, which costs as much as the memory that waits",
    },
    {
      name: "batches of 10, not of 1",
      request: 0,
      delivery: delivery(config, { webhooks: 1, batch: 1 }),
      note: "ten receivers are waited for at once; a quiet queue fills no batches",
    },
    {
      name: "Lambda's own lines from WARN on",
      request: request(asDeployed(units, { hasSystemLines: true })),
      delivery: delivery(asDeployed(units, { hasSystemLines: true })),
      note: "durations and errors stay as metrics, faults stay as lines",
    },
  ];
}

/** What each thing that is done otherwise saves, taken alone. */
function doneLevers(units: Units): Lever[] {
  const { eventBytes } = requestOf(units, HEADLINE, "key");
  const ten = found(units.fanOut, (each) => each.events === 10 && each.webhooks === 10);
  const sentAlone = MILLION - (MILLION / 100) * ten.taken.queueRequests;
  const largeRow = Math.ceil((units.sizes.succeededRowBytes + 1024) / 1024);
  return [
    {
      name: "one message batch for all that fan-out works on, not a message each",
      request: 0,
      delivery: dollarsFor("queueRequest", 0.9 * MILLION) + dollarsFor("fairQueueRequest", 0.9 * MILLION),
      note: `${money(dollarsFor("queueRequest", sentAlone) + dollarsFor("fairQueueRequest", sentAlone))} for 10 webhooks an event`,
    },
    {
      name: "metrics of a batch in lines of their own, not with each attempt",
      request: 0,
      delivery: dollarsFor("logByte", MILLION * sendAlone(units).metricBytes * 0.9),
      note: "embedded metrics take arrays of values; their description is half of a line",
    },
    {
      name: "no claim before an attempt: the record is the only write",
      request: 0,
      delivery: dollarsFor("write", 3 * MILLION),
      note: "a claim is one write, and two in the index",
    },
    {
      name: "an index of keys only, not of whole rows",
      request: 0,
      delivery: dollarsFor("write", 2 * MILLION * (Math.ceil(units.sizes.succeededRowBytes / 1024) - 1)),
      note: `nothing while a row is below 1 KB (here ${units.sizes.succeededRowBytes} bytes); ${money(
        dollarsFor("write", 2 * MILLION * (largeRow - 1)),
      )} with 1 KB more`,
    },
    {
      name: "`last_used_at` once a minute, not at every request",
      request: dollarsFor(
        "write",
        MILLION * (units.keyFirstUse.writes - requestOf(units, HEADLINE, "key").authorizer.writes),
      ),
      delivery: 0,
      note: "for a key in steady use",
    },
    {
      name: "events are not logged",
      request: dollarsFor("logByte", 2 * MILLION * (eventBytes + 26)),
      delivery: dollarsFor("logByte", MILLION * (units.sizes.eventMessageBytes + units.sizes.attemptMessageBytes)),
      note: "and so hold no credentials either; the event of each function, without the envelope that SQS puts around a message",
    },
  ];
}

/** What could be done still, each taken alone, dearest first. */
export function leversLeft(units: Units): Lever[] {
  const config = asDeployed(units);
  const lines = deliveryLines(units, HAPPY, config);
  const key = requestLines(requestOf(units, HEADLINE, "key"), fileOf(HEADLINE), config);
  const unitsOf = (bill: Line[], price: PriceKey) =>
    bill.filter((line) => line.price === price).reduce((sum, line) => sum + line.units, 0);
  // Provisioned units that are used to 70 %, which is what auto scaling aims at by default.
  const steady = (bill: Line[]) => {
    const onDemand = dollarsFor("write", unitsOf(bill, "write")) + dollarsFor("read", unitsOf(bill, "read"));
    const hours = (price: PriceKey) => unitsOf(bill, price) / 3600 / 0.7;
    const kept = dollarsFor("provisionedWriteHour", hours("write")) + dollarsFor("provisionedReadHour", hours("read"));
    return onDemand - kept;
  };
  const { accessLogBytes } = requestOf(units, HEADLINE, "key");
  return [
    {
      name: "provisioned tables with auto scaling, in place of on demand",
      request: steady(key),
      delivery: steady(lines),
      note: "for a load that is steady: a burst is throttled until the scaling has seen it",
    },
    {
      name: "no entry in the `due` index before the first attempt has failed",
      request: 0,
      delivery: dollarsFor(
        "write",
        unitsOf(
          lines.filter(({ what }) => what.includes("index")),
          "write",
        ),
      ),
      note: "gives up that whatever dies is found by the sweep: not recommended",
    },
    {
      name: "events sent by the pipeline ten at a time, with SendMessageBatch",
      request: 0,
      delivery: dollarsFor("queueRequest", 0.9 * MILLION),
      note: "the pipeline's to do, where it has ten events at a time",
    },
    {
      name: "the webhook read eventually consistent in the sender",
      request: 0,
      delivery: dollarsFor("read", MILLION / 2),
      note: "a delivery might go to a URL that was changed a second before: not worth it",
    },
    {
      name: "the access log in the infrequent access class",
      request:
        dollarsFor("logByte", MILLION * accessLogBytes) - dollarsFor("infrequentLogByte", MILLION * accessLogBytes),
      delivery: 0,
      note: "a class is for ever: the group must be made anew",
    },
    {
      name: "an HTTP API in place of REST",
      request: dollarsFor("apiRequest", MILLION) - dollarsFor("httpApiRequest", MILLION),
      delivery: 0,
      note: "no gateway responses, so no 401 with a code; no WAF",
    },
  ].sort((a, b) => b.request + b.delivery - (a.request + a.delivery));
}

/** The plain configuration with nothing of the above, for a delivery and for a request with a key. */
function plainTotals(units: Units): { request: number; delivery: number } {
  const config = asDeployed(units, { cpu: "x86", memoryMb: () => 1024, hasSystemLines: true });
  // In batches of 1 each message goes alone, with metrics of its own: those two are in it already.
  const done = doneLevers(units).filter(({ name }) => !/^(one message batch|metrics of a batch)/.test(name));
  const sum = (of: "request" | "delivery") => done.reduce((total, lever) => total + lever[of], 0);
  return {
    request: priceOf(units, HEADLINE, "key", config) + sum("request"),
    delivery: happy(units, { webhooks: 1, batch: 1 }, config) + sum("delivery"),
  };
}

/** Bounds of a price, in dollars a million. */
const BOUNDS = { request: 5.5, delivery: 3.6 };

export function targetsOf(units: Units): Target[] {
  return [
    { name: "request with a JWT, $ a million", value: priceOf(units, HEADLINE, "jwt"), bound: BOUNDS.request },
    { name: "request with a key, $ a million", value: priceOf(units, HEADLINE, "key"), bound: BOUNDS.request },
    { name: "delivery, happy path, $ a million", value: happy(units), bound: BOUNDS.delivery },
  ];
}

export function tablesOf(units: Units): Table[] {
  const config = asDeployed(units);
  const plain = plainTotals(units);
  const one = failureLines(units, 0.05, "one", config);
  const all = failureLines(units, 0.05, "all", config);
  return [
    breakdown("A million requests", {
      "with a JWT": requestLines(requestOf(units, HEADLINE, "jwt"), fileOf(HEADLINE), config),
      "with a key": requestLines(requestOf(units, HEADLINE, "key"), fileOf(HEADLINE), config),
    }),
    {
      title: "A million requests, by endpoint",
      columns: ["request", "reads", "writes", "JWT, $", "key, $"],
      rows: endpoints.map(({ method, path }) => {
        const route = `${method} ${path}`;
        const { endpoint } = requestOf(units, route, "jwt");
        const hasKey = units.requests.some((each) => each.route === route && each.credential === "key");
        return [
          `\`${route}\``,
          endpoint.reads,
          endpoint.writes,
          money(priceOf(units, route, "jwt")),
          hasKey ? money(priceOf(units, route, "key")) : "–",
        ];
      }),
    },
    breakdown("A million deliveries that succeed", {
      "1 webhook an event": deliveryLines(units, HAPPY, config),
      "10 webhooks an event": deliveryLines(units, { webhooks: 10, batch: 10 }, config),
      "1 webhook, quiet queue": deliveryLines(units, { webhooks: 1, batch: 1 }, config),
    }),
    {
      title: "A million deliveries of which some fail, 1 webhook an event",
      columns: ["", "$ a million", "more than happy"],
      rows: [
        ["all succeed at once", money(happy(units)), ""],
        ["5 % fail once", money(happy(units) + dollars(one)), money(dollars(one))],
        [
          `5 % fail ${units.failedAttempts.length} times, for good`,
          money(happy(units) + dollars(all)),
          money(dollars(all)),
        ],
      ],
    },
    {
      title: "What it saves against the plain way, $ a million",
      columns: ["done", "request with a key", "delivery", ""],
      rows: [
        ...[...setLevers(units), ...doneLevers(units)].map(({ name, request, delivery, note }) => [
          name,
          money(request),
          money(delivery),
          note,
        ]),
        ["the plain way, all in all", money(plain.request), money(plain.delivery), "one webhook an event"],
        ["as it is", money(priceOf(units, HEADLINE, "key")), money(happy(units)), ""],
      ],
    },
    {
      title: "What could be saved still, $ a million",
      columns: ["not done", "request with a key", "delivery", ""],
      rows: [
        ...leversLeft(units).map(({ name, request, delivery, note }) => [name, money(request), money(delivery), note]),
      ],
    },
    {
      title: "When the assumptions are wrong, $ a million",
      columns: ["", "request with a key", "delivery", "delivery, quiet queue"],
      rows: sensitivity(units),
    },
    {
      title: "A stage in which nothing happens, a month",
      columns: ["", "$"],
      rows: [
        ...merged(idleLines(units, config)).map(([what, value]) => [what, money(value)]),
        ["all", money(dollars(idleLines(units, config)))],
        ...inUse(units).map(([what, value]) => [what, `+ ${money(value)}`]),
        [
          `in full use: all ${units.stage.allMetrics} metrics, in place of ${units.stage.idleMetrics}`,
          `+ ${money(dollarsFor("customMetric", units.stage.allMetrics - units.stage.idleMetrics))}`,
        ],
      ],
    },
    {
      title: "What is kept of a million deliveries, $ a month",
      columns: ["", "$"],
      rows: [
        ["rows, 30 days", money(dollarsFor("tableStorage", keptBytes(units)))],
        ["their continuous backup", money(dollarsFor("pointInTimeRecovery", keptBytes(units)))],
      ],
    },
    {
      title: "A million deliveries a month, rented",
      columns: ["", "$ a month", "$ for the next million", "counts", "source"],
      rows: hosted.map(({ name, does, monthlyDollars, included = 0, perMillion, counts, source, evidence }) => [
        `${name} (${does})`,
        monthlyDollars === undefined || perMillion === undefined
          ? `${monthlyDollars === undefined ? "not verified" : `${monthlyDollars} and more`}`
          : money(monthlyDollars + (perMillion * Math.max(0, MILLION - included)) / MILLION),
        perMillion === undefined ? "not verified" : money(perMillion),
        counts,
        evidence === "not verified" ? `${source} (not verified)` : source,
      ]),
    },
  ];
}

/** What grows with how many functions are at work, not with what they do; at most, and by rule: none of it can be counted here. */
function inUse({ stage }: Units): [string, number][] {
  const rows: readonly { uses: Grants }[] = [...endpoints, ...workers];
  // DynamoDB asks KMS for a table's key once in five minutes for each role; of an AWS managed key only the calls are charged.
  // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.howitworks.html
  const tableKeys = rows.reduce((sum, { uses }) => sum + Object.keys(uses.tables ?? {}).length, 0);
  // (2 producers + consumers) per reuse of a data key, here an hour.
  // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
  const producers = rows.reduce(
    (sum, { uses }) => sum + (uses.sendsTo?.length ?? 0) + (uses.rejectsTo?.length ?? 0),
    1,
  );
  const queueKeys = (2 * producers + stage.pollers.length) * (SECONDS_A_MONTH / 3600);
  return [
    ["in full use: KMS, for the keys of the tables", dollarsFor("kmsRequest", tableKeys * (SECONDS_A_MONTH / 300))],
    ["in full use: the secret, read by ten authorizers", dollarsFor("secretRead", 10 * 2 * (SECONDS_A_MONTH / 300))],
    [
      "with a customer key: the key, and its use by the queues",
      dollarsFor("kmsKey", 1) + dollarsFor("kmsRequest", queueKeys),
    ],
  ];
}

/** DynamoDB adds 100 bytes to each item that it stores, and to each entry of an index. */
const keptBytes = ({ sizes }: Units): number => MILLION * (sizes.succeededRowBytes + 100);

function sensitivity(units: Units): string[][] {
  const quiet: DeliveryMix = { webhooks: 1, batch: 1 };
  const rowFor = (name: string, changes: Partial<Assumptions>) => {
    const config = asDeployed(units, changes);
    return [
      name,
      money(priceOf(units, HEADLINE, "key", config)),
      money(happy(units, HAPPY, config)),
      money(happy(units, quiet, config)),
    ];
  };
  const { cpuFactor, waitMs, receiverMs, coldShare, coldMs } = assumed;
  return [
    rowFor(
      `assumed: CPU × ${cpuFactor}, ${waitMs} ms a wait for AWS, ${receiverMs} ms a receiver, ${coldShare * 100} % cold starts of ${coldMs} ms`,
      {},
    ),
    rowFor("CPU as measured here, nothing waits: the lower bound", {
      cpuFactor: 1,
      waitMs: 0,
      receiverMs: 0,
      coldShare: 0,
    }),
    rowFor("CPU × 4", { cpuFactor: 4 }),
    rowFor("20 ms a wait for AWS", { waitMs: 20 }),
    rowFor("receivers answer in 1 s", { receiverMs: 1_000 }),
    rowFor("every receiver hangs for 15 s", { receiverMs: 15_000 }),
    rowFor("5 % cold starts", { coldShare: 0.05 }),
  ];
}

/** Lines of one thing in one sum, in their order. */
function merged(lines: Line[]): [string, number][] {
  const sums = new Map<string, number>();
  for (const line of lines) {
    const [what = ""] = line.what.split(":");
    sums.set(what, (sums.get(what) ?? 0) + dollars([line]));
  }
  return [...sums];
}

export const readUnits = (): Units => JSON.parse(readFileSync(unitsFile, "utf8"));

/** A table as it stands in docs/scale.md. */
export function inMarkdown({ title, columns, rows }: Table): string {
  const row = (cells: (string | number)[]) =>
    `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [`### ${title}`, "", row(columns), `|${"---|".repeat(columns.length)}`, ...rows.map(row)].join("\n");
}

/** All tables of docs/scale.md. */
export const documented = (units: Units): Table[] => [...tablesOf(units), limitsTable(units), frontDoorTable(units)];

/** Puts each table in the place of the one with its title. @throws Error when the document has none */
export function withTables(document: string, tables: Table[]): string {
  return tables.reduce((text, table) => {
    const start = text.indexOf(`### ${table.title}\n`);
    if (start < 0) throw new Error(`docs/scale.md has no table "${table.title}"`);
    const old = /^### .*\n\n(\|.*(\n|$))*/.exec(text.slice(start))?.[0] ?? "";
    return `${text.slice(0, start)}${inMarkdown(table)}\n${text.slice(start + old.length)}`;
  }, document);
}

export const bench: Bench = {
  name: "cost",
  about: "dollars for a million requests and deliveries, from units counted now",
  async run(): Promise<Result> {
    const engines = await startEngines();
    try {
      const units = await countUnits({ receiverUrl: engines.receiverUrl, repeats: 15 });
      const unverified = Object.entries(prices).flatMap(([name, { evidence }]) =>
        (evidence as string) === "not verified" ? [name] : [],
      );
      return {
        tables: tablesOf(units),
        targets: targetsOf(units),
        notes: [
          `Headline: ${HEADLINE}; deliveries in batches of 10 with one webhook an event. Counted: units, requests, bytes. Assumed: time.`,
          `Prices that were not found on any page: ${unverified.join(", ")}.`,
          `Never run on AWS. ${workers.length} workers and ${endpoints.length} endpoints as their rows stand.`,
        ],
        data: units,
      };
    } finally {
      await engines.stop();
    }
  },
};

const documentFile = join(import.meta.dirname, "..", "docs", "scale.md");

if (import.meta.main) {
  const tables = documented(readUnits());
  if (process.argv.includes("--markdown")) console.log(tables.map(inMarkdown).join("\n\n"));
  if (process.argv.includes("--write"))
    writeFileSync(documentFile, withTables(readFileSync(documentFile, "utf8"), tables));
}
