import { busyNotes, measureIsolation, type Run, targetsOf } from "../../bench/isolation.ts";
import { cases, type Plan } from "../../bench/neighbours.ts";
import { promises } from "../../bench/promises.ts";
import { atRate, measured } from "../../bench/traffic.ts";

const turn = (...times: number[]) => new Map(times.map((at): [string, number] => [`event ${at}`, at]));

test("latencies are from publication to the first arrival", () => {
  const turns = [turn(0, 100), turn(1_000, 1_100)];
  const firstAt = new Map([
    ["event 0", 10],
    ["event 100", 140],
    ["event 1000", 1_020],
    ["event 1100", 1_130],
    ["event of another turn", 9_000],
  ]);
  expect(measured(turns, firstAt, 2_000)).toEqual({ sent: 4, missing: 0, inTime: 4, p50Ms: 20, p99Ms: 40, maxMs: 40 });
});

test("an event that has not arrived counts with the time that was waited for it", () => {
  const { missing, inTime, maxMs } = measured([turn(0, 100)], new Map([["event 100", 150]]), 5_000);
  expect({ missing, inTime, maxMs }).toEqual({ missing: 1, inTime: 1, maxMs: 5_000 });
});

test("an event that arrives more than a second after its turn is not part of the throughput", () => {
  const arrivals = (at: number) =>
    new Map([
      ["event 0", at],
      ["event 100", 120],
    ]);
  expect(measured([turn(0, 100), turn(5_000)], arrivals(1_100), 9_000).inTime).toBe(2);
  expect(measured([turn(0, 100), turn(5_000)], arrivals(1_101), 9_000).inTime).toBe(1);
});

test("targets are ratios of the disturbed traffic to that alone", () => {
  const alone = { sent: 100, missing: 0, inTime: 100, p50Ms: 5, p99Ms: 10, maxMs: 11 };
  const run: Run = {
    name: "case",
    alone,
    onset: { ...alone, p99Ms: 40 },
    disturbed: { ...alone, inTime: 80, p99Ms: 25 },
    what: "",
  };
  expect(targetsOf(run)).toEqual([
    { name: "p99 / alone: case", value: 2.5, bound: 2 },
    { name: "p99 at first / alone: case", value: 4, bound: 5 },
    { name: "throughput / alone: case", value: 0.8, bound: 0.9, atLeast: true },
  ]);
});

test("a case during which the machine was busy has a note", () => {
  const alone = { sent: 100, missing: 0, inTime: 100, p50Ms: 10, p99Ms: 200, maxMs: 400 };
  const calm: Run = { name: "calm", alone, onset: alone, disturbed: alone, what: "" };
  const busy: Run = { ...calm, name: "busy", alone: { ...alone, p99Ms: 201 } };
  expect(busyNotes([calm, busy])).toEqual([
    expect.stringMatching(/^The machine was busy \(p99 alone 201 ms\).*: busy\.$/),
  ]);
});

test("calls at a rate do not wait for each other", async () => {
  let running = 0;
  let most = 0;
  const { promise: all, resolve: release } = Promise.withResolvers<void>();
  await atRate({ perSecond: 1_000, count: 5 }, async (number) => {
    running += 1;
    most = Math.max(most, running);
    if (number === 4) release();
    await all;
    running -= 1;
  });
  expect(most).toBe(5);
});

test("calls at a rate take at least their time", async () => {
  const startedAt = performance.now();
  await atRate({ perSecond: 50, count: 6 }, async () => {});
  // Timers may fire one millisecond early.
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(99);
});

test("a call that fails stops the others and is reported", async () => {
  let calls = 0;
  const failing = atRate({ perSecond: 1_000 }, async () => {
    calls += 1;
    throw new Error("queue gone");
  });
  await expect(failing).rejects.toThrow("queue gone");
  expect(calls).toBeLessThan(10);
});

test("an aborted signal ends the calls", async () => {
  const stopping = new AbortController();
  let calls = 0;
  await atRate({ perSecond: 1_000, signal: stopping.signal }, async () => {
    calls += 1;
    if (calls === 3) stopping.abort();
  });
  expect(calls).toBe(3);
});

const plan: Plan = {
  perSecond: 20,
  turns: 2,
  turnSeconds: 0.5,
  maxWaitMs: 5_000,
  onsetSeconds: 0.5,
  burst: 20,
  circuitOpensAfterMs: 0,
  backlog: 15,
};

test("every case of docs/promises.md exists", () => {
  const named = promises.flatMap(({ bench, target }) => (bench === "isolation" ? target.split(": ").slice(1) : []));
  expect(Object.keys(cases)).toEqual([...new Set(named)]);
});

test("a small run has a row and three targets for each case", async () => {
  const { tables, targets } = await measureIsolation(plan);
  const [table] = tables;
  const column = (name: string) => table?.rows.map((row) => row[table.columns.indexOf(name)]);
  expect(column("the other project")).toEqual(Object.keys(cases));
  expect(column("not arrived")).toEqual(Object.keys(cases).map(() => expect.stringMatching(/^\d+ of 30$/)));
  expect(column("did")).toEqual([
    expect.stringMatching(/^[1-9]\d* requests that hang$/),
    expect.stringMatching(/^[1-9]\d* DNS queries without a response$/),
    expect.stringMatching(/^[1-9]\d* deliveries pending$/),
    expect.stringMatching(/^[1-9]\d* requests accepted, \d+ rejected with 429, \d+ not answered$/),
    expect.stringMatching(/^[1-9]\d* events$/),
    expect.stringMatching(/^[1-9]\d* events of 20 sent$/),
  ]);
  expect(targets).toHaveLength(18);
  for (const { value } of targets) expect(Number.isFinite(value)).toBe(true);
});
