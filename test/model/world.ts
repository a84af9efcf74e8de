import { AsyncLocalStorage } from "node:async_hooks";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import type { SQSEvent } from "aws-lambda";
import type { Delivery } from "../../functions/deliveries/line/delivery.ts";
import { queues } from "../../functions/foundation/manifest/queues.ts";
import { tables } from "../../functions/foundation/manifest/tables.ts";
import type { Outcome } from "../../functions/webhooks/receiver/receiver-client.ts";
import type { Webhook } from "../../functions/webhooks/webhook/webhook.ts";
import { Dynamo, type Input, type Item } from "./dynamo.ts";
import type { Product } from "./product.ts";

/*
 * The world around the functions: DynamoDB, SQS, receivers, users, the schedule, and clocks that differ. Each call to AWS and
 * each request to a receiver waits until the schedule lets it happen, and may be cut off, fail before or after it took effect,
 * or be repeated by the SDK, at once or after other calls. Times are in seconds.
 */

/** Longest call to AWS with the repeats of the SDK; deadline of a request to a receiver; lifetime of an invocation. */
export const [CALL, REQUEST, LIFE] = [9, 15, 60];
const VISIBILITY = 360;
/** How long the outcome of a request that could not be recorded is delayed in its queue, and the line is kept meanwhile. */
const [UNRECORDED_DELAY, LINE_PAUSE] = [15, 60];
/** Two clocks differ by less than this. */
const CLOCKS = 3;
const START = Date.parse("2026-01-01T00:00:00Z");

export type Mood = "ok" | "slow" | "fail" | "busy" | "hang" | "gone";
/** `repeat`: the SDK sends a call again at once. `lost`: later, because the call took effect without a response. */
export type Fault = "kill before" | "kill after" | "error before" | "error after" | "repeat" | "lost";

/** A call that waits for the schedule. */
interface Call {
  name: string;
  /** When it has ended, whatever happens. */
  deadline: number;
  run(): unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** Number of the request to a receiver; absent for a call to AWS. */
  request?: number;
  /** The ids of the deliveries that its messages carry. */
  carries?: string[];
  /** It enqueues an outcome that could not be recorded. */
  isOfOutcome?: boolean;
  /** It took effect without a response. */
  isLost?: boolean;
  /** The id of the row that it writes. */
  writes?: unknown;
}

export interface Process {
  name: string;
  kind: string;
  skew: number;
  killAt: number;
  /** How likely its calls happen, compared with those of others: a slow process holds an old view for long. */
  pace: number;
  calls: Set<Call>;
  /** Resolve when the receiver has not answered for two seconds. */
  sleepers: Set<() => void>;
  /** Requests whose outcome is not recorded yet. */
  open: Set<number>;
  /** What it has read of each webhook, and of each delivery with the URL of its webhook: the item, when, and in which step. */
  read: Map<string, { item: Item; at: number; step: number; url: unknown; webhook: Item }>;
  message?: Message;
  isDead: boolean;
}

interface Message {
  number: number;
  queue: "events" | "deliveries" | "slowDeliveries";
  body: string;
  at: number;
  receives: number;
  isDeleted: boolean;
}

/** A request to a receiver. */
interface Sent {
  process: Process;
  delivery: string;
  webhook: string;
  /** The last request of a user that the sender has read. */
  ask: unknown;
  isProbe: boolean;
  /** The deployment, and which of its states. */
  deployment: string;
  sequence: number;
  state: "flying" | "ok" | "failed" | "cut off";
  /** A fault of its process explains that it is repeated, or missing in the log. Nothing else does. */
  isExcused: boolean;
}

export class Violation extends Error {}

export interface WorldOptions {
  random: () => number;
  mood: () => Mood;
  callSeconds: number;
  /** See `isSlowSchedule` in schedule.ts. */
  isSlow: boolean;
  skew: () => number;
  pace: () => number;
  isTraced: boolean;
}

const running = new AsyncLocalStorage<Process>();
export const projectId = "01930000-0000-7000-8000-000000000001";

