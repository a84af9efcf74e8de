import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AT_ONCE } from "../functions/deliveries/sending/work.ts";
import { asDeployed, billedMs, type Config } from "./billed-time.ts";
import type { Bench, Table, Target } from "./harness.ts";
import { filled, limitsTable, WAITS_PER_ROUND } from "./limits.ts";
import { dollarsFor, type PriceKey, prices } from "./prices.ts";
import texts from "./texts.json" with { type: "json" };
import { readUnits, type Units, type Usage } from "./units.ts";

/*
 * Computes the cost of a million requests and of a million deliveries, in dollars: counted units times list prices.
 *
 *     node bench/cost.ts --write     writes the tables of docs/scale.md, from bench/units.json
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
  return [
    line(`${what}: calls`, "invocation", calls),
    line(`${what}: time`, "armSecond", calls * gbSeconds),
    line(`${what}: reads`, "read", calls * usage.reads),
    line(`${what}: writes`, "write", calls * usage.writes),
    line(`${what}: index writes`, "write", calls * usage.indexWrites),
    line(`${what}: queue requests`, "queueRequest", calls * usage.queueRequests),
    line(`${what}: log lines`, "logByte", calls * usage.logBytes),
  ];
}

type Credential = "jwt" | "key";

/** Returns the bill of a million requests. */
export function requestLines({ calls, sizes }: Units, credential: Credential, config: Config): Line[] {
  const [authorizer, endpoint] = [calls[`${credential}Authorizer`], calls[`${credential}Endpoint`]];
  return [
    line("API Gateway", "apiRequest", MILLION),
    ...linesOf({ what: "authorizer", file: "auth-authorizer", usage: authorizer, calls: MILLION }, config),
    ...linesOf({ what: "endpoint", file: "listProjects", usage: endpoint, calls: MILLION }, config),
    line("access log", "logByte", MILLION * sizes[`${credential}AccessLogBytes`]),
    line("responses", "byteOut", MILLION * sizes.responseBytes),
  ];
}

type Counted = Pick<Units, "calls" | "sizes">;

export interface DeliveryMix {
  /** Webhooks per event. */
  webhooks: 1 | 10;
  /** Messages per batch in both queues: 10 when they are busy, 1 when they are quiet. */
  batch: 1 | 10;
  /** Deliveries that wait, as those of a slow webhook, and that a worker sends in one visit. With 1 webhook per event. */
  visit?: 1 | 10 | 100;
}

/** Returns the bill of a million deliveries that succeed at the first attempt. */
export function deliveryLines({ calls: counted, sizes }: Units, mix: DeliveryMix, config: Config): Line[] {
  const { webhooks, batch, visit } = mix;
  if (visit) return waitingLines({ calls: counted, sizes }, visit, config);
  const fanOut = counted[`fanOut${batch}x${webhooks}`];
  const events = MILLION / webhooks;
  const calls = events / batch;
  // In a batch only concurrent calls can be counted, not which of them wait for each other.
  const waits = counted[`fanOut1x${webhooks}`].waits;
  const usageOfTen = webhooks === 1 ? counted.send10OfOne : counted.send10;
  const usage = batch === 1 ? counted.send1 : usageOfTen;
  const sending: CallOf = {
    ...{ what: "send", file: "attempts-send", usage },
    ...{ calls: MILLION / batch, waits: counted.send1.waits, elsewhereMs: config.receiverMs },
  };
  return [
    ...eventLines(events, batch),
    ...linesOf({ what: "fan-out", file: "deliveries-fan-out", usage: fanOut, calls, waits }, config),
    line("deliveries queue: received, deleted", "queueRequest", (2 * MILLION) / batch),
    line("deliveries queue: fair", "fairQueueRequest", calls * fanOut.queueRequests + (2 * MILLION) / batch),
    ...linesOf(sending, config),
    line("requests to receivers", "byteOut", MILLION * sizes.requestBytes),
  ];
}

