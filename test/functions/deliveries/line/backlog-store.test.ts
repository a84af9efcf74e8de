import { randomUUID } from "node:crypto";
import {
  type Place,
  placeOf,
  placePages,
  putPlace,
  removePlace,
} from "../../../../functions/deliveries/line/backlog-store.ts";
import {
  DUE_SHARDS,
  endVisit,
  lease,
  overduePages,
  wake,
} from "../../../../functions/webhooks/webhook/wake-up-store.ts";
import { interceptDynamo, loseNextResponse, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { prepareDeliveries, wakeUpOf } from "../../../support/deliveries.ts";

/* The line of places of a webhook, and its wake-up. */

const now = new Date("2026-03-01T12:00:00.000Z");
const at = (seconds: number) => new Date(now.getTime() + seconds * 1000);

let webhook: { project_id: string; id: string };
beforeAll(prepareDeliveries);
beforeEach(() => {
  webhook = { project_id: randomUUID(), id: randomUUID() };
});

const wakeUp = () => wakeUpOf(webhook);

describe("a line", () => {
  const newPlace = (seconds: number, isAsked = false, id: string = randomUUID()) =>
    placeOf({ webhook_id: webhook.id, id }, at(seconds), isAsked);

  async function pages(size: number, dueUntil?: Date): Promise<Place[][]> {
    const all: Place[][] = [];
    for await (const page of placePages(webhook.id, size, dueUntil)) all.push(page);
    return all;
  }

  test("is in order of what users wait for, then of due time, then of the events", async () => {
    const [early, late] = ["01950000-0000-7000-8000-000000000001", "01950000-0000-7000-8000-000000000002"];
    const ordered = [
      newPlace(99, true),
      newPlace(-60),
      newPlace(0, false, early),
      newPlace(0, false, late),
      newPlace(60),
    ];
    for (const place of ordered.toReversed()) await putPlace(place);
    await putPlace(placeOf({ webhook_id: randomUUID(), id: early }, at(0)));
    expect(await pages(10)).toEqual([ordered]);
    expect(await pages(2)).toEqual([ordered.slice(0, 2), ordered.slice(2, 4), ordered.slice(4)]);
    expect(await pages(10, at(0))).toEqual([ordered.slice(0, 4)]);
    await removePlace(webhook.id, ordered[0]?.entry ?? "");
    expect(await pages(10)).toEqual([ordered.slice(1)]);
  });

  test("has a place of its own for each plan of a delivery, with the time that it is due", () => {
    const [one, two] = [newPlace(7, false, "d"), newPlace(7, false, "d")];
    expect(one.entry).not.toBe(two.entry);
    expect([one.due, newPlace(7, true).due]).toEqual([at(7).toISOString(), at(7).toISOString()]);
  });
});

describe("wake", () => {
  test("writes the wake-up of the first row, and asks for a message", async () => {
    expect(await wake(webhook, at(60))).toBe(true);
    expect(await wakeUp()).toEqual({
      line: `wake-up#${webhook.id}`,
      entry: webhook.project_id,
      due: at(60).toISOString(),
      due_shard: expect.any(Number),
      wakes: 1,
    });
  });

  test.each([
    ["keeps an earlier look, without a message", 90, false, 60],
    ["keeps a look at the same time, without a message", 60, false, 60],
    ["moves a later look forward, with a message", 30, true, 30],
  ])("%s, and counts the row", async (_, seconds, isFirst, due) => {
    await wake(webhook, at(60));
    expect(await wake(webhook, at(seconds))).toBe(isFirst);
    expect(await wakeUp()).toMatchObject({ due: at(due).toISOString(), wakes: 2 });
  });

  test("does not move a look back that another call moves further forward meanwhile", async () => {
    await wake(webhook, at(60));
    let writes = 0;
    interceptDynamo(async (_, send) => {
      writes += 1;
      if (writes === 2) {
        restoreAws();
        await wake(webhook, at(10));
      }
      return send();
    });
    await wake(webhook, at(30));
    expect(await wakeUp()).toMatchObject({ due: at(10).toISOString() });
  });

  test("spreads the wake-ups over all shards of the index, for a write each", async () => {
    const ids = Array.from({ length: 300 }, () => randomUUID());
    const calls = watchDynamo();
    await Promise.all(ids.map((id) => wake({ ...webhook, id }, at(-99))));
    expect(calls).toHaveLength(300);
    const found = new Set<string>();
    for (let shard = 0; shard < DUE_SHARDS; shard++) {
      const before = found.size;
      for await (const wakeUps of overduePages(shard, now, 100)) {
        for (const { id, due } of wakeUps.filter(({ project_id }) => project_id === webhook.project_id)) {
          found.add(id);
          expect(due).toBe(at(-99).toISOString());
        }
      }
      expect(found.size).toBeGreaterThan(before);
    }
    expect([...found].sort()).toEqual(ids.sort());
  });
});

describe("the lease of a line", () => {
  const until = at(65);

  test.each<[string, number | undefined, number, boolean]>([
    ["is given for a wake-up that is due", 0, 0, true],
    ["is not given before the wake-up is due", 3, 0, false],
    ["is given when the wake-up is due by a clock that is two seconds ahead", 2, 0, true],
    ["is not given without a wake-up", undefined, 0, false],
    ["is not given while another visit has it", 0, 65, false],
    ["is given after that of another visit has ended", 0, 66, true],
  ])("%s", async (_, due, seconds, isGiven) => {
    if (due !== undefined) await wake(webhook, at(due));
    if (seconds > 0) await lease(webhook, "other", now, until);
    const leased = await lease(webhook, "own", at(seconds), at(seconds + 65));
    expect(leased?.lease_id).toBe(isGiven ? "own" : undefined);
    if (isGiven) expect(await wakeUp()).toMatchObject({ lease_id: "own", lease_until: at(seconds + 65).toISOString() });
  });

  test("is given to one of twenty visits", async () => {
    await wake(webhook, now);
    const leased = await Promise.all(Array.from({ length: 20 }, (_, n) => lease(webhook, `visit-${n}`, now, until)));
    expect(leased.filter((each) => each !== undefined)).toHaveLength(1);
  });
});

describe("the end of a visit", () => {
  const end = (next: Date | undefined, seen?: Parameters<typeof endVisit>[3]) => endVisit(webhook, "own", next, seen);
  beforeEach(async () => {
    await wake(webhook, now);
    await lease(webhook, "own", now, at(65));
  });
  const planned = (next: Date, keptUntil = new Date(0)) => ({
    ...{ line: `wake-up#${webhook.id}`, entry: webhook.project_id, due_shard: expect.any(Number) },
    ...{ due: next.toISOString(), lease_until: keptUntil.toISOString(), wakes: expect.any(Number) },
  });

  test("removes the wake-up when nothing waits", async () => {
    expect(await end(undefined, { wakes: 1 })).toBeUndefined();
    expect(await wakeUp()).toBeUndefined();
  });

  test("plans the next look and gives the lease back", async () => {
    expect(await end(at(300), { wakes: 1 })).toBeUndefined();
    expect(await wakeUp()).toEqual(planned(at(300)));
    expect(await lease(webhook, "other", at(300), at(365))).toBeDefined();
  });

  test("keeps the line leased for as long as the visit asks for", async () => {
    await end(at(300), { wakes: 1, keptUntil: at(400) });
    expect(await wakeUp()).toEqual(planned(at(300), at(400)));
    expect(await lease(webhook, "other", at(399), at(465))).toBeUndefined();
  });

  test.each<[string, Date | undefined]>([
    ["is not removed", undefined],
    ["is not planned for later", at(300)],
  ])("when a row has entered since the lease, the wake-up %s, and the visit keeps it", async (_, next) => {
    await wake(webhook, at(5));
    const before = await wakeUp();
    expect(await end(next, { wakes: 1 })).toMatchObject({ wakes: 2 });
    expect(await wakeUp()).toEqual(before);
    expect(await end(next, { wakes: 2 })).toBeUndefined();
  });

  test("plans the next look whatever has entered, when it does not name what it has seen", async () => {
    await wake(webhook, at(5));
    expect(await end(at(1))).toBeUndefined();
    expect(await wakeUp()).toEqual(planned(at(1)));
  });

  test.each<[string, Date | undefined]>([
    ["remove", undefined],
    ["plan", at(300)],
  ])("does not %s the wake-up that another visit has leased", async (_, next) => {
    await lease(webhook, "other", at(66), at(131));
    const before = await wakeUp();
    expect(await end(next, { wakes: 1 })).toBeUndefined();
    expect(await wakeUp()).toEqual(before);
  });
});

describe("when the SDK repeats", () => {
  const leased = async () => {
    await wake(webhook, now);
    await lease(webhook, "own", now, at(65));
  };
  const end = (next: Date | undefined) => endVisit(webhook, "own", next, { wakes: 1 });

  test.each<[string, string, () => Promise<unknown>, () => Promise<unknown>, unknown]>([
    [
      "a lease, the visit has it",
      "Update",
      () => wake(webhook, now),
      async () => (await lease(webhook, "own", now, at(65)))?.lease_id,
      "own",
    ],
    ["the plan of the next look, it is planned", "Update", leased, () => end(at(300)), undefined],
    ["the removal of a wake-up, it is removed", "Delete", leased, () => end(undefined), undefined],
  ])("%s", async (_, command, given, run, result) => {
    await given();
    const sent = loseNextResponse(`${command}ItemCommand`);
    expect(await run()).toBe(result);
    expect(sent.requests).toBe(2);
  });

  test("the first write of a wake-up, it exists and counts once more", async () => {
    loseNextResponse("UpdateItemCommand");
    await wake(webhook, at(60));
    expect(await wakeUp()).toMatchObject({ due: at(60).toISOString(), wakes: 2 });
  });
});

test("overdue wake-ups are read longest overdue first, page by page, without those that are due later", async () => {
  // The same last digits: the same shard.
  const ids = Array.from({ length: 5 }, () => `${randomUUID().slice(0, -8)}00000007`);
  const dues = [-20, -30, 1, -10, 0];
  for (const [n, id] of ids.entries()) await wake({ ...webhook, id }, at(dues[n] ?? 0));
  const own: string[] = [];
  for await (const wakeUps of overduePages(7, now, 2)) {
    expect(wakeUps.length).toBeLessThanOrEqual(2);
    own.push(...wakeUps.filter(({ project_id }) => project_id === webhook.project_id).map(({ id }) => id));
  }
  expect(own).toEqual([1, 0, 3, 4].map((n) => ids[n]));
});
