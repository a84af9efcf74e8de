import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_SCHEDULE } from "../functions/attempts/retry.ts";
import { SLOW_AFTER_MS } from "../functions/attempts/slow-mark.ts";
import { settings } from "../functions/platform/env.ts";
import { checkCircuit } from "../functions/webhooks/circuit-breaker.ts";
import { type Assumptions, asDeployed, assumed, billedMs, type Config } from "./billed-time.ts";
import type { Bench, Result, Table, Target } from "./harness.ts";
import { frontDoorTable, limitsTable, simulationTable } from "./limits.ts";
import { dollarsFor, type PriceKey, prices } from "./prices.ts";
import texts from "./texts.json" with { type: "json" };
import { PRICED_ROUTE, type RequestUnits, readUnits, type Units, type Usage } from "./units.ts";

/*
 * Computes the cost of a million requests and of a million deliveries, in dollars: counted units times list prices.
 *
 *     node bench/cost.ts --markdown     prints the tables of docs/scale.md, from bench/units.json
 *     node bench/cost.ts --write        writes them into docs/scale.md
 */

const MILLION = 1_000_000;
const SECONDS_A_MONTH = 730 * 3600;

/** A line of the bill: the units that a million requests or deliveries use. */
export interface Line {
  what: string;
  price: PriceKey;
  units: number;
}

const dollars = (lines: Line[]): number => lines.reduce((sum, { price, units }) => sum + dollarsFor(price, units), 0);

const line = (what: string, price: PriceKey, units: number): Line => ({ what, price, units });

/**
 * Bytes of the two log lines that Lambda itself writes for each call at system log level INFO: platform.start and platform.report.
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
 */
const SYSTEM_BYTES = 429;

interface CallOf {
  what: string;
  file: string;
  usage: Usage;
  /** Calls per million requests or deliveries. */
  calls: number;
  /** How often a call waits for AWS; absent means the counted number. */
  waits?: number;
  /** Time that a call waits for receivers, in milliseconds. */
  elsewhereMs?: number;
}

/** Returns the lines for the calls of one function: Lambda, DynamoDB, SQS and logs. */
function linesOf({ what, file, usage, calls, waits = usage.waits, elsewhereMs = 0 }: CallOf, config: Config): Line[] {
  const memoryMb = config.memoryMb(file);
  const gbSeconds = (memoryMb / 1024) * (billedMs(usage, waits, elsewhereMs, memoryMb, config) / 1000);
  const logBytes = usage.logBytes + (config.hasSystemLines ? SYSTEM_BYTES : 0);
  return [
    line(`${what}: calls`, "invocation", calls),
    line(`${what}: time`, config.cpu === "arm" ? "armSecond" : "x86Second", calls * gbSeconds),
    line(`${what}: reads`, "read", calls * usage.reads),
    line(`${what}: writes`, "write", calls * usage.writes),
    line(`${what}: index writes`, "write", calls * usage.indexWrites),
    line(`${what}: queue requests`, "queueRequest", calls * usage.queueRequests),
    line(`${what}: log lines`, "logByte", calls * logBytes),
  ];
}

/** Returns the bill of a million requests. */
export function requestLines(units: RequestUnits, config: Config): Line[] {
  return [
    line("API Gateway", "apiRequest", MILLION),
    ...linesOf({ what: "authorizer", file: "auth/authorizer", usage: units.authorizer, calls: MILLION }, config),
    ...linesOf({ what: "endpoint", file: PRICED_FILE, usage: units.endpoint, calls: MILLION }, config),
    line("access log", "logByte", MILLION * units.accessLogBytes),
    line("responses", "byteOut", MILLION * units.responseBytes),
  ];
}

export interface DeliveryMix {
  /** Webhooks per event. */
  webhooks: number;
  /** Messages per batch in both queues: 10 when they are busy, 1 when they are quiet. */
  batch: 1 | 10;
  /** The row is written before the first attempt, as for a slow webhook. With 1 webhook per event and a batch of 10. */
  isRowFirst?: true;
}

