import { jest } from "@jest/globals";
import { eachNewEvent } from "../../../../packages/cli/src/commands/follow-events.ts";
import { waitForDeployment } from "../../../../packages/cli/src/commands/wait-for-deployment.ts";
import type { Client, DeploymentEvent, EventName } from "../../../../packages/client/src/client.ts";
import { ApiError, NetworkError } from "../../../../packages/client/src/errors.ts";

/* Outages and late events, against a stub of the client. */

const eventOf = (number: number, event: EventName = "deploy.started"): DeploymentEvent => ({
  id: `e-${number}`,
  event,
  deployment_id: "d-1",
  timestamp: `2026-11-21T12:00:0${number}Z`,
  received_at: "2026-11-21T12:00:09Z",
  payload: {} as DeploymentEvent["payload"],
});

type Step = DeploymentEvent[] | Error;
let cursors: (string | undefined)[];
/** In seconds. */
let pauses: number[];
let noted: string;
let printed: string;
const { signal } = new AbortController();

beforeEach(() => {
  [cursors, pauses, noted, printed] = [[], [], "", ""];
  jest.spyOn(process.stderr, "write").mockImplementation((text) => {
    noted += text;
    return true;
  });
  jest.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += text;
    return true;
  });
});
afterEach(() => {
  jest.restoreAllMocks();
  process.exitCode = undefined;
});

const busy = (retryAfterSeconds?: number) =>
  new ApiError(503, { code: "service_unavailable", message: "Busy.", request_id: "r" }, retryAfterSeconds);

/** Returns a client whose feed has these pages and errors, one after the other. */
function stubOf(steps: Step[], listed: DeploymentEvent[] = []): Client {
  const left = [...steps];
  return {
    listEvents: async () => ({ items: listed, followCursor: "start" }),
    async *followEvents(_project: string, { after }: { after?: string }, { onPoll }: { onPoll: () => void }) {
      cursors.push(after);
      for (let step = left.shift(); step !== undefined; step = left.shift()) {
        if (step instanceof Error) throw step;
        onPoll();
        yield { items: step, cursor: `after ${step.map(({ id }) => id).join()}` };
      }
      throw new Error("the end");
    },
  } as unknown as Client;
}

async function idsOf(api: Client, known: DeploymentEvent[] = []): Promise<string[]> {
  const ids: string[] = [];
  const pause = async (ms: number) => void pauses.push(ms / 1000);
  try {
    const options = { query: {}, latest: { items: known, followCursor: "start" }, signal, pause };
    for await (const { id } of eachNewEvent(api, "p-1", options)) ids.push(id);
  } catch (error) {
    if ((error as Error).message !== "the end") throw error;
  }
  return ids;
}

test("continues after an outage at the last cursor, and says so once", async () => {
  const ids = await idsOf(stubOf([[eventOf(1)], busy(0), new NetworkError("Gone."), [eventOf(2)], []]));
  expect(ids).toEqual(["e-1", "e-2"]);
  expect(cursors).toEqual(["start", "after e-1", "after e-1"]);
  expect(noted).toBe("Busy. Retrying.\nThe service is available again.\n");
});

test("pauses twice as long after each failure, 30 s at most, for Retry-After at least, and a second again after a success", async () => {
  const gone = new NetworkError("Gone.");
  await idsOf(stubOf([busy(), gone, gone, gone, busy(20), gone, gone, [], busy(3), gone, busy(1)]));
  expect(pauses).toEqual([1, 2, 4, 8, 20, 30, 30, 3, 2, 4]);
});

test("throws an error that a retry cannot help", async () => {
  const rejected = new ApiError(401, { code: "invalid_api_key", message: "Unknown.", request_id: "r" });
  await expect(idsOf(stubOf([rejected]))).rejects.toBe(rejected);
});

test("yields an event once that the feed returns again", async () => {
  const api = stubOf([
    [eventOf(1), eventOf(2)],
    [eventOf(2), eventOf(3)],
  ]);
  expect(await idsOf(api, [eventOf(1)])).toEqual(["e-2", "e-3"]);
});

