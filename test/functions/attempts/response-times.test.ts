import { noteResponseTime, usualMs } from "../../../functions/attempts/response-times.ts";

test("a webhook without responses has no usual response time", () => {
  expect(usualMs("none")).toBeUndefined();
});

test("the usual response time is that of the first response, and then moves by a fifth towards each newer one", () => {
  noteResponseTime("a", 100);
  expect(usualMs("a")).toBe(100);
  noteResponseTime("a", 600);
  expect(usualMs("a")).toBe(200);
  noteResponseTime("a", 0);
  expect(usualMs("a")).toBe(160);
});

test("the 10,000 webhooks with the latest responses are remembered", () => {
  noteResponseTime("often", 1);
  noteResponseTime("once", 1);
  for (let n = 0; n < 9_998; n++) noteResponseTime(`w${n}`, 1);
  noteResponseTime("often", 1);
  noteResponseTime("one more", 1);
  expect([usualMs("once"), usualMs("often"), usualMs("one more")]).toEqual([undefined, 1, 1]);
});