/** Returns the bill of a million deliveries that wait in the line of their webhook, and succeed at the first attempt. */
function waitingLines({ calls: counted, sizes }: Counted, visit: 1 | 10 | 100, config: Config): Line[] {
  const { quietFanOut, waitingFanOut } = counted;
  const batch = visit === 1 ? 1 : 10;
  const visits = MILLION / visit;
  const fanOut: CallOf = {
    ...{ what: "fan-out", file: "deliveries-fan-out", usage: batch === 1 ? quietFanOut : waitingFanOut },
    ...{ calls: MILLION / batch, waits: quietFanOut.waits },
  };
  // The first delivery of each visit also creates the wake-up, and sends its message.
  const created = batch === 1 ? 0 : visits;
  const rounds = Math.ceil(visit / AT_ONCE);
  const work: CallOf = {
    ...{ what: "work", file: "attempts-send-slow", usage: counted[`work${visit}`], calls: visits },
    ...{ waits: counted.work1.waits + WAITS_PER_ROUND * (rounds - 1), elsewhereMs: rounds * config.receiverMs },
  };
  return [
    ...eventLines(MILLION, batch),
    ...linesOf(fanOut, config),
    line("fan-out: new wake-ups: index writes", "write", created * quietFanOut.indexWrites),
    line("fan-out: new wake-ups: queue requests", "queueRequest", created),
    line("slow deliveries queue: received, deleted", "queueRequest", 2 * visits),
    line("slow deliveries queue: fair", "fairQueueRequest", 3 * visits),
    ...linesOf(work, config),
    line("requests to receivers", "byteOut", MILLION * sizes.requestBytes),
  ];
}

/** The pipeline sends events one by one and without a group id, so the price of fair queues does not apply. */
const eventLines = (events: number, batch: number): Line[] => [
  line("events queue: sent", "queueRequest", events),
  line("events queue: received, deleted", "queueRequest", (2 * events) / batch),
];

/** Returns the bill of a stage without traffic, per month. */
export function idleLines({ stage, calls }: Units, config: Config): Line[] {
  const runs = { calls: SECONDS_A_MONTH / 60 };
  const publish = { ...runs, file: "deliveries-publish-notifications", usage: calls.publishNothing };
  // Lambda keeps five long polls of 20 s open per queue. It reduces them to two only without a maximum concurrency.
  // https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
  const polls = stage.pollers * 5 * (SECONDS_A_MONTH / 20);
  return [
    line(`${stage.alarms} alarms on ${stage.alarmMetrics} metrics`, "alarmMetric", stage.alarmMetrics),
    line("dashboard", "dashboard", stage.dashboards),
    line(`${stage.idleMetrics} metrics that are written every minute`, "customMetric", stage.idleMetrics),
    line("polls of idle queues", "queueRequest", polls),
    line("JWT secret, and that of the signatures", "secret", stage.secrets),
    ...linesOf({ ...runs, what: "sweep", file: "deliveries-sweep", usage: calls.sweepNothing }, config),
    ...linesOf({ ...publish, what: `search for notifications, ${publish.usage.reads} reads a minute` }, config),
  ];
}

/** Returns the row of a line in a breakdown; absent means that the price is only part of an idle stage. */
function serviceOf({ what, price }: Line): string | undefined {
  const priced: { per: number; service?: string } = prices[price];
  return what.includes("index") ? "index writes" : priced.service;
}

const money = (value: number): string => value.toFixed(2);

function breakdown(title: string, columns: Record<string, Line[]>): Table {
  const bills = Object.values(columns);
  const rows = texts.services.flatMap((name) => {
    const sums = bills.map((lines) => dollars(lines.filter((line) => serviceOf(line) === name)));
    return Math.max(...sums) > 0 ? [[name, ...sums.map(money)]] : [];
  });
  const all = ["all", ...bills.map((lines) => money(dollars(lines)))];
  return { title, columns: ["$ per million", ...Object.keys(columns)], rows: [...rows, all] };
}