test("remembers the latest thousand events, so that one of them is yielded once, and no more", async () => {
  const all = Array.from({ length: 1_001 }, (_, number) => eventOf(number));
  const ids = all.map(({ id }) => id);
  expect(await idsOf(stubOf([all, all.slice(1), [eventOf(0)]]))).toEqual([...ids, "e-0"]);
});

async function waited(steps: Step[], listed: DeploymentEvent[] = []): Promise<void> {
  const timeout = { text: "20m", signal };
  const open = async () => ({ api: stubOf(steps, listed), projectId: "p-1" });
  await waitForDeployment({ open, deploymentId: "d-1", timeout, json: true });
}

test("a wait times out while it looks for the project too", async () => {
  const timeout = { text: "2s", signal: AbortSignal.abort() };
  const open = async () => Promise.reject(timeout.signal.reason);
  const wait = waitForDeployment({ open, deploymentId: "d-1", timeout, json: true });
  await expect(wait).rejects.toMatchObject({ exitCode: 124 });
});

test.each<[DeploymentEvent[], string, string]>([
  [[], "No event of the deployment d-1 within 2s.", "Check the id and the project: svc deployments watch"],
  [
    [eventOf(1)],
    "The deployment d-1 did not end within 2s. Its latest event is deploy.started of 2026-11-21T12:00:01Z.",
    "Wait longer: --timeout 1h",
  ],
  [
    [eventOf(1, "deploy.unknown" as EventName)],
    "The deployment d-1 did not end within 2s. Its latest event is deploy.unknown of 2026-11-21T12:00:01Z.",
    "It may have ended: the platform has added this event, and svc does not know whether a deployment ends with it.",
  ],
])("a wait that times out after the events %j says what is known", async (listed, message, advice) => {
  const timeout = { text: "2s", signal: AbortSignal.abort() };
  const open = async () => ({ api: stubOf([], listed), projectId: "p-1" });
  const wait = waitForDeployment({ open, deploymentId: "d-1", timeout, json: true });
  await expect(wait).rejects.toMatchObject({ exitCode: 124, message, advice });
});

test("a wait is not ended by an earlier event that arrives late", async () => {
  await waited([[eventOf(1, "deploy.failed")], [eventOf(3, "deploy.succeeded")]], [eventOf(2)]);
  expect(JSON.parse(printed)).toMatchObject({ id: "e-3" });
  expect(process.exitCode).toBe(0);
});

test("a wait shows an event once that the feed returns again", async () => {
  await waited([[eventOf(1)], [eventOf(2, "deploy.failed")]], [eventOf(1)]);
  expect(noted.match(/deploy.started/g)).toHaveLength(1);
});

test("a wait is not ended by an event of a later version", async () => {
  await waited([[eventOf(1, "deploy.unknown" as EventName)], [eventOf(2, "deploy.failed")]]);
  expect(JSON.parse(printed)).toMatchObject({ id: "e-2" });
  expect(process.exitCode).toBe(1);
});

test.each(["listed", "followed"])(
  "a wait ends with the end of a deployment that has the time of its start: %s",
  async (from) => {
    // Pipelines may write whole seconds. Ids of equal times are in no order.
    const end = { ...eventOf(1, "deploy.failed"), timestamp: eventOf(2).timestamp };
    await (from === "listed" ? waited([], [eventOf(2), end]) : waited([[eventOf(2)], [end]]));
    expect(JSON.parse(printed)).toMatchObject({ id: "e-1" });
    expect(process.exitCode).toBe(1);
  },
);

test.each<[string, DeploymentEvent, Step[]]>([
  ["ends with an event that is", eventOf(1, "deploy.failed"), []],
  ["follows from the first page on, with an event that is", eventOf(1), [[eventOf(2, "deploy.failed")]]],
])("a wait %s on the third page, after empty ones", async (_, listed, steps) => {
  const pages = [
    { items: [], nextCursor: "second", followCursor: "start" },
    { items: [], nextCursor: "third" },
    { items: [listed], nextCursor: "fourth" },
  ];
  const api = { ...stubOf(steps), listEvents: async () => pages.shift() } as unknown as Client;
  const open = async () => ({ api, projectId: "p-1" });
  await waitForDeployment({ open, deploymentId: "d-1", timeout: { text: "20m", signal }, json: true });
  expect(cursors).toEqual(steps.map(() => "start"));
  expect(process.exitCode).toBe(1);
});