function found<Item>(items: Item[], is: (item: Item) => boolean): Item {
  const item = items.find(is);
  if (item === undefined) throw new Error("bench/units.json does not have this count. Run: npm run cost");
  return item;
}

/** Returns the bill of a million deliveries that succeed at the first attempt. */
export function deliveryLines(units: Units, { webhooks, batch, isRowFirst }: DeliveryMix, config: Config): Line[] {
  const fanOut = found(units.fanOut, (each) => each.events === batch && each.webhooks === webhooks).usage;
  const alone = found(units.fanOut, (each) => each.events === 1 && each.webhooks === webhooks).usage;
  const carried = found(units.send, ({ messages }) => messages === batch).usage;
  const used = isRowFirst ? units.rowFirst : { fanOut, send: carried };
  // In a batch only concurrent calls can be counted, not which of them wait for each other. With the row first, fan-out
  // also waits for its insert, and the sender for its claim.
  const moreWaits = isRowFirst ? 1 : 0;
  const events = MILLION / webhooks;
  const calls = events / batch;
  const waits = alone.waits + moreWaits;
  const send: CallOf = {
    ...{ what: "send", file: isRowFirst ? "attempts/send-slow" : "attempts/send", usage: used.send },
    ...{ calls: MILLION / batch, waits: sendAlone(units).waits + moreWaits, elsewhereMs: config.receiverMs },
  };
  return [
    ...eventLines(events, batch),
    ...linesOf({ what: "fan-out", file: "deliveries/fan-out", usage: used.fanOut, calls, waits }, config),
    line("deliveries queue: received, deleted", "queueRequest", (2 * MILLION) / batch),
    line("deliveries queue: fair", "fairQueueRequest", calls * used.fanOut.queueRequests + (2 * MILLION) / batch),
    ...linesOf(send, config),
    line("requests to receivers", "byteOut", MILLION * units.sizes.requestBytes),
  ];
}

/** The pipeline sends events one by one and without a group id, so the price of fair queues does not apply. */
const eventLines = (events: number, batch: number): Line[] => [
  line("events queue: sent", "queueRequest", events),
  line("events queue: received, deleted", "queueRequest", (2 * events) / batch),
];

/** Returns the bill of a million deliveries that are parked while the receiver is down, and sent when it is back. */
export function parkedLines({ parking, sizes }: Units, config: Config): Line[] {
  const { rows, usage } = parking.drain;
  const calls = MILLION / rows;
  return [
    ...eventLines(MILLION, 10),
    ...linesOf({ what: "fan-out", file: "deliveries/fan-out", usage: parking.fanOut, calls: MILLION / 10 }, config),
    // A drain sends ten deliveries at once.
    ...wakeUpLines(usage, calls, (rows / 10) * config.receiverMs, config),
    line("requests to receivers", "byteOut", MILLION * sizes.requestBytes),
  ];
}

/** Returns the bill of wake-up calls, each alone in its batch. */
const wakeUpLines = (usage: Usage, calls: number, elsewhereMs: number, config: Config): Line[] => [
  line("slow queue: received, deleted", "queueRequest", 2 * calls),
  line("slow queue: fair", "fairQueueRequest", (2 + usage.queueRequests) * calls),
  ...linesOf({ what: "drain", file: "attempts/send-slow", usage, calls, elsewhereMs }, config),
];

/** Returns the bill of a receiver that is down until its webhook is disabled, however many deliveries wait for it. */
export function downLines({ parking }: Units, config: Config): Line[] {
  const seconds = settings.disableAfterSeconds();
  const now = new Date();
  // The longest interval. The probes of the first hour, which are more frequent, are left out.
  const circuit = checkCircuit({ failing_since: new Date(now.getTime() - seconds * 1000).toISOString() }, now);
  if (circuit.kind !== "open") throw new Error("The circuit of a receiver that is down is closed");
  const probeSeconds = (Date.parse(circuit.nextProbeAt) - now.getTime()) / 1000;
  return wakeUpLines(parking.probe, seconds / probeSeconds, config.receiverMs, config);
}

