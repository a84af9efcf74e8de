import { createThrottle } from "../../../bin/emulator/throttle.ts";
import type { EndpointRow } from "../../../functions/foundation/manifest/endpoints.ts";

let nowMs: number;
let takeToken: ReturnType<typeof createThrottle>;
beforeEach(() => {
  nowMs = 1_000;
  takeToken = createThrottle(() => nowMs);
});

const row = (file: string, throttle?: EndpointRow["throttle"]): EndpointRow => ({
  id: file,
  method: "POST",
  path: `/v1/${file}`,
  file,
  access: "user",
  permission: "none",
  uses: {},
  ...(throttle && { throttle }),
});
const slow = row("slow", { requestsPerSecond: 2, burst: 3 });
const take = (count: number, from = slow) => Array.from({ length: count }, () => takeToken(from));

test("a bucket holds its burst and gets tokens at its rate, and a rejected request takes none", () => {
  expect(take(5)).toEqual([true, true, true, false, false]);
  nowMs += 499;
  expect(take(1)).toEqual([false]);
  nowMs += 1;
  expect(take(2)).toEqual([true, false]);
  nowMs += 3_600_000;
  expect(take(4)).toEqual([true, true, true, false]);
});

test("each endpoint has a bucket of its own, or none", () => {
  take(3);
  expect(take(1, row("another", { requestsPerSecond: 1, burst: 1 }))).toEqual([true]);
  expect(take(1)).toEqual([false]);
  expect(take(1_000, row("free"))).not.toContain(false);
});
