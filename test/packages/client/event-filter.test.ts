import type { Client, DeploymentEvent } from "../../../packages/client/src/client.ts";
import {
  decisionOn,
  filterLines,
  newestEvents,
  readFilter,
  unknownFields,
} from "../../../packages/client/src/event-filter.ts";

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
  expect(decisionOn({ events: ["deploy.failed"], filter }, eventOf(data))).toEqual({ received, reason });
});

test("a decision without a filter follows from the events of the webhook", () => {
  const webhook = { events: ["deploy.failed"] };
  expect(decisionOn(webhook, eventOf({}))).toEqual({ received: true, reason: "it has no filter" });
  expect(decisionOn({ ...webhook, filter }, eventOf({}, "deploy.started"))).toEqual({
    received: false,
    reason: "deploy.started is not one of its events",
  });
});

test("the fields that no event has are unknown, unless there are no events", () => {
  expect(unknownFields(filter, [eventOf({ branch: null }), eventOf(undefined)])).toEqual(["environment"]);
  expect(unknownFields(filter, [])).toEqual([]);
  expect(unknownFields(undefined, [eventOf({})])).toEqual([]);
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
