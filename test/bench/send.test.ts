import { measureSend, reconcile } from "../../bench/send.ts";

test("a small run has results for every way to send, and all ledgers balance", async () => {
  const plan = {
    rounds: 3,
    concurrencies: [10],
    count: 50,
    attempts: 20,
    warmUp: 50,
    slowShare: 1,
    events: 2,
    warmUpEvents: 1,
  };
  const { tables, targets } = await measureSend(plan);
  const [cpu, , isolation] = tables;
  expect(cpu?.rows.map(([, receivers]) => receivers)).toEqual(["all healthy", "one host dead", "one host at 2 s"]);
  expect(isolation?.rows).toHaveLength(2);
  expect(targets.map(({ name }) => name)).toEqual(["send.cpu@10", "send.isolation"]);
  for (const { value } of targets) expect(value).toBeGreaterThan(0);
});

const [a, b, c] = [{ id: "a" }, { id: "b" }, { id: "c" }];
const ledgers: [string, number, string[], string[], { id: string }[], boolean][] = [
  ["all accepted and all arrived", 0, ["a", "b"], [], [a, b], true],
  ["half of the deliveries to dead receivers", 0.5, ["a"], ["b"], [a], true],
  ["a delivery without a result", 0, ["a"], [], [a], false],
  ["a delivery that a healthy receiver rejected", 0, ["a"], ["b"], [a], false],
  ["an accepted delivery that did not arrive", 0, ["a", "b"], [], [a], false],
  ["a delivery that arrived twice", 0, ["a", "b"], [], [a, b, b], false],
  ["an arrival of another delivery", 0, ["a", "b"], [], [a, c], false],
];
test.each(ledgers)(
  "the ledger of a round with %s balances only if it should",
  (_, dead, accepted, failed, arrivals, isBalanced) => {
    const check = () => reconcile("ours", { name: "mix", dead }, 2, [{ accepted, failed }], arrivals);
    if (isBalanced) expect(check).not.toThrow();
    else expect(check).toThrow("does not balance");
  },
);
