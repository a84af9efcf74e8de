import { randomUUID } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import { tables } from "../../functions/foundation/manifest/tables.ts";
import { dynamo } from "../../functions/foundation/platform/aws.ts";
import { handler as upsertMember } from "../../functions/identity/members/upsert-member.ts";
import { interceptDynamo, restoreAws } from "../support/aws-calls.ts";
import { commandHere } from "../support/command-here.ts";
import { eventOf, givenEvent } from "../support/deliveries.ts";
import { fakeDate } from "../support/fake-date.ts";
import { freshDataDir, type LocalRun, startLocalRun } from "../support/local-run.ts";
import { send } from "../support/service.ts";
import { itemsOf } from "../support/stored-items.ts";

/* A replay of events in a running service, as an operator starts it. */

const settings = { DATA_DIR: freshDataDir() };
let run: LocalRun;
let projectId: string;
let webhook: string;
beforeAll(async () => {
  run = await startLocalRun(settings);
  process.env.AWS_ENDPOINT_URL_DYNAMODB = run.dynamoEndpoint;
  for (const { env, name } of Object.values(tables)) process.env[env] = name;
});
beforeEach(async () => {
  projectId = randomUUID();
  await upsertMember({ user_id: "demo-user", project_id: projectId, name: "Shop", role: "admin" });
  const { status, body } = await call("/webhooks", { url: "http://127.0.0.1:9/hook", events: ["deploy.started"] });
  expect(status).toBe(201);
  webhook = body.data.id;
});

const call = (path: string, body?: object) =>
  send(`${run.baseUrl}/v1/projects/${projectId}${path}`, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${run.token}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
const deliveries = async () => (await call(`/webhooks/${webhook}/deliveries`)).body.data;

/** Stores events as fan-out does, without their deliveries: as if their messages had been purged. */
async function givenPurgedEvents(count: number): Promise<void> {
  for (let stored = 0; stored < count; stored++) {
    await givenEvent(eventOf(projectId));
  }
}

const since = () => new Date(Date.now() - 60_000).toISOString();
const replay = (...args: string[]) => commandHere("replay", args, settings);

test("creates the missing deliveries, prints how many, and creates none the second time", async () => {
  await givenPurgedEvents(2);
  const args = ["--project", projectId, "--since", since()];
  expect(await replay(...args)).toEqual({
    code: 0,
    stdout: "2 events looked at, 2 missing deliveries created\ncomplete\n",
    stderr: "",
  });
  // Its attempt follows after 30 seconds.
  expect(await deliveries()).toMatchObject(Array(2).fill({ status: "pending", attempt_count: 0 }));
  expect((await replay(...args)).stdout).toBe("2 events looked at, 0 missing deliveries created\ncomplete\n");
  expect(await deliveries()).toHaveLength(2);
});

test("continues after a call that ran out of time, counts the events of all, and exits with 1 after one that cannot be read", async () => {
  await givenPurgedEvents(26);
  const [first] = await itemsOf("events", { project_id: projectId });
  await dynamo().send(new PutCommand({ TableName: tables.events.name, Item: { ...first, body: "{" } }));
  const date = fakeDate();
  let calls = 0;
  interceptDynamo(async ({ command, input }, proceed) => {
    const output = await proceed();
    if (command === "QueryCommand" && input.TableName === tables.events.name) {
      calls += 1;
      date.advance(40);
    }
    return output;
  });
  const { code, stdout, stderr } = await replay("--project", projectId, "--since", since());
  restoreAws();
  jest.useRealTimers();
  expect({ code, stdout, calls }).toEqual({ code: 1, stdout: "", calls: 2 });
  // Of the first call.
  expect(stderr).toContain(`event ${first?.id} not replayed: the message is not JSON\n`);
  expect(stderr).toContain("26 events looked at, 25 missing deliveries created\n1 could not be read: see above\n");
});

test("reads only the events of the project that were received since the time", async () => {
  await givenPurgedEvents(1);
  const other = await replay("--project", randomUUID(), "--since", since());
  expect(other.stdout).toBe("0 events looked at, 0 missing deliveries created\ncomplete\n");
  const later = await replay("--project", projectId, "--since", new Date().toISOString());
  expect(later.stdout).toBe("0 events looked at, 0 missing deliveries created\ncomplete\n");
  const one = await replay("--project", projectId, "--since", since());
  expect(one.stdout).toBe("1 event looked at, 1 missing delivery created\ncomplete\n");
});

test("with --stage prints the command for that stage, and needs no running service", async () => {
  const nowhere = { DATA_DIR: freshDataDir() };
  const { code, stdout } = await commandHere(
    "replay",
    ["--project", projectId, "--since", "2026-01-31T10:30:00.1234567+01:00", "--stage", "prod"],
    nowhere,
  );
  expect(code).toBe(0);
  expect(stdout).toContain(`\n  STAGE=prod docs/runbook/replay-events.sh 2026-01-31T09:30:00.123Z ${projectId}\n`);
});

test.each([
  [["--since", "2026-01-31T09:30:00Z"], "--project is missing."],
  [["--project", randomUUID()], "--since is missing."],
  [["--project", "7", "--since", "2026-01-31T09:30:00Z"], "--project must be a UUID."],
  [["--project", randomUUID(), "--since", "yesterday"], "--since must be an ISO 8601 time with a time zone"],
  [["--project", randomUUID(), "--since", "2026-01-31"], "--since must be an ISO 8601 time with a time zone"],
  [["--project", randomUUID(), "--since", "2999-01-01T00:00:00Z"], "--since must not be in the future."],
  [["--project", randomUUID(), "--since", "2026-01-31T09:30:00Z", "--all"], "Unknown option '--all'"],
  [
    ["--project", randomUUID(), "--since", "2026-01-31T09:30:00Z", "--stage", "prod;id"],
    "--stage must be the name of a stage",
  ],
])("%j exits with 2, names the mistake and shows the usage", async (args, message) => {
  const { code, stdout, stderr } = await commandHere("replay", args, settings);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr.startsWith(message)).toBe(true);
  expect(stderr).toContain("Usage: npm run --silent replay -- --project <uuid> --since <time>");
  expect(stderr).not.toContain("    at ");
});

test.each<[string, object, RegExp]>([
  [
    "cannot be reached",
    { code: "ECONNREFUSED" },
    /Could not reach AWS \(ECONNREFUSED\)\. Check .*\. Repeat the command/,
  ],
  ["refuses a call", {}, /then stopped: slow down\. Repeat the command/],
])("an engine that %s is one message that says how to go on", async (_, properties, message) => {
  interceptDynamo(() => Promise.reject(Object.assign(new Error("slow down"), properties)));
  const { code, stdout, stderr } = await replay("--project", projectId, "--since", since());
  restoreAws();
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^0 events looked at, 0 missing deliveries created, then stopped: /);
  expect(stderr).toMatch(message);
  expect(stderr).not.toContain("    at ");
});
