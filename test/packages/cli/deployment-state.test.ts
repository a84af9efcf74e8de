import { eventNames } from "../../../functions/foundation/manifest/events.ts";
import { exitCodeAfter } from "../../../packages/cli/src/commands/wait-for-deployment.ts";
import { tools } from "../../../packages/cli/src/mcp/tools.ts";
import type { Client, DeploymentEvent, EventName } from "../../../packages/client/src/client.ts";
import { byTime, stateAfterEvent } from "../../../packages/client/src/deployment-timeline.ts";

/** As a platform may have added. */
const [addedEvent, addedOfBuild] = ["deploy.rolled_back", "build.succeeded"] as EventName[] as [EventName, EventName];

test.each<[EventName, string, number | undefined]>([
  ["deploy.started", "running", undefined],
  ["deploy.succeeded", "succeeded", 0],
  ["deploy.failed", "failed", 1],
  [addedEvent, "rolled back", undefined],
  [addedOfBuild, "build succeeded", undefined],
])("after %s a deployment is %s, and the exit code of a wait is %p", (event, state, exitCode) => {
  expect([stateAfterEvent({ event }), exitCodeAfter({ event })]).toEqual([state, exitCode]);
});

test.each([...eventNames, addedEvent])("deployment_status returns the state after %s", async (event) => {
  const tool = tools.find(({ name }) => name === "deployment_status");
  const api = {
    async *eachEvent() {
      yield { id: "e", event, deployment_id: "d", timestamp: "2026-11-21T04:04:29.027Z", payload: {} };
    },
  };
  const project = "0193d301-0000-7000-8000-000000000001";
  const result = await tool?.run(api as unknown as Client, { project }, { isOffered: () => true });
  expect(result?.structured).toMatchObject({ status: stateAfterEvent({ event }) });
});

test("events are sorted by time, then a start before an end, then by id, whatever their order is", () => {
  const rows = [
    "1 deploy.failed b",
    "2 deploy.started b",
    "2 deploy.failed a",
    "2 deploy.failed c",
    "3 deploy.started a",
  ];
  const events = rows.map((row) => {
    const [second, event, id] = row.split(" ");
    return { row, event, id, timestamp: `2026-11-21T04:04:0${second}Z` } as unknown as DeploymentEvent & {
      row: string;
    };
  });
  for (const given of [events, events.toReversed()]) expect(given.toSorted(byTime)).toEqual(events);
});
