import type { Client, DeploymentEvent } from "../../../packages/client/src/client.ts";
import { filterLines, newestEvents, readFilter, trialOf } from "../../../packages/client/src/event-filter.ts";

const eventOf = (data: object | undefined, event = "deploy.failed") =>
  ({ id: "e-1", event, payload: { event, ...(data && { data }) } }) as DeploymentEvent;

const filter = { environment: ["production"], branch: ["main", "release/*"] };

test("a filter as lines is sorted by field, and is read back", () => {
  const lines = ["branch=main", "branch=release/*", "environment=production"];
  expect(filterLines(filter)).toEqual(lines);
  expect(readFilter(lines)).toEqual({ filter });
  expect(readFilter(["a=b=c", "a=d, e"])).toEqual({ filter: { a: ["b=c", "d, e"] } });
});

test.each(["production", "=production", ""])("the line %j is no field and value", (line) => {
  expect(readFilter(["branch=main", line])).toEqual({ invalid: line });
});

test.each<[boolean, string, object | undefined]>([
  [true, "environment is production; branch is main", { environment: "production", branch: "main" }],
  [
    true,
    "environment is production; branch is release/2, as release/*",
    { environment: "production", branch: "release/2" },
  ],
  [false, "environment is staging", { environment: "staging", branch: "main" }],
  [
    false,
    `environment is ${"x".repeat(100)}…; branch is missing, or is no text, number or boolean`,
    { environment: "x".repeat(101), branch: ["main"] },
  ],
  [
    false,
    "environment is missing, or is no text, number or boolean; branch is missing, or is no text, number or boolean",
    undefined,
  ],
])("received %s, because %s", (received, reason, data) => {
  const { decisions, summary } = trialOf({ events: ["deploy.failed"], filter }, [eventOf(data)]);
  expect(decisions).toEqual([{ ...eventOf(data), received, reason }]);
  expect(summary).toBe(`${Number(received)} of 1 are sent.`);
});

test("a decision without a filter follows from the events of the webhook", () => {
  const webhook = { events: ["deploy.failed"] };
  const { decisions } = trialOf(webhook, [eventOf({})]);
  expect(decisions).toMatchObject([{ received: true, reason: "it has no filter" }]);
  const other = trialOf({ ...webhook, filter }, [eventOf({}, "deploy.started")]);
  expect(other.decisions).toMatchObject([{ received: false, reason: "deploy.started is not one of its events" }]);
});

test.each([
  [{ constructor: ["x"] }, /^The filter must have fields with names .* other than __proto__ and constructor\./],
  [{ branch: ["m*in"] }, /^The filter's branch=m\*in must have \* only at its end\./],
  [{ branch: ["a\u200bb"] }, /^The filter's branch=.* must not have invisible characters\./],
  [Object.fromEntries("abcdef".split("").map((name) => [name, ["x"]])), /^The filter must have 1 to 5 fields/],
])("a filter that the service rejects is reported: %j", (rejected, expected) => {
  const [first] = trialOf({ events: ["deploy.failed"], filter: rejected }, []).problems;
  expect(first).toMatch(expected);
  expect(first).toMatch(/ The service does not accept this filter\.$/);
});

test("the fields that no event has are unknown, unless there are no events", () => {
  const webhook = { events: ["deploy.failed"], filter: { ...filter, toString: ["acme"] } };
  expect(trialOf(webhook, [eventOf(undefined), eventOf({ branch: null })]).problems).toEqual([
    'None of the events has the field "environment" in its data. Is it misspelt?',
    'None of the events has the field "toString" in its data. Is it misspelt?',
  ]);
  expect(trialOf(webhook, [])).toMatchObject({
    summary: "The project has no events of the last 30 days.",
    problems: [],
  });
  expect(trialOf({ ...webhook, filter: undefined }, [eventOf({})]).problems).toEqual([]);
});

test("newestEvents reads at most 100 events, over pages that may have fewer", async () => {
  let read = 0;
  const api: Pick<Client, "eachEvent"> = {
    async *eachEvent() {
      for (;;) {
        read += 1;
        yield eventOf({});
      }
    },
  };
  expect(await newestEvents(api, "p-1")).toHaveLength(100);
  expect(read).toBe(100);
});
