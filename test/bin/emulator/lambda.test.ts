import { jest } from "@jest/globals";
import { invoke, type LambdaHandler, LambdaTimeout } from "../../../bin/emulator/lambda.ts";

/* Pure: the clock is that of the timers. */

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const run = (handler: LambdaHandler) => invoke(handler, {}, { functionName: "test", timeoutSeconds: 5 });

test("a handler knows the time it has left, and is late after its timeout", async () => {
  let [remaining, outcome] = [() => Number.NaN, undefined as unknown];
  const hang: LambdaHandler = (_, context) => {
    remaining = () => context.getRemainingTimeInMillis();
    return new Promise(() => {});
  };
  run(hang).catch((error) => {
    outcome = error;
  });
  await jest.advanceTimersByTimeAsync(4_999);
  expect([remaining(), outcome]).toEqual([1, undefined]);
  await jest.advanceTimersByTimeAsync(2);
  expect([remaining(), outcome]).toEqual([0, new LambdaTimeout("test took longer than 5 s")]);
});

test.each([
  ["returns", async () => {}],
  ["fails", () => Promise.reject(new Error("broken"))],
])("a handler that %s leaves no timer", async (_, handler) => {
  await run(handler).catch(() => {});
  expect(jest.getTimerCount()).toBe(0);
});
