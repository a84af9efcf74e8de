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

/**
 * Stops the clock of `Date` and leaves the timers running, so that the engines answer. Reset with
 * `jest.useRealTimers()`.
 */
export function fakeDate(): { advance(seconds: number): void } {
  jest.useFakeTimers({ doNotFake: [...timers] });
  return { advance: (seconds) => void jest.setSystemTime(Date.now() + seconds * 1_000) };
}