/** Returns the additional bill when a share of a million deliveries fails: the attempts that a successful delivery does not need. */
export function failureLines(units: Units, share: number, attempts: "one" | "all", config: Config): Line[] {
  const made = attempts === "all" ? units.failedAttempts : [...units.failedAttempts.slice(0, 1), units.recovered];
  const deliveries = share * MILLION;
  const attempt = (usage: Usage, what: string): Line[] => [
    ...linesOf({ what, file: "attempts/send", usage, calls: deliveries, elsewhereMs: config.receiverMs }, config),
    line(`${what}: received, deleted`, "queueRequest", 2 * deliveries),
    line(`${what}: fair`, "fairQueueRequest", (2 + usage.queueRequests) * deliveries),
    line(`${what}: sent`, "byteOut", deliveries * units.sizes.requestBytes),
  ];
  const swept = attempts === "all" ? DEFAULT_SCHEDULE.filter((seconds) => seconds > 900).length : 0;
  const sweep = found(units.sweep, ({ rows }) => rows > 0);
  const idle = found(units.sweep, ({ rows }) => rows === 0);
  const perRow = (name: "writes" | "indexWrites" | "queueRequests") =>
    (sweep.usage[name] - idle.usage[name]) / sweep.rows;
  const sweptQueueRequests = swept * deliveries * perRow("queueRequests");
  return [
    ...made.flatMap((usage, index) => attempt(usage, `attempt ${index + 1}`)),
    line("sweep: writes", "write", swept * deliveries * perRow("writes")),
    line("sweep: index writes", "write", swept * deliveries * perRow("indexWrites")),
    line("sweep: queue requests", "queueRequest", sweptQueueRequests),
    line("sweep: fair", "fairQueueRequest", sweptQueueRequests),
    ...negative(attempt(sendAlone(units), "no success at the first attempt")),
  ];
}

const sendAlone = (units: Units): Usage => found(units.send, ({ messages }) => messages === 1).usage;

const negative = (lines: Line[]): Line[] => lines.map((line) => ({ ...line, units: -line.units }));

/** Returns the bill of a stage without traffic, per month. */
export function idleLines({ stage, sweep }: Units, config: Config): Line[] {
  const runs = SECONDS_A_MONTH / 60;
  const { usage } = found(sweep, ({ rows }) => rows === 0);
  // Lambda keeps five long polls of 20 s open per queue. It reduces them to two only without a maximum concurrency.
  // https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
  const polls = stage.pollers.length * 5 * (SECONDS_A_MONTH / 20);
  return [
    line(`${stage.alarms} alarms on ${stage.alarmMetrics} metrics`, "alarmMetric", stage.alarmMetrics),
    line("dashboard", "dashboard", stage.dashboards),
    line("metrics of the sweep", "customMetric", stage.idleMetrics),
    line("polls of idle queues", "queueRequest", polls),
    line("JWT secret", "secret", stage.secrets),
    ...linesOf({ what: "sweep", file: "deliveries/sweep", usage, calls: runs }, config),
  ];
}

/** Groups the lines of a bill by service. */
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
    columns: ["$ per million", ...Object.keys(columns)],
    rows: [
      ...used.map(([name, is]) => [name, ...Object.values(columns).map((lines) => money(dollars(lines.filter(is))))]),
      ["all", ...Object.values(columns).map((lines) => money(dollars(lines)))],
    ],
  };
}

/** Adds the totals of a stage with a firewall, which inspects every request. */
function withFirewall(table: Table, totals: number[]): Table {
  const firewall = dollarsFor("firewallRequest", MILLION);
  return {
    ...table,
    rows: [...table.rows, ["all, with the firewall, as in prod", ...totals.map((total) => money(total + firewall))]],
  };
}

/** The function of `PRICED_ROUTE`. */
const PRICED_FILE = "projects/list";

const requestOf = (units: Units, credential: "jwt" | "key"): RequestUnits =>
  found(units.requests, (each) => each.credential === credential);

const priceOf = (units: Units, credential: "jwt" | "key", config = asDeployed(units)): number =>
  dollars(requestLines(requestOf(units, credential), config));

