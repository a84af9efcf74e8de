import { jest } from "@jest/globals";

const timers = [
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
  "nextTick",
  "queueMicrotask",
  "performance",
  "hrtime",
] as const;

let isOfTest = false;
beforeEach(() => {
  isOfTest = false;
});
afterEach(() => {
  if (isOfTest) jest.useRealTimers();
});

/** Stops the clock of `Date` until the test ends, or the file in `beforeAll`. The timers run, so that the engines answer. */
export function fakeDate(): { advance(seconds: number): void } {
  isOfTest = true;
  jest.useFakeTimers({ doNotFake: [...timers] });
  return { advance: (seconds) => void jest.setSystemTime(Date.now() + seconds * 1_000) };
}
