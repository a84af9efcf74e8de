import { jest } from "@jest/globals";
import { FairPlaces, type Taken } from "../../../bin/emulator/fair-places.ts";

/* Pure: the clock is that of the timers. */

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const fill = (places: FairPlaces<string>, group: string, count: number) => {
  for (let number = 0; number < count; number++) places.add(group, group);
};

/** Takes all messages that have a place, until no young message holds up the others. */
function takeAll(places: FairPlaces<string>): Taken<string>[] {
  const taken: Taken<string>[] = [];
  for (let round = 0; round < 100; round++) {
    taken.push(...places.take(1_000));
    jest.advanceTimersByTime(100);
  }
  return taken;
}

const countOf = (taken: Taken<string>[], group: string) => taken.filter(({ item }) => item === group).length;

test("one busy group gets half of the places, two get a third each, and another group finds one at once", () => {
  const places = new FairPlaces<string>(90, 7);
  fill(places, "a", 1_000);
  const ofOne = takeAll(places);
  expect(countOf(ofOne, "a")).toBe(45);
  fill(places, "b", 1_000);
  expect(countOf(takeAll(places), "b")).toBe(23);
  fill(places, "quiet", 1);
  expect(places.take(10).map(({ item }) => item)).toEqual(["quiet"]);
  expect(places.waiting).toBe(2_000 - 45 - 23);
});

test("the group with the fewest places is next, and its messages keep their order", () => {
  const places = new FairPlaces<number>(100, 7);
  for (const item of [1, 2, 3]) places.add("a", item);
  for (const item of [11, 12]) places.add("b", item);
  expect(places.take(10).map(({ item }) => item)).toEqual([1, 11, 2, 12, 3]);
});

test("a burst of one group takes a few places of young messages until they age, then others start", () => {
  const places = new FairPlaces<string>(1_000, 7);
  let isFree = false;
  places.onFree = () => {
    isFree = true;
  };
  fill(places, "burst", 500);
  const burst = places.take(500);
  expect(burst).toHaveLength(7);
  fill(places, "quiet", 5);
  expect(countOf(places.take(500), "quiet")).toBe(5);
  expect(isFree).toBe(false);
  jest.advanceTimersByTime(100);
  expect(isFree).toBe(true);
  expect(places.take(500)).toHaveLength(7);
  for (const { release } of burst) release();
  expect(places.take(500)).toEqual([]);
});

test("a place that is released is free again", () => {
  const places = new FairPlaces<string>(2, 7);
  fill(places, "a", 3);
  const [first] = places.take(5);
  expect(places.take(5)).toEqual([]);
  first?.release();
  expect(places.take(5)).toHaveLength(1);
});

test("a group whose messages are done is behind the groups that wait", () => {
  const places = new FairPlaces<string>(10, 7);
  fill(places, "a", 1);
  for (const { release } of places.take(1)) release();
  for (const group of ["b", "a"]) fill(places, group, 1);
  expect(places.take(1).map(({ item }) => item)).toEqual(["b"]);
});