const HAPPY: DeliveryMix = { webhooks: 1, batch: 10 };
const TEN: DeliveryMix = { webhooks: 10, batch: 10 };
const QUIET: DeliveryMix = { webhooks: 1, batch: 1 };

const happy = (units: Units, mix = HAPPY, config = asDeployed(units)): number =>
  dollars(deliveryLines(units, mix, config));

/** The saving of a design choice, in dollars per million. Its text is in texts.json; `detail` replaces `{}` there. */
interface Saving {
  request?: number;
  delivery?: number;
  detail?: string;
}

/** Returns what each setting saves compared with its default, one at a time. */
function setLevers(units: Units) {
  const saved = (changed: Config, mix = HAPPY): Saving => ({
    request: priceOf(units, "key", changed) - priceOf(units, "key"),
    delivery: happy(units, mix, changed) - happy(units),
  });
  return {
    arm64: saved(asDeployed(units, { cpu: "x86", memoryMb: () => 1024 })),
    batches: saved(asDeployed(units), QUIET),
    systemLines: saved(asDeployed(units, { hasSystemLines: true })),
  } satisfies Partial<Record<keyof typeof texts.savings, Saving>>;
}

/** Returns what each design choice saves compared with the simple design, one at a time. */
function doneLevers(units: Units) {
  const key = requestOf(units, "key");
  const ten = found(units.fanOut, (each) => each.events === 10 && each.webhooks === 10).usage;
  const one = found(units.fanOut, (each) => each.events === 10 && each.webhooks === 1).usage;
  const send = found(units.send, ({ messages }) => messages === 10).usage;
  const { fanOut: rowFirst, send: sendRow } = units.rowFirst;
  const indexWrites = rowFirst.indexWrites + sendRow.indexWrites - one.indexWrites - send.indexWrites;
  const perDelivery = (writes: number) => dollarsFor("write", (writes / 10) * MILLION);
  const sent = (requests: number) => dollarsFor("queueRequest", requests) + dollarsFor("fairQueueRequest", requests);
  const messageBytes = units.sizes.eventMessageBytes + units.sizes.carriedMessageBytes;
  return {
    messageBatches: {
      delivery: sent(0.9 * MILLION),
      detail: money(sent(MILLION - (MILLION / 100) * ten.queueRequests)),
    },
    metricsLine: { delivery: dollarsFor("logByte", MILLION * sendAlone(units).metricBytes * 0.9) },
    noIndexEntry: { delivery: perDelivery(indexWrites) },
    carried: { delivery: perDelivery(rowFirst.writes - one.writes) },
    noClaim: { delivery: perDelivery(sendRow.writes - send.writes) },
    eventRow: {
      delivery: -perDelivery(one.writes),
      detail: money(-dollarsFor("write", (ten.writes / 100) * MILLION)),
    },
    lastUsed: { request: dollarsFor("write", MILLION * (units.keyFirstUse.writes - key.authorizer.writes)) },
    noEventLog: {
      request: dollarsFor("logByte", 2 * MILLION * (key.eventBytes + 26)),
      delivery: dollarsFor("logByte", MILLION * messageBytes),
    },
  } satisfies Partial<Record<keyof typeof texts.savings, Saving>>;
}