// The clock of the process that asks. Timers of the product that only bound a wait never end.
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [globalThis.model.now()] : given) as [number]));
  }
  static override now = () => globalThis.model.now();
} as DateConstructor;
globalThis.setInterval = (() => ({ unref: () => undefined })) as never;

export class World {
  t = 1000;
  steps = 0;
  faults = 0;
  isChanged = false;
  lastSweep = 0;
  readonly db = new Dynamo();
  readonly messages: Message[] = [];
  readonly processes: Process[] = [];
  readonly sent: Sent[] = [];
  /** Deliveries whose carried message exists twice, by a fault of SQS. */
  readonly doubled = new Set<string>();
  /** Rows of which the response to a write was lost. */
  readonly lostWrites = new Set<unknown>();
  /** The steps in which a delivery succeeded, and in which a webhook last began or ceased to hold its deliveries. */
  readonly doneIn = new Map<string, number>();
  readonly toggledIn = new Map<string, number>();
  readonly wasHeld = new Set<string>();
  readonly wasShadow = new Set<string>();
  /** The latest time of a probe that was planned while the circuit of a webhook was open. */
  readonly probedUntil = new Map<string, number>();
  /** Webhooks for which a recovery ended after the last time they began to hold. */
  readonly recovered = new Set<string>();
  readonly options: WorldOptions;
  readonly product: Product;
  #nonces = 0;
  #violation: string | undefined;

  constructor(product: Product, options: WorldOptions) {
    this.product = product;
    this.options = options;
    globalThis.model = this;
    Math.random = options.random;
    this.db.onWrite = (table, before, after) => this.#written(table, before, after);
    this.db.call("PutCommand", {
      TableName: "projects",
      Item: {
        user_id: "user",
        project_id: projectId,
        role: "admin",
        name: "model",
        created_at: new Date().toISOString(),
      },
    } as never);
  }

  // ------------------------------------------------------------ what the product takes from outside
  readonly dynamoClient = Object.assign(Object.create(DynamoDBDocumentClient.prototype), {
    send: (command: { constructor: { name: string }; input: Input }) => {
      const { name } = command.constructor;
      const run = () => this.#noted(name, command.input, this.db.call(name, command.input));
      // The sweep reads 32 shards. Nothing depends on when it does.
      if (command.input.IndexName) return Promise.resolve(run());
      return this.#call(name + described(command.input), run, { writes: command.input.Item?.id });
    },
  });

  readonly sqsClient = {
    send: (command: { input: { QueueUrl: string; Entries: { MessageBody: string; DelaySeconds: number }[] } }) => {
      const { QueueUrl, Entries } = command.input;
      const queue = Object.keys(queues).find((key) => queues[key as keyof typeof queues].name === QueueUrl);
      const run = () => {
        for (const { MessageBody, DelaySeconds } of Entries) {
          this.enqueue(queue as Message["queue"], MessageBody, DelaySeconds);
        }
        return {};
      };
      const carries = Entries.flatMap(({ MessageBody }) => JSON.parse(MessageBody).delivery?.id ?? []);
      const kinds = Entries.map(({ MessageBody }) => JSON.parse(MessageBody).kind);
      return this.#call(`send ${kinds}`, run, { carries, isOfOutcome: kinds.includes("unrecorded") });
    },
  };

