import { jest } from "@jest/globals";
import { measureSend, reconcile } from "../../bench/send.ts";

jest.setTimeout(120_000);

test("accounts for every delivery of every way of sending, and for those that slow receivers hold up", async () => {
  const plan = { rounds: 3, concurrencies: [10], count: 50, attempts: 20, warmUp: 50, slowShare: 2, events: 2 };
  const { tables, targets } = await measureSend(plan);
  const [cpu, , isolation] = tables;
  expect(cpu?.rows.map(([, receivers]) => receivers)).toEqual(["all healthy", "one host dead", "one host at 2 s"]);
  expect(isolation?.rows).toHaveLength(2);
  expect(targets.map(({ name }) => name)).toEqual(["send.cpu@10", "send.isolation"]);
  for (const { value } of targets) expect(value).toBeGreaterThan(0);
});

const [a, b, c] = [{ id: "a" }, { id: "b" }, { id: "c" }];
const ledgers: [string, number, string[], string[], { id: string }[], boolean][] = [
  ["each taken, each arrived", 0, ["a", "b"], [], [a, b], true],
  ["half of them for the dead", 0.5, ["a"], ["b"], [a], true],
  ["one that was never answered for", 0, ["a"], [], [a], false],
  ["one that was refused by somebody alive", 0, ["a"], ["b"], [a], false],
  ["one that is said to be taken and never came", 0, ["a", "b"], [], [a], false],
  ["one that came twice", 0, ["a", "b"], [], [a, b, b], false],
  ["one that came in the place of another", 0, ["a", "b"], [], [a, c], false],
];
test.each(ledgers)("a round with %s", (_, dead, taken, refused, arrivals, isBalanced) => {
  const judge = () => reconcile("ours", { name: "mix", dead }, 2, [{ taken, refused }], arrivals);
  if (isBalanced) expect(judge).not.toThrow();
  else expect(judge).toThrow("does not balance");
});