/** Returns what further changes would save, one at a time. */
function leversLeft(units: Units): Record<keyof typeof texts.further, Saving> {
  const config = asDeployed(units);
  const unitsOf = (bill: Line[], price: PriceKey) =>
    bill.filter((line) => line.price === price).reduce((sum, line) => sum + line.units, 0);
  // Provisioned units at 70 % utilization, the default target of auto scaling.
  const steady = (bill: Line[]) => {
    const onDemand = dollarsFor("write", unitsOf(bill, "write")) + dollarsFor("read", unitsOf(bill, "read"));
    const hours = (price: PriceKey) => unitsOf(bill, price) / 3600 / 0.7;
    const kept = dollarsFor("provisionedWriteHour", hours("write")) + dollarsFor("provisionedReadHour", hours("read"));
    return onDemand - kept;
  };
  const key = requestOf(units, "key");
  const logged = (price: PriceKey) => dollarsFor(price, MILLION * key.accessLogBytes);
  return {
    provisioned: {
      request: steady(requestLines(key, config)),
      delivery: steady(deliveryLines(units, HAPPY, config)),
    },
    publishBatches: { delivery: dollarsFor("queueRequest", 0.9 * MILLION) },
    eventual: { delivery: dollarsFor("read", MILLION / 2) },
    noRead: { delivery: dollarsFor("read", MILLION) },
    infrequentLog: { request: logged("logByte") - logged("infrequentLogByte") },
    httpApi: { request: dollarsFor("apiRequest", MILLION) - dollarsFor("httpApiRequest", MILLION) },
  };
}

/** Returns the rows of a table of savings. */
const savingRows = (savings: Record<string, Saving>, of: Record<string, string[]>): string[][] =>
  Object.entries(savings).map(([key, { request = 0, delivery = 0, detail = "" }]) => {
    const [name = "", note = ""] = of[key] ?? [];
    return [name, money(request), money(delivery), note.replace("{}", detail)];
  });

const largestFirst = (savings: Record<string, Saving>): Record<string, Saving> => {
  const total = ({ request = 0, delivery = 0 }: Saving) => request + delivery;
  return Object.fromEntries(Object.entries(savings).sort(([, a], [, b]) => total(b) - total(a)));
};

/** Returns the price of the simple design with none of these choices, for a delivery and for a request with a key. */
function plainTotals(units: Units): { request: number; delivery: number } {
  const config = asDeployed(units, { cpu: "x86", memoryMb: () => 1024, hasSystemLines: true });
  // Batches of 1 already include single messages and one metrics line per attempt.
  const { messageBatches, metricsLine, ...done } = doneLevers(units);
  const sum = (of: keyof Saving) =>
    Object.values<Saving>(done).reduce((total, lever) => total + Number(lever[of] ?? 0), 0);
  return {
    request: priceOf(units, "key", config) + sum("request"),
    delivery: happy(units, QUIET, config) + sum("delivery"),
  };
}

/** Returns the writes to tables and indexes per delivery, the row of the event included. */
const writesPerDelivery = (units: Units, mix: DeliveryMix): number =>
  deliveryLines(units, mix, asDeployed(units))
    .filter(({ price }) => price === "write")
    .reduce((sum, line) => sum + line.units, 0) / MILLION;

export function targetsOf(units: Units): Target[] {
  const [one, ten] = ["delivery, 1 webhook per event", "delivery, 10 webhooks per event"];
  const bounds: [name: string, value: number, bound: number][] = [
    ["request with a JWT, $ per million", priceOf(units, "jwt"), 4.8],
    ["request with a key, $ per million", priceOf(units, "key"), 4.8],
    [`${one}, $ per million`, happy(units), 2.95],
    [`${ten}, $ per million`, happy(units, TEN), 1.85],
    [`${one}, table and index writes`, writesPerDelivery(units, HAPPY), 2],
    [`${ten}, table and index writes`, writesPerDelivery(units, TEN), 1.1],
  ];
  return bounds.map(([name, value, bound]) => ({ name, value, bound }));
}

const table = (title: string, columns: string[], rows: string[][]): Table => ({ title, columns, rows });

