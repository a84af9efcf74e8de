import {
  countUnits,
  isEqualReads,
  LOG_EVENT_OVERHEAD_BYTES,
  queueRequestsFor,
  readUnits,
  type Units,
  type Usage,
} from "../../bench/units.ts";
import { startReceiver } from "../support/receiver.ts";

/* The counts behind all prices: bench/units.json has the current ones. */

test.each([
  [0, 1],
  [65_536, 1],
  [65_537, 2],
  [262_144, 4],
])("a payload of %i bytes is billed as %i SQS requests", (bytes, requests) => {
  expect(queueRequestsFor(bytes)).toBe(requests);
});

test("a log event is billed with 26 bytes more than its text", () => {
  expect(LOG_EVENT_OVERHEAD_BYTES).toBe(26);
});

describe("bench/units.json", () => {
  let now: Awaited<ReturnType<typeof countUnits>>;
  const written = readUnits();

  beforeAll(async () => {
    const receiver = await startReceiver();
    receiver.respondWith(({ path }, response) => response.writeHead(Number(path.slice(1))).end("ok"));
    try {
      now = await countUnits({ receiverUrl: receiver.url.replace("/hook", ""), repeats: 1 });
    } finally {
      await receiver.close();
    }
  });

  /**
   * Leaves out times, concurrency and log sizes, which vary between runs and machines.
   * @param expected its counts are taken for those that are equal to them
   */
  const counted = (calls: Record<string, Usage>, expected = calls) =>
    Object.fromEntries(
      Object.entries(calls).map(([name, { cpuMs, waits, logBytes, reads, ...units }]) => {
        const expectedReads = expected[name]?.reads ?? 0;
        return [name, { ...units, reads: isEqualReads(expectedReads, reads) ? expectedReads : reads }];
      }),
    );

  test("has the current units of every call", () => {
    expect(counted(now.calls, written.calls)).toEqual(counted(written.calls));
  });

  test("has the current sizes and log bytes, to a twentieth", () => {
    const sizesOf = ({ sizes, calls }: { sizes: Record<string, number>; calls: Record<string, Usage> }) =>
      Object.entries({ ...sizes, logBytes: calls.send1?.logBytes ?? 0 });
    const current = Object.fromEntries(sizesOf(now));
    for (const [name, bytes] of sizesOf(written)) {
      const isCurrent = Math.abs(bytes / (current[name] ?? 0) - 1) < 0.05;
      expect({ name, isCurrent }).toEqual({ name, isCurrent: true });
    }
  });

  const writes = (call: string) => (now.calls[call]?.writes ?? 0) + (now.calls[call]?.indexWrites ?? 0);

  test("writes a delivery once on the happy path, and an event once", () => {
    const happy = ["fanOut1x1", "fanOut1x10", "send1", "fanOut10x1", "fanOut10x10", "send10"];
    expect(happy.map(writes)).toEqual([1, 1, 1, 10, 10, 10]);
    expect([now.calls.send1?.indexWrites, now.calls.send10?.indexWrites]).toEqual([0, 0]);
  });

  /** Numbers that grow with each function: dated, so that a new endpoint does not have to update them. */
  function withoutTotals({ alarms, alarmMetrics, tableUses, queueProducers, ...stage }: Units["stage"]) {
    return { totals: { alarms, alarmMetrics, tableUses, queueProducers }, stage };
  }

  test("has the current resources of the stage, with totals that are at most a fifth off", () => {
    const [dated, current] = [withoutTotals(written.stage), withoutTotals(now.stage as Units["stage"])];
    expect(dated.stage).toEqual(current.stage);
    for (const [name, total] of Object.entries(dated.totals)) {
      const change = Math.abs(total / current.totals[name as keyof typeof current.totals] - 1);
      expect({ name, isCurrent: change < 0.2 }).toEqual({ name, isCurrent: true });
    }
  });
});
