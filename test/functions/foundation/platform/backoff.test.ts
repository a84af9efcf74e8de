import { backoffMs } from "../../../../functions/foundation/platform/backoff.ts";

test.each([
  [0, 20],
  [1, 40],
  [2, 80],
  [3, 160],
  [4, 320],
  [5, 500],
  [6, 500],
  [12, 500],
  [1_100, 500],
])("the delay before retry %i is a random part of %i ms", (retry, most) => {
  expect([0, 0.25, 1].map((random) => backoffMs(retry, random))).toEqual([0, most / 4, most]);
});