export function tablesOf(units: Units): Table[] {
  const config = asDeployed(units);
  const plain = plainTotals(units);
  const one = failureLines(units, 0.05, "one", config);
  const all = failureLines(units, 0.05, "all", config);
  const parked = parkedLines(units, config);
  const succeeds = happy(units);
  const moreThan = (what: string, more: number) => [[what, money(succeeds + more), money(more)]];
  const { stage, sizes } = units;
  const kept = { event: keptBytes(sizes.eventRowBytes), delivery: keptBytes(sizes.succeededRowBytes) };
  const firewall = dollarsFor("webAcl", 1) + dollarsFor("webAclRule", stage.firewallRules);
  const allMetrics = dollarsFor("customMetric", stage.allMetrics - stage.idleMetrics);
  const idle = idleLines(units, config);
  return [
    withFirewall(
      breakdown("A million requests", {
        "with a JWT": requestLines(requestOf(units, "jwt"), config),
        "with a key": requestLines(requestOf(units, "key"), config),
      }),
      [priceOf(units, "jwt"), priceOf(units, "key")],
    ),
    breakdown("A million deliveries that succeed", {
      "1 webhook per event": deliveryLines(units, HAPPY, config),
      "10 webhooks per event": deliveryLines(units, TEN, config),
      "1 webhook, quiet queue": deliveryLines(units, QUIET, config),
      "1 slow webhook per event": deliveryLines(units, { ...HAPPY, isRowFirst: true }, config),
    }),
    table(
      "A million deliveries with failures, 1 webhook per event",
      ["", "$ per million", "more than without failures"],
      [
        ["all succeed at the first attempt", money(succeeds), ""],
        ...moreThan("5 % fail once", dollars(one)),
        ...moreThan(`5 % fail ${units.failedAttempts.length} times and are given up`, dollars(all)),
        ...moreThan("all are parked while the receiver is down, and sent when it is back", dollars(parked) - succeeds),
      ],
    ),
    table(
      "Savings compared with the simple design, $ per million",
      ["choice", "request with a key", "delivery", ""],
      [
        ...savingRows({ ...setLevers(units), ...doneLevers(units) }, texts.savings),
        ["simple design, total", money(plain.request), money(plain.delivery), "one webhook per event"],
        ["this service", money(priceOf(units, "key")), money(succeeds), ""],
      ],
    ),
    table(
      "Further possible savings, $ per million",
      ["change", "request with a key", "delivery", ""],
      savingRows(largestFirst(leversLeft(units)), texts.further),
    ),
    table(
      "Prices under other assumptions, $ per million",
      ["", "request with a key", "delivery", "delivery, quiet queue"],
      sensitivity(units),
    ),
    table(
      "An idle stage, per month",
      ["", "$"],
      [
        ...merged(idle).map(([what, value]) => [what, money(value)]),
        ["all", money(dollars(idle))],
        [`with the firewall, as in prod: the web ACL and ${stage.firewallRules} rules`, `+ ${money(firewall)}`],
        ...inUse(units).map(([what, value]) => [what, `+ ${money(value)}`]),
        [`in full use: all ${stage.allMetrics} metrics instead of ${stage.idleMetrics}`, `+ ${money(allMetrics)}`],
      ],
    ),
    table(
      "Storage of a million deliveries, $ per month",
      ["", "$"],
      [
        ["rows of the events, kept for 30 days, 1 webhook per event", money(dollarsFor("tableStorage", kept.event))],
        [
          "rows of the events, kept for 30 days, 10 webhooks per event",
          money(dollarsFor("tableStorage", kept.event / 10)),
        ],
        ["rows of the deliveries, kept for 30 days", money(dollarsFor("tableStorage", kept.delivery))],
        [
          "continuous backup of both, 1 webhook per event",
          money(dollarsFor("pointInTimeRecovery", kept.event + kept.delivery)),
        ],
      ],
    ),
  ];
}

/** Returns upper bounds of costs that depend on the number of functions in use and cannot be counted here. */
function inUse(units: Units): [string, number][] {
  const { stage } = units;
  // DynamoDB calls KMS for the key of a table once in five minutes per role. An AWS managed key costs only these calls.
  // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.howitworks.html
  // (2 * producers + consumers) calls per data key reuse period, here one hour.
  // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
  const queueKeys = (2 * stage.queueProducers + stage.pollers.length) * (SECONDS_A_MONTH / 3600);
  return [
    ["in full use: KMS calls for the table keys", dollarsFor("kmsRequest", stage.tableUses * (SECONDS_A_MONTH / 300))],
    [
      `for each receiver that is down for ${settings.disableAfterSeconds() / 86_400} days and then disabled, however many deliveries wait for it`,
      dollars(downLines(units, asDeployed(units))),
    ],
    ["in full use: secret reads by ten authorizers", dollarsFor("secretRead", 10 * 2 * (SECONDS_A_MONTH / 300))],
    [
      "with a customer managed key: the key and its use by the queues",
      dollarsFor("kmsKey", 1) + dollarsFor("kmsRequest", queueKeys),
    ],
  ];
}

