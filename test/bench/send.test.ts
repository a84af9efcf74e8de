import { measureSend, reconcile } from "../../bench/send.ts";
import { childProcesses, whileBroken } from "../support/broken-process.ts";

const plan = { rounds: 3, concurrencies: [10], roundMs: 20, leadMs: 10, warmUpMs: 20 };

test("a small run has results for every way to send, and all ledgers balance", async () => {
  const { tables, targets } = await measureSend(plan);
  const [cpu, speed] = tables;
  for (const table of [cpu, speed]) {
    expect(table?.rows.map(([, receivers]) => receivers)).toEqual(["all healthy", "one host dead"]);
  }
  const ways = ["ours", "fetch + svix", "node:http", "raw TCP", "whole attempt"];
  expect(speed?.columns).toEqual(["concurrent", "receivers", ...ways]);
  expect(targets.map(({ name }) => name)).toEqual(["send.cpu@10"]);
  for (const { value } of targets) expect(value).toBeGreaterThan(0);
});

/** Code that breaks one way, at the start or after some deliveries. */
const breakages: [string, string, string][] = [
  ["exits at the start", "process.exit(7)", "fetch + svix, start: The process work.ts fetch-svix exited with 7."],
  [
    "fails after the check",
    `let calls = 0;
     const send = fetch;
     globalThis.fetch = (...args) => (++calls > 100 ? Promise.reject(new Error("broken")) : send(...args));`,
    "fetch + svix, warm-up, all healthy: the ledger does not balance: ",
  ],
];
test.each(breakages)("a way that %s is named with its phase, and no process is left", async (_, code, message) => {
  const before = childProcesses();
  await whileBroken(`if (process.argv[2] === "fetch-svix") { ${code} }`, () =>
    expect(measureSend(plan)).rejects.toThrow(message),
  );
  expect(childProcesses()).toEqual(before);
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
    const check = () => reconcile(dead, { sent: 2, accepted, failed }, arrivals);
    if (isBalanced) expect(check).not.toThrow();
    else expect(check).toThrow("does not balance");
  },
);
