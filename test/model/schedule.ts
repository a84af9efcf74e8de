import { randomBytes } from "node:crypto";
import type { WebhookPatch } from "../../functions/webhooks/webhook/webhook.ts";
import type { Product } from "./product.ts";
import { CALL, type Fault, type Mood, projectId, World } from "./world.ts";

/* Random schedules: what happens next is drawn, with a weight for each possibility. A seed always gives the same schedule. */

const FAULTS: Fault[] = ["kill before", "kill after", "error before", "error after", "repeat"];
const ASKS = [
  "redeliver",
  "redeliver",
  "recover",
  "recover",
  "test",
  "disable",
  "enable",
  "enable",
  "suspend",
  "resume",
  "url",
  "shadow",
  "shadow",
  "live",
  "delete",
];

/** In a lost schedule, users ask for deliveries, and only responses are lost. */
const LOST_ASKS = ["redeliver", "redeliver", "redeliver", "recover", "test"];

/** What may still be asked for, go wrong, or take long. */
interface Left {
  faults: number;
  kinds: readonly Fault[];
  /** Upper bound on processes at once, if more may be received. */
  atOnce: number;
  /** Weights: of a call that waits, and of a message that is received. */
  pace: number;
  rush: number;
  script: (() => void)[];
  isRandom: boolean;
}

/** Weights of what a slow schedule puts off, and of what it puts before that. */
const [LATE, FIRST] = [0.05, 50];
/** Messages that carry deliveries are received so many seconds before the next wake-up. */
const LATE_SECONDS = 10;

interface Option {
  weight: number;
  act(): void;
}

function optionsOf(world: World, left: Left): Option[] {
  const options: Option[] = [];
  const add = (weight: number, act: () => void) => options.push({ weight, act });
  const waiting = world.processes.flatMap((process) => [...process.calls].map((call) => ({ process, call })));
  const isSlow = left.isRandom && world.options.isSlow;
  for (const { process, call } of waiting) {
    const isLate = (isSlow && (isHold(call) || call.request !== undefined)) || (left.isRandom && call.isLost);
    add(isLate ? LATE : left.pace * (left.isRandom ? process.pace : 1), () => world.do(process, call));
    const kinds = call.request === undefined ? left.kinds : FAULTS.slice(0, 2);
    if (left.faults === 0) continue;
    for (const fault of kinds) {
      add(fault === "lost" && call.name.startsWith("PutCommand deliveries") ? 1 : 0.1, () => {
        left.faults -= 1;
        world.do(process, call, fault);
      });
    }
  }
  const visible = world.visible();
  if (world.processes.length < left.atOnce) {
    for (const message of visible) {
      const isLate = isSlow && message.queue === "deliveries" && world.nextWakeUp() > world.t + LATE_SECONDS;
      add(isLate ? LATE : left.rush, () => world.receive(message));
    }
    const isEarly = isSlow && waiting.some(({ call }) => isHold(call));
    if (left.script.length > 0) add(isEarly ? FIRST : 2, () => left.script.shift()?.());
    for (const message of left.faults > 0 && left.isRandom ? world.messages : []) {
      add(0.02, () => {
        left.faults -= 1;
        world.receive(message, true);
      });
    }
  }
  if (isSlow || (waiting.length > 0 && left.isRandom))
    add(8, () => world.advance(world.t + 5 * world.options.random()));
  const isFree = left.isRandom || (waiting.length === 0 && visible.length === 0);
  if (isFree && world.isSweepDue()) add(2, () => world.sweep());
  else if (isFree && world.nextTime() < Number.POSITIVE_INFINITY) {
    add(3, () => world.advance(Math.min(world.nextTime(), world.t + 4000)));
  }
  return options;
}

const isHold = ({ name }: { name: string }): boolean => name.endsWith("deliveries held");