  now = (): number => START + Math.round((this.t + (running.getStore()?.skew ?? 0)) * 1000);
  nonce = (): string => String(this.#nonces++).padStart(6, "0");
  uuid = (): string => `01930000-0000-7000-8000-${this.nonce().padStart(12, "0")}`;

  logged(line: Item): void {
    if (this.options.isTraced && line.error) console.log("        logged:", line.message, line.error);
  }

  untilSlow(signal: AbortSignal): Promise<void> {
    const process = running.getStore();
    return new Promise((resolve, reject) => {
      process?.sleepers.add(resolve);
      signal.addEventListener("abort", () => {
        process?.sleepers.delete(resolve);
        reject(new Error("aborted"));
      });
    });
  }

  post(url: string, headers: Record<string, string>): Promise<Outcome> {
    const process = running.getStore() as Process;
    const request = this.#begin(process, headers["X-Service-Delivery"] ?? "", url);
    return this.#call(`POST ${headers["X-Service-Delivery"]}`, () => this.#answer(request), {
      request,
    }) as Promise<Outcome>;
  }

  #call(name: string, run: () => unknown, more: Partial<Call> = {}): Promise<unknown> {
    const process = running.getStore();
    if (!process) return new Promise((resolve) => resolve(run()));
    // A killed process never continues.
    if (process.isDead) return new Promise(() => {});
    const deadline = this.t + (more.request === undefined ? this.options.callSeconds : REQUEST);
    return new Promise((resolve, reject) => process.calls.add({ name, run, resolve, reject, deadline, ...more }));
  }

  /** Remembers what a process has read before a request. */
  #noted(command: string, _input: unknown, output: Item): Item {
    const process = running.getStore();
    if (!process || command !== "BatchGetCommand") return output;
    const { deliveries = [], webhooks = [] } = output.Responses as Record<string, Item[]>;
    const read = { at: this.t, step: this.steps, url: webhooks[0]?.url, webhook: webhooks[0] ?? {} };
    for (const item of [...deliveries, ...webhooks]) process.read.set(String(item.id), { item, ...read });
    if (deliveries.length === 0) process.read.set("no row", { item: {}, ...read });
    return output;
  }

  // ------------------------------------------------------------ what happens
  /** Starts an invocation. */
  start(kind: string, run: () => Promise<unknown>, message?: Message): void {
    const name = message ? `${kind} ${message.number}.${message.receives}` : `${kind} ${this.steps}`;
    const process: Process = {
      ...{
        name,
        kind,
        skew: this.options.skew(),
        pace: this.options.pace(),
        killAt: this.t + LIFE,
        calls: new Set(),
        sleepers: new Set(),
      },
      ...{ open: new Set(), read: new Map(), isDead: false, ...(message && { message }) },
    };
    this.processes.push(process);
    running.run(process, () => {
      run().then(
        (result) => this.#end(process, isSuccess(result)),
        () => this.#end(process, false),
      );
    });
  }

  context = () => ({ getRemainingTimeInMillis: () => ((running.getStore()?.killAt ?? 0) - this.t) * 1000 });

  #end(process: Process, isWell: boolean): void {
    if (process.isDead) return;
    process.isDead = true;
    this.processes.splice(this.processes.indexOf(process), 1);
    this.#log(process, isWell ? "ends" : "fails");
    // Otherwise it is visible again after its timeout.
    if (isWell && process.message) process.message.isDeleted = true;
  }

  kill(process: Process): void {
    for (const one of this.sent) if (one.process === process && one.state === "flying") one.state = "cut off";
    this.#excuse(process);
    process.calls.clear();
    this.#end(process, false);
  }

  #excuse(process: Process): void {
    for (const request of process.open) (this.sent[request] as Sent).isExcused = true;
  }

  /** Lets a call happen, with a fault or without. */
  do(process: Process, call: Call, fault?: Fault): void {
    process.calls.delete(call);
    this.#log(process, `${call.name}${fault ? ` (${fault})` : ""}`);
    if (fault) this.faults += 1;
    // An error of any other call explains neither a repetition nor a request that is not in the log.
    if (fault?.startsWith("kill") || (fault?.startsWith("error") && call.isOfOutcome)) this.#excuse(process);
    if (fault === "repeat" || fault === "lost") for (const id of call.carries ?? []) this.doubled.add(id);
    let [value, error]: [unknown, unknown] = [undefined, undefined];
    try {
      if (!fault?.endsWith("before")) value = running.run(process, call.run);
      if (fault === "repeat") value = running.run(process, call.run);
    } catch (thrown) {
      error = thrown;
    }
    if (fault?.startsWith("kill")) this.kill(process);
    else if (fault === "lost") {
      this.lostWrites.add(call.writes);
      process.calls.add({ ...call, isLost: true });
    } else if (fault?.startsWith("error"))
      call.reject(Object.assign(new Error("injected"), { name: "ServiceUnavailable" }));
    else if (error) call.reject(error);
    else if (value === AGAIN) process.calls.add(call);
    else call.resolve(value);
  }

  enqueue(queue: Message["queue"], body: string, delay: number): void {
    const number = this.messages.length;
    this.messages.push({ number, queue, body, at: this.t + delay, receives: 0, isDeleted: false });
  }

  /** @param isExtra SQS delivers it once more, whatever has become of it, and does not count that */
  receive(message: Message, isExtra = false): void {
    if (!isExtra) [message.receives, message.at] = [message.receives + 1, this.t + VISIBILITY];
    else {
      const { delivery } = JSON.parse(message.body);
      if (delivery) this.doubled.add(delivery.id);
      this.faults += 1;
    }
    const handler = { events: "fanOut", deliveries: "send", slowDeliveries: "sendSlow" } as const;
    const attributes = { ApproximateReceiveCount: String(message.receives), SentTimestamp: String(this.now()) };
    const event = {
      Records: [{ messageId: `m${message.number}`, body: message.body, attributes }],
    } as never as SQSEvent;
    const { kind = "event" } = JSON.parse(message.body);
    const run = () => this.product[handler[message.queue]](event, this.context());
    this.start(kind, run, isExtra ? undefined : message);
  }

  sweep(): void {
    this.lastSweep = this.t;
    this.start("sweep", () => this.product.sweep({}, this.context()));
  }

  /** No call takes longer than its bound, and no process lives longer than its timeout. */
  advance(to: number): void {
    const deadlines = this.processes.flatMap(({ calls }) => [...calls].map(({ deadline }) => deadline));
    this.t = Math.min(to, ...deadlines, ...this.processes.map(({ killAt }) => killAt));
    for (const process of this.processes.filter(({ killAt }) => killAt <= this.t)) {
      this.faults += 1;
      this.kill(process);
    }
  }

  visible = (): Message[] => this.messages.filter(({ at, isDeleted }) => !isDeleted && at <= this.t);
  #wakeUps = () => this.db.items("backlog").filter(({ line }) => String(line).startsWith("wake-up#"));
  #overdue = () => this.#wakeUps().filter(({ due }) => timeOf(due) <= this.t);
  nextWakeUp = (): number => Math.min(...this.#wakeUps().map(({ due }) => timeOf(due)));
  isSweepDue = (): boolean => this.t >= this.lastSweep + 60 && this.#overdue().length > 0;

  /** Returns the next time at which anything can happen by itself. */
  nextTime(): number {
    const dues = this.#wakeUps().map(({ due }) => (timeOf(due) > this.t ? timeOf(due) : this.lastSweep + 60));
    const messages = this.messages.flatMap(({ at, isDeleted }) => (isDeleted ? [] : at));
    return Math.min(...[...dues, ...messages].filter((time) => time > this.t));
  }

  rows = (): Delivery[] => this.db.items("deliveries") as never;
  hooks = (): Webhook[] => this.db.items("webhooks").filter(({ url }) => url !== undefined) as never;

  #log(process: Process, text: string): void {
    if (!this.options.isTraced) return;
    console.log(
      `${String(this.steps).padStart(4)} ${this.t.toFixed(1).padStart(8)}  ${process.name.padEnd(16)} ${text}`,
    );
  }

  /** A slow receiver answers at the second time. */
  #answer(request: number): Outcome | typeof AGAIN {
    const one = this.sent[request] as Sent & { mood?: Mood };
    const isFirst = one.mood === undefined;
    one.mood ??= this.options.mood();
    const { mood, process } = one;
    if (isFirst && (mood === "slow" || mood === "hang")) {
      for (const wake of process.sleepers) wake();
      return AGAIN;
    }
    one.state = mood === "ok" || mood === "slow" ? "ok" : "failed";
    // The duration tells the request in the log.
    if (mood === "hang") return { errorCode: "timeout", durationMs: request };
    const statusCode = { ok: 200, slow: 200, fail: 500, busy: 429, gone: 410 }[mood];
    const failure = { errorCode: "http_status", ...(mood === "busy" && { retryAfter: "20" }) } as const;
    return { statusCode, durationMs: request, ...(statusCode !== 200 && failure) };
  }

  // ------------------------------------------------------------ what must hold
  failIf(isTrue: boolean, reason: string): void {
    if (isTrue) throw new Violation(reason);
  }

  /** For the calls of the product, which would catch an error. `check` throws it. */
  #noteIf(isTrue: boolean, reason: string): void {
    if (isTrue) this.#violation ??= reason;
  }

  #written(table: string, before: Item | undefined, after: Item | undefined): void {
    this.isChanged = true;
    if (table === "deliveries" && after?.status === "succeeded" && before?.status !== "succeeded") {
      this.doneIn.set(String(after.id), this.steps);
    }
    const process = running.getStore();
    const attempts = (table === "deliveries" && (after?.attempts as { duration_ms: number }[])) || [];
    for (const { duration_ms } of attempts) process?.open.delete(duration_ms);
    const id = String((after ?? before)?.id);
    if (table === "webhooks" && after?.mode === "shadow") this.wasShadow.add(id);
    if (table === "webhooks" && before?.url !== undefined && isHolding(before) !== isHolding(after)) {
      this.toggledIn.set(id, this.steps);
      this.wasHeld.add(id);
      this.recovered.delete(id);
    }
  }

  /**
   * After every step: a row that waits has a place, and a wake-up that is not later than it, but for the pause after failures,
   * or after a fault, and for the next probe while the circuit is open, or was when it was planned, also for `Retry-After`.
   */
  check(): void {
    if (this.#violation !== undefined) throw new Violation(this.#violation);
    const backlog = this.isChanged ? this.db.items("backlog") : [];
    this.isChanged = false;
    const entries = new Set(backlog.map(({ entry }) => entry));
    const wakeUps = new Map(backlog.map(({ line, due }) => [line, timeOf(due)]));
    const pause = CLOCKS + (this.faults === 0 ? 10 : 60);
    for (const { id, failing_since, probe_at } of backlog.length > 0 ? this.hooks() : []) {
      const isDown = failing_since !== undefined && timeOf(failing_since) + 30 - CLOCKS <= this.t;
      const isOpen = isDown || (probe_at !== undefined && timeOf(probe_at) >= this.t - CLOCKS);
      if (isOpen) this.probedUntil.set(id, this.t + CLOCKS + 300);
    }
    for (const { id, webhook_id, status, place = "" } of backlog.length > 0 ? this.rows() : []) {
      if (status !== "pending") continue;
      this.failIf(!entries.has(place), `${id} waits without a place`);
      const wakeUpAt = wakeUps.get(`wake-up#${webhook_id}`);
      const due = timeOf(place.split("#")[1]);
      this.failIf(wakeUpAt === undefined, `${id} waits without a wake-up`);
      const latest = Math.max(due, this.t + pause, this.probedUntil.get(webhook_id) ?? 0);
      this.failIf((wakeUpAt ?? 0) > latest, `${id} is due at ${due}, its wake-up at ${wakeUpAt}`);
    }
  }

  /** A request begins. @returns its number */
  #begin(process: Process, delivery: string, url: string): number {
    const known = process.read.get(delivery);
    const row = this.rows().find(({ id }) => id === delivery);
    const carried = process.message && JSON.parse(process.message.body).delivery;
    const webhookId = row?.webhook_id ?? carried?.webhook_id;
    const webhook = process.read.get(webhookId);
    if (!webhook) throw new Violation("a request without a webhook that was read");
    const { requested_at: ask, trigger } = (known?.item ?? {}) as Partial<Delivery>;
    this.#noteIf((known ?? process.read.get("no row"))?.url !== url, `${delivery} is requested at an earlier URL`);
    // The outcome of a carried request may wait in its queue for longer than the row of a duplicate event waits; that of
    // another request for longer than its line.
    const unrecorded = this.messages.find(
      ({ body, isDeleted }) => !isDeleted && body.includes('"unrecorded"') && body.includes(delivery),
    );
    const isLate = unrecorded !== undefined && unrecorded.at + LINE_PAUSE - UNRECORDED_DELAY - CLOCKS < this.t;
    // A request whose write was lost does not know that it was served, if another one was served since.
    const isOtherAsk = (one: Sent) => one.delivery === delivery && one.ask !== ask;
    const lastOther = this.lostWrites.has(delivery) ? this.sent.findLastIndex(isOtherAsk) : -1;
    const same = this.sent.filter(
      (one, index) =>
        index > lastOther &&
        one.delivery === delivery &&
        one.ask === ask &&
        /flying|ok/.test(one.state) &&
        !one.isExcused &&
        !(unrecorded && (isLate || one.process.kind === "first")),
    );
    this.#noteIf(same.length > 0 && !this.doubled.has(delivery), `${delivery} is requested again`);
    const isDone = row?.status === "succeeded" && row.requested_at === ask;
    this.#noteIf(
      isDone && (this.doneIn.get(delivery) ?? 0) < (known?.step ?? process.read.get("no row")?.step ?? 0),
      `${delivery} is requested after its success`,
    );
    this.#noteIf(
      // What is newer is read after the webhook.
      this.t - webhook.at > (webhook.item.delivery === "latest" ? 5 : 2) * this.options.callSeconds + 1,
      "a request with a webhook that was read long ago",
    );
    const isOnRequest = trigger === "redeliver" || trigger === "test";
    // As it was read for this delivery: the worker has read it again for others since.
    const item: Partial<Webhook> = (known ?? webhook).webhook;
    this.#noteIf(
      isOnRequest ? item.suspended_at !== undefined : isHolding(item),
      "a request to a webhook that is held",
    );
    this.#noteIf(item.mode === "shadow", "a request to a webhook in shadow mode");
    const circuit = this.product.checkCircuit(item, new Date());
    const isProbe = circuit.kind === "open" && !isOnRequest && row?.test !== true;
    const others = this.sent.filter((one) => one.webhook === webhookId && one.state === "flying");
    const { deployment_id: deployment, ...sentState } = (row ?? carried) as Delivery;
    const sequence = this.product.sequenceOf(sentState);
    const isOlder = (one: Sent) =>
      one.webhook === webhookId && one.deployment === deployment && one.state === "ok" && one.sequence > sequence;
    this.#noteIf(
      item.delivery === "latest" && !isOnRequest && this.sent.some(isOlder),
      `${delivery} is requested after a newer state was accepted`,
    );
    this.#noteIf(isProbe && others.some((one) => one.isProbe), "two probes at once");
    const isWorker = process.kind === "work";
    const isSecond = isWorker && others.some((one) => one.process.kind === "work" && one.process !== process);
    this.#noteIf(isSecond, `two workers of ${webhookId}`);
    const request = this.sent.push({
      ...{
        process,
        delivery,
        webhook: webhookId,
        ask,
        isProbe,
        deployment,
        sequence,
        state: "flying",
        isExcused: false,
      },
    } as Sent);
    process.open.add(request - 1);
    return request - 1;
  }

  /** When nothing is left to do. */
  checkEnd(): void {
    const hooks = this.hooks();
    const [rows, exists] = [this.rows(), new Set(hooks.map(({ id }) => id))];
    for (const event of this.db.items("events").filter(({ copy_of }) => copy_of === undefined)) {
      for (const { id } of hooks) {
        const isThere = rows.some(({ webhook_id, body }) => webhook_id === id && body === event.body);
        this.failIf(!isThere, `the delivery of ${event.deployment_id} to ${id} is lost`);
      }
    }
    const attempts = rows.flatMap((row) => row.attempts ?? []);
    const logged = new Map(attempts.map(({ duration_ms, error_code }) => [duration_ms, error_code === undefined]));
    this.failIf(logged.size < attempts.length, "an attempt is in the log twice");
    for (const [request, { delivery, webhook, state, isExcused }] of this.sent.entries()) {
      const isLogged = logged.has(request);
      this.failIf(
        !isLogged && !isExcused && exists.has(webhook),
        `request ${request} of ${delivery} is not in the log`,
      );
      this.failIf(isLogged && logged.get(request) !== (state === "ok"), "the log claims what was not");
    }
    for (const row of rows) this.#checkRow(row, exists);
    for (const row of rows.filter(({ status }) => status === "superseded")) {
      const by = rows.find(({ id }) => id === row.superseded_by);
      const isNewer =
        by?.deployment_id === row.deployment_id && this.product.sequenceOf(by) > this.product.sequenceOf(row);
      this.failIf(!isNewer && exists.has(row.webhook_id), `${row.id} is superseded by nothing newer`);
    }
    const backlog = this.db.items("backlog");
    this.failIf(this.#wakeUps().length > 0, "a wake-up without rows is left");
    this.failIf(backlog.length > 0 && this.faults === 0, "a place without a row is left");
  }

  #checkRow(row: Delivery, exists: Set<string>): void {
    const { id, webhook_id, status, attempts = [], attempts_before_schedule = 0, requested_at, shadow, test } = row;
    this.failIf(status === "pending", `${id} waits for ever`);
    if (!exists.has(webhook_id)) return;
    const isAnswered =
      requested_at === undefined ||
      (shadow !== undefined && shadow.at >= (requested_at.split(" ")[0] as string)) ||
      this.sent.some((one) => one.delivery === id && one.ask === requested_at);
    this.failIf(status === "cancelled", `${id} is cancelled, and its webhook exists`);
    this.failIf(status === "shadowed" && !this.wasShadow.has(webhook_id), `${id} is shadowed for no reason`);
    this.failIf(status === "held" && !this.wasHeld.has(webhook_id), `${id} is held for no reason`);
    const isMissed = status === "held" && this.recovered.has(webhook_id) && this.faults === 0 && !test;
    this.failIf(isMissed, `${id} is held after a recovery`);
    this.failIf(
      status === "failed" && attempts.every(({ error_code }) => !error_code),
      `${id} failed without a failure`,
    );
    const late = attempts.slice(attempts_before_schedule).some(({ error_code }) => !error_code);
    this.failIf(status === "failed" && late, `${id} lost its success`);
    this.failIf(/succeeded|failed/.test(status) && !isAnswered, `${id} was asked for, and not sent`);
  }
}