/** Returns the storage of a million rows. DynamoDB adds 100 bytes to the size of each stored item. */
const keptBytes = (rowBytes: number): number => MILLION * (rowBytes + 100);

function sensitivity(units: Units): string[][] {
  const rowFor = (name: string, changes: Partial<Assumptions>) => {
    const config = asDeployed(units, changes);
    const isSlow = config.receiverMs >= SLOW_AFTER_MS;
    const rowFirst = isSlow ? happy(units, { ...HAPPY, isRowFirst: true }, config) - happy(units, HAPPY, config) : 0;
    return [
      name,
      money(priceOf(units, "key", config)),
      money(happy(units, HAPPY, config) + rowFirst),
      money(happy(units, QUIET, config) + rowFirst),
    ];
  };
  const { cpuFactor, waitMs, receiverMs, coldShare, coldMs } = assumed;
  const times = `${waitMs} ms per wait for AWS, ${receiverMs} ms per receiver, ${coldShare * 100} % cold starts of ${coldMs} ms`;
  const none = { cpuFactor: 1, waitMs: 0, receiverMs: 0, coldShare: 0 };
  return [
    rowFor(`assumed: CPU × ${cpuFactor}, ${times}`, {}),
    rowFor("lower bound: CPU time as measured here, no waits", none),
    rowFor("CPU × 4", { cpuFactor: 4 }),
    rowFor("20 ms per wait for AWS", { waitMs: 20 }),
    rowFor("receivers respond in 1 s", { receiverMs: 1_000 }),
    rowFor("every receiver takes 15 s: the row comes first", { receiverMs: 15_000 }),
    rowFor("5 % cold starts", { coldShare: 0.05 }),
  ];
}

/** Sums the lines with the same first part of `what`, in their order. */
function merged(lines: Line[]): [string, number][] {
  const sums = new Map<string, number>();
  for (const line of lines) {
    const [what = ""] = line.what.split(":");
    sums.set(what, (sums.get(what) ?? 0) + dollars([line]));
  }
  return [...sums];
}

/** Renders a table as in docs/scale.md. */
export function inMarkdown({ title, columns, rows }: Table): string {
  const row = (cells: (string | number)[]) =>
    `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [`### ${title}`, "", row(columns), `|${"---|".repeat(columns.length)}`, ...rows.map(row)].join("\n");
}

/** Returns all tables of docs/scale.md. */
export const documented = (units: Units): Table[] => [
  ...tablesOf(units),
  limitsTable(units),
  simulationTable(units),
  frontDoorTable(units),
];

/**
 * Replaces each table of a document by the one with the same title.
 * @throws Error when the document has no table with the title
 */
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
  about: "cost of a million requests and deliveries, from bench/units.json",
  async run(): Promise<Result> {
    const units = readUnits();
    const unverified = Object.entries(prices).flatMap(([name, { evidence }]) =>
      evidence === "not verified" ? [name] : [],
    );
    return {
      tables: tablesOf(units),
      targets: targetsOf(units),
      notes: [
        `Request: ${PRICED_ROUTE}; deliveries in batches of 10. Units were counted on ${units.countedOn}: npm run cost. Time is assumed.`,
        `Prices without a verified source: ${unverified.join(", ")}.`,
        "Not measured on AWS.",
      ],
    };
  },
};

const documentFile = join(import.meta.dirname, "..", "docs", "scale.md");

if (import.meta.main) {
  const tables = documented(readUnits());
  if (process.argv.includes("--markdown")) console.log(tables.map(inMarkdown).join("\n\n"));
  if (process.argv.includes("--write"))
    writeFileSync(documentFile, withTables(readFileSync(documentFile, "utf8"), tables));
}