/** Numbers from 0 to 1. */
function randomOf(seed: number): () => number {
  let n = 0;
  const mixed = (a: number, b: number) => Math.imul(a ^ (a >>> 16), b);
  return () =>
    (mixed(mixed(Math.imul(seed, 0x9e3779b9) + Math.imul(n++, 0x6d2b79f5), 0x85ebca6b), 0xc2b2ae35) >>> 0) / 4294967296;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

/**
 * In a tenth of the schedules no call fails, and what the product has read is often out of date when it acts on it: its requests
 * and holds are slow, users act before a row is held, and the message of an event that was published twice is late.
 */
const isSlowSchedule = (seed: number): boolean => seed % 10 === 7;

/**
 * In a fifth of the schedules, calls take effect without a response, and the SDK sends them again after other calls, while users
 * ask for deliveries that workers serve.
 */
const isLostSchedule = (seed: number): boolean => seed % 5 === 4;

/** In a quarter of the schedules, webhooks want the latest state only, and each deployment has three, which arrive in any order. */
const isLatestSchedule = (seed: number): boolean => seed % 4 === 1;

/**
 * Runs one random history, a third of them without faults: up to 300 steps, then calm until nothing is left, then a recovery.
 * @throws Violation when something does not hold
 */
export async function randomRun(product: Product, seed: number, isTraced = false): Promise<World> {
  const random = randomOf(seed);
  const pick = <Value>(list: readonly Value[]): Value => list[Math.floor(random() * list.length)] as Value;
  const isSlow = isSlowSchedule(seed);
  const isLost = isLostSchedule(seed);
  const faults = (random() < 0.33 || isSlow) && !isLost ? 0 : pick(isLost ? [3, 5, 8] : [1, 2, 3]);
  const kinds: Fault[] = isLost ? ["lost"] : FAULTS;
  const failing = pick([0, 0.3, 0.7, 1]);
  const left: Left = {
    ...{ faults, kinds, atOnce: 6, pace: pick([10, 4, 1]), rush: pick([2, 0.5]), script: [], isRandom: true },
  };
  const moods = (): Mood[] =>
    random() < failing ? ["fail", "busy", "hang", random() < 0.1 ? "gone" : "fail"] : ["ok", "ok", "slow"];
  const mood = () => (left.isRandom ? pick(moods()) : "ok");
  const callSeconds = isSlow ? CALL : faults === 0 ? 1 : pick([1, CALL]);
  const paces = pick([[1], [1], [1, 1, 0.03]]);
  const world = new World(product, {
    ...{ random, mood, callSeconds, isSlow, isTraced, skew: () => random() * 2 - 1, pace: () => pick(paces) },
  });
  const isLatest = isLatestSchedule(seed);
  const latestOnly = () => ({ events: ["deploy.*"], delivery: "latest" as const, settle_seconds: pick([0, 0, 20]) });
  await createWebhooks(world, pick([1, 1, 1, 2]), isLatest ? latestOnly() : {});

  const insert = (item: () => void) => left.script.splice(Math.floor(random() * (left.script.length + 1)), 0, item);
  for (let number = pick(isLost ? [5] : [1, 2, 3, 5]); number > 0; number--) {
    const isLarge = random() < 0.1;
    for (const state of isLatest ? [1, 2, 3] : []) {
      const body = eventBody(number, world.now() + state * 1000, isLarge, state);
      insert(() => world.enqueue("events", body, 0));
    }
    const body = eventBody(number, world.now(), isLarge);
    for (let copies = pick(isSlow ? [2] : [1, 1, 1, 2, 3]); copies > 0; copies--)
      insert(() => world.enqueue("events", body, 0));
  }
  for (let count = pick([0, 0, 1, 3, 6]); count > 0; count--) insert(() => ask(world, pick(ASKS), pick));
  for (let count = isLost ? 14 : 0; count > 0; count--) left.script.push(() => ask(world, pick(LOST_ASKS), pick));
  // While a slow process still acts on the disabled webhook.
  if (random() < 0.2 || isSlow)
    for (const name of ["disable", "enable", "recover"]) left.script.push(() => ask(world, name, pick));

  const step = async (list: Option[]) => {
    let dice = random() * list.reduce((sum, { weight }) => sum + weight, 0);
    const chosen = list.find(({ weight }) => {
      dice -= weight;
      return dice < 0;
    });
    world.steps += 1;
    (chosen ?? list.at(-1))?.act();
    await settled();
    world.check();
  };
  const calm = async () => {
    for (let list = optionsOf(world, left); list.length > 0; list = optionsOf(world, left)) {
      await step(list);
      world.failIf(world.steps > 20_000, "never comes to rest");
    }
    world.checkEnd();
  };
  await settled();
  while (world.steps < 300 && (left.script.length > 0 || random() < 0.985)) {
    const list = optionsOf(world, left);
    if (list.length === 0) break;
    await step(list);
  }
  Object.assign(left, { faults: 0, pace: 10, rush: 2, script: [], isRandom: false, atOnce: Number.POSITIVE_INFINITY });
  await calm();
  world.start("user resume", () => product.suspend({ project_id: projectId, suspended: false }));
  await settled();
  await calm();
  for (const { id } of world.hooks()) {
    ask(world, "enable", () => id as never);
    await settled();
    await calm();
    ask(world, "recover", () => id as never);
    await settled();
    await calm();
  }
  for (const { id, webhook_id, status, test } of world.rows()) {
    const exists = world.hooks().some((webhook) => webhook.id === webhook_id);
    world.failIf(exists && status === "held" && !test, `${id} is held for ever`);
  }
  return world;
}

async function createWebhooks(world: World, count: number, options: object): Promise<void> {
  for (let number = 0; number < count; number++) {
    const input = { url: "https://receiver.example/", events: ["deploy.started"], ...options };
    // Long enough ago: what is newer supersedes at once.
    const createdAt = new Date(world.now() - 60_000);
    const created = world.product.createWebhook(input, projectId, createdAt, randomBytes(48));
    const webhook = { ...created.webhook, id: world.uuid() };
    await world.product.webhooks.insert({ ...created, webhook });
  }
}

const eventBody = (number: number, now: number, isLarge: boolean, state = 0): string =>
  JSON.stringify({
    event: state < 3 ? "deploy.started" : "deploy.failed",
    project_id: projectId,
    deployment_id: `01930000-0000-7000-8000-0000000e000${number}`,
    timestamp: new Date(now).toISOString(),
    data: isLarge ? { log: "x".repeat(62_000) } : {},
  });

/** Lets a user ask for something. */
function ask(world: World, name: string, pick: <Value>(list: readonly Value[]) => Value): void {
  const { product } = world;
  const webhook_id = pick(world.hooks().map(({ id }) => id));
  const delivery_id = pick(world.rows().flatMap((row) => (row.webhook_id === webhook_id ? row.id : [])));
  const isImpossible = webhook_id === undefined || (name === "redeliver" && delivery_id === undefined);
  if (isImpossible || (name === "delete" && world.options.random() < 0.7)) return;
  const at = new Date(world.now()).toISOString();
  const patch = (changes: WebhookPatch) => () => product.webhooks.update(projectId, webhook_id, changes, at);
  const since = new Date(world.now() - 3_600_000 * 24).toISOString();
  const recover = async () => {
    const before = world.toggledIn.get(webhook_id);
    const response = await product.recover(eventOf({ webhook_id }, { since }), {} as never);
    if (response.statusCode === 202 && world.toggledIn.get(webhook_id) === before) world.recovered.add(webhook_id);
    return response;
  };
  const calls: Record<string, () => Promise<unknown>> = {
    redeliver: () => product.redeliver(eventOf({ webhook_id, delivery_id }), {} as never),
    recover,
    test: () => product.test(eventOf({ webhook_id }, { event: "deploy.started" }), {} as never),
    disable: patch({ enabled: false }),
    enable: patch({ enabled: true }),
    url: patch({ url: `https://receiver.example/${world.nonce()}` }),
    shadow: patch({ mode: "shadow" }),
    live: patch({ mode: "live" }),
    suspend: () => product.suspend({ project_id: projectId, suspended: true }),
    resume: () => product.suspend({ project_id: projectId, suspended: false }),
    delete: () => product.webhooks.remove(projectId, webhook_id),
  };
  const run = calls[name];
  if (run) world.start(`user ${name}`, run);
}

const eventOf = (ids: Record<string, string>, body: object = {}) =>
  ({
    pathParameters: { project_id: projectId, ...ids },
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    requestContext: {
      authorizer: { userId: "user", authType: "jwt" },
      requestId: "r",
      identity: {},
      domainName: "model",
      path: "/",
    },
  }) as never;