/** A call that happens again later. */
const AGAIN = Symbol("again");

const timeOf = (iso: unknown): number => (Date.parse(String(iso)) - START) / 1000;

const isHolding = (webhook: Item | Partial<Webhook> | undefined): boolean =>
  webhook?.disabled_at !== undefined || webhook?.suspended_at !== undefined;

/** Returns whether all messages of a batch were processed, or an endpoint did not fail. */
function isSuccess(result: unknown): boolean {
  const { batchItemFailures = [], statusCode = 200 } = (result ?? {}) as {
    batchItemFailures?: unknown[];
    statusCode?: number;
  };
  return batchItemFailures.length === 0 && statusCode < 500;
}

function described({ TableName = "", UpdateExpression = "", Item }: Partial<Input>): string {
  const { status } = (Item ?? {}) as Partial<Delivery>;
  return ` ${TableName} ${status ?? UpdateExpression.slice(0, 60)}`;
}

/** Lets the functions find the tables and queues of the model. */
export function prepareEnvironment(): void {
  for (const { env, name } of Object.values(tables)) process.env[env] = name;
  for (const { env, name, deadLetterEnv } of Object.values(queues)) {
    process.env[env] = name;
    process.env[deadLetterEnv] = `${name}-dlq`;
  }
  process.env.RETRY_SCHEDULE = "5,300,1800";
  process.env.DISABLE_AFTER_SECONDS = "20000";
}