const HAPPY: DeliveryMix = { webhooks: 1, batch: 10 };
const TEN: DeliveryMix = { webhooks: 10, batch: 10 };
const QUIET: DeliveryMix = { webhooks: 1, batch: 1 };
const SLOW: DeliveryMix = { webhooks: 1, batch: 10, visit: 10 };

const FAILING = 0.05;

/** Returns what a million deliveries cost more that fail at the first attempt and succeed at the second one. */
function retryLines({ calls: counted, sizes }: Units, config: Config): Line[] {
  const { fail1, send1, retry } = counted;
  const once = { calls: MILLION, elsewhereMs: config.receiverMs };
  const more = (key: keyof Usage) => fail1[key] - send1[key];
  const usage = { ...fail1, reads: more("reads"), writes: more("writes"), logBytes: more("logBytes") };
  // The failed attempt shares its call with nine others, which wait for it.
  return [
    ...linesOf({ what: "fail", file: "attempts-send", usage, calls: MILLION, waits: more("waits") }, config).filter(
      ({ price }) => price !== "invocation",
    ),
    line("slow deliveries queue: received, deleted", "queueRequest", 2 * MILLION),
    line("slow deliveries queue: fair", "fairQueueRequest", 3 * MILLION),
    ...linesOf({ ...once, what: "retry", file: "attempts-send-slow", usage: retry }, config),
    line("requests to receivers", "byteOut", MILLION * sizes.requestBytes),
  ];
}

/** Memory of `credentials-verify`. */
const VERIFY_MB = 512;

/** Returns the price of a verification by another service: the reads of the authorizer and of the member, one after the other. */
function verificationPrice({ calls }: Units, config: Config): number {
  const gbSeconds = (VERIFY_MB / 1024) * (billedMs(calls.keyAuthorizer, 2, 0, VERIFY_MB, config) / 1000);
  return dollarsFor("invocation", 1) + dollarsFor("read", 2) + dollarsFor("armSecond", gbSeconds);
}

export function targetsOf(units: Units): Target[] {
  const config = asDeployed(units);
  const request = (credential: Credential) => dollars(requestLines(units, credential, config));
  const delivery = (mix: DeliveryMix) => dollars(deliveryLines(units, mix, config));
  /** The writes to tables and indexes per delivery, the row of the event included. */
  const writes = (mix: DeliveryMix) =>
    deliveryLines(units, mix, config).reduce((sum, { price, units }) => sum + (price === "write" ? units : 0), 0) /
    MILLION;
  const bounds: [name: string, value: number, bound: number][] = [
    ["request with a JWT, $ per million", request("jwt"), 4.8],
    ["request with a key, $ per million", request("key"), 4.8],
    ["delivery, 1 webhook per event, $ per million", delivery(HAPPY), 2.6],
    ["delivery, 10 webhooks per event, $ per million", delivery(TEN), 1.85],
    ["delivery to a slow webhook, ten at a time, $ per million", delivery(SLOW), 5.46],
    ["delivery, 5 % failing once, $ per million", delivery(HAPPY) + FAILING * dollars(retryLines(units, config)), 3.57],
    ["verification without a cache, $ per million", MILLION * verificationPrice(units, config), 1],
    ["delivery, 1 webhook per event, table and index writes", writes(HAPPY), 2],
    ["delivery, 10 webhooks per event, table and index writes", writes(TEN), 1.1],
  ];
  return bounds.map(([name, value, bound]) => ({ name, value, bound }));
}

export function tablesOf(units: Units): Table[] {
  const config = asDeployed(units);
  const requests = { jwt: requestLines(units, "jwt", config), key: requestLines(units, "key", config) };
  const priced = breakdown("A million requests", { "with a JWT": requests.jwt, "with a key": requests.key });
  const withFirewall = (lines: Line[]) => money(dollars(lines) + dollarsFor("firewallRequest", MILLION));
  const firewall = ["all, with the firewall, as in prod", withFirewall(requests.jwt), withFirewall(requests.key)];
  const delivery = (mix: DeliveryMix) => deliveryLines(units, mix, config);
  const idle = idleLines(units, config);
  return [
    { ...priced, rows: [...priced.rows, firewall] },
    breakdown("A million deliveries that succeed", {
      "1 webhook per event": delivery(HAPPY),
      "10 webhooks per event": delivery(TEN),
      "1 webhook, quiet queue": delivery(QUIET),
      "1 slow webhook, ten at a time": delivery(SLOW),
      "1 slow webhook, a hundred at a time": delivery({ ...SLOW, visit: 100 }),
      "1 slow webhook, quiet": delivery({ ...SLOW, visit: 1 }),
    }),
    {
      title: "An idle stage, per month",
      columns: ["", "$"],
      rows: [
        ...[...merged(idle), ["all", dollars(idle)] as const].map(([what, value]) => [what, money(value)]),
        ...inUse(units).map(([what, value]) => [what, `+ ${money(value)}`]),
      ],
    },
  ];
}

/** Returns what an idle stage does not have. Costs that depend on the number of functions in use are upper bounds. */
function inUse({ stage }: Units): [string, number][] {
  // DynamoDB calls KMS for the key of a table once in five minutes per role. An AWS managed key costs only these calls.
  // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.howitworks.html
  const tableKeys = stage.tableUses * (SECONDS_A_MONTH / 300);
  // (2 * producers + consumers) calls per data key reuse period, here one hour.
  // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
  const queueKeys = (2 * stage.queueProducers + stage.pollers) * (SECONDS_A_MONTH / 3600);
  const sums: Record<keyof typeof texts.inUse, number> = {
    firewall: dollarsFor("webAcl", 1) + dollarsFor("webAclRule", stage.firewallRules),
    tableKeys: dollarsFor("kmsRequest", tableKeys),
    secretReads: dollarsFor("secretRead", 10 * 2 * (SECONDS_A_MONTH / 300)),
    customerKey: dollarsFor("kmsKey", 1) + dollarsFor("kmsRequest", queueKeys),
    metrics: dollarsFor("customMetric", stage.allMetrics - stage.idleMetrics),
  };
  return (Object.keys(sums) as (keyof typeof sums)[]).map((key) => [filled(texts.inUse[key], stage), sums[key]]);
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

/** Renders a table as in the documents. */
export function inMarkdown({ title, columns, rows }: Table): string {
  const row = (cells: (string | number)[]) =>
    `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [`### ${title}`, "", row(columns), `|${"---|".repeat(columns.length)}`, ...rows.map(row)].join("\n");
}

/** Returns the tables of docs/scale.md. */
export const documented = (units: Units): Table[] => [...tablesOf(units), limitsTable(units)];

/**
 * Replaces each table of a document by the one with the same title.
 * @throws Error when the document has no table with the title
 */
export function withTables(document: string, tables: Table[]): string {
  return tables.reduce((text, table) => {
    const start = text.indexOf(`### ${table.title}\n`);
    if (start < 0) throw new Error(`The document has no table "${table.title}"`);
    const old = /^### .*\n\n(\|.*(\n|$))*/.exec(text.slice(start))?.[0] ?? "";
    return `${text.slice(0, start)}${inMarkdown(table)}\n${text.slice(start + old.length)}`;
  }, document);
}

const unverified = Object.entries(prices).flatMap(([name, { evidence }]) =>
  evidence === "not verified" ? [name] : [],
);

export const bench: Bench = {
  name: "cost",
  about: "cost of a million requests and deliveries, from bench/units.json",
  run: async () => ({
    tables: tablesOf(readUnits()),
    targets: targetsOf(readUnits()),
    notes: [
      `Units were counted on ${readUnits().countedOn}: npm run cost. Time is assumed. Not measured on AWS.`,
      `Prices without a verified source: ${unverified.join(", ")}.`,
    ],
  }),
};

if (import.meta.main && process.argv.includes("--write")) {
  const file = join(import.meta.dirname, "../docs/scale.md");
  writeFileSync(file, withTables(readFileSync(file, "utf8"), documented(readUnits())));
}
