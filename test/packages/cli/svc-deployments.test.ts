import { randomUUID } from "node:crypto";
import { jest } from "@jest/globals";
import { eventOf, givenEvent, publish } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { type Api, useService } from "../../support/service.ts";
import { type Running, startSvc } from "../../support/svc.ts";
import { svcHere } from "../../support/svc-here.ts";

/* `svc deployments` against the real service. */

const service = useService({ deliver: true });
let api: Api;
let env: Record<string, string>;
let projectId: string;
beforeEach(async () => {
  const user = service.user();
  projectId = await service.project(user.userId);
  // The narrowest key that can do it.
  const { key } = (await user.api.post("/v1/api-keys", { name: "ci", permissions: ["events:read", "projects:read"] }))
    .body.data;
  api = user.api;
  env = { SVC_BASE_URL: service.baseUrl, SVC_API_KEY: key };
});

const running: Running[] = [];
afterEach(() => {
  for (const { child } of running.splice(0)) child.kill("SIGKILL");
});

const start = (...args: string[]): Running => {
  const started = startSvc(["deployments", ...args], { env });
  running.push(started);
  return started;
};

const live = { event: "deploy.succeeded", data: { url: "https://app.example.com", status: "running" } };
const broken = { event: "deploy.failed", data: { reason: "health check \u001b[2J timed out" } };

async function publishStored(deployment_id: string, changes: object = {}): Promise<void> {
  const path = `/v1/projects/${projectId}/events?deployment_id=${deployment_id}`;
  const before = (await api.get(path)).body.data.length;
  await publish(eventOf(projectId, { deployment_id, ...changes }));
  await eventually(async () => expect((await api.get(path)).body.data).toHaveLength(before + 1));
}

test("svc deployments list and svc events list show the newest first, up to --limit", async () => {
  const [good, bad] = [randomUUID(), randomUUID()];
  await publishStored(good, { timestamp: "2026-11-20T00:00:00.000Z" });
  await publishStored(bad, { timestamp: "2026-11-20T00:00:30.000Z" });
  await publishStored(good, { ...live, timestamp: "2026-11-20T00:01:00.000Z" });
  await publishStored(bad, { ...broken, timestamp: "2026-11-20T00:02:00.000Z" });
  const records = async (...args: string[]) => {
    const { stdout } = await svcHere([...args, "--json"], { env });
    return stdout.startsWith("[")
      ? JSON.parse(stdout)
      : stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line));
  };
  expect(await records("deployments", "list")).toEqual([
    { id: bad, state: "failed", updated_at: "2026-11-20T00:02:00.000Z", duration_ms: 90_000 },
    { id: good, state: "succeeded", updated_at: "2026-11-20T00:01:00.000Z", duration_ms: 60_000 },
  ]);
  expect(await records("deployments", "list", "--limit", "1")).toMatchObject([{ id: bad, duration_ms: 90_000 }]);
  expect(await records("events", "list", "--deployment", good)).toMatchObject([{ event: "deploy.succeeded" }, {}]);
  expect(await records("events", "list", "--limit", "1")).toMatchObject([{ event: "deploy.failed" }]);
  const { stdout } = await svcHere(["deployments", "list"], { env });
  expect(stdout).toMatch(new RegExp(`${good} {2}succeeded {2}.* {2}https://app.example.com\n`));
});

describe("svc deployments wait", () => {
  test("prints the events, and exits with 0 or 1 when the deployment has succeeded or failed", async () => {
    const [good, bad] = [randomUUID(), randomUUID()];
    const waits = [start("wait", good), start("wait", bad, "--project", projectId)];
    for (const wait of waits) await eventually(() => expect(wait.stderr()).toContain("Waiting for the deployment"));
    await publishStored(good);
    for (const wait of waits.slice(0, 1)) await eventually(() => expect(wait.stderr()).toContain("deploy.started"));
    await publishStored(randomUUID(), live);
    // The failure of an earlier attempt arrives late.
    await publishStored(good, { ...broken, timestamp: "2026-11-20T00:00:00.000Z" });
    await publishStored(good, live);
    await publishStored(bad, broken);
    const [succeeded, failed] = await Promise.all(waits.map(({ ended }) => ended));
    expect(succeeded).toMatchObject({ code: 0, stderr: expect.stringContaining("at most 20m") });
    expect(succeeded?.stdout).toMatch(
      new RegExp(`^\\S+Z {2}deploy.succeeded {2}${good} {2}https://app.example.com\n$`),
    );
    expect(failed?.code).toBe(1);
    expect(failed?.stdout).toMatch(new RegExp(`deploy.failed {5}${bad} {2}health check \\\\u001b\\[2J timed out\n$`));
  });

  test("exits with 124 after the timeout", async () => {
    const timeout = jest.spyOn(AbortSignal, "timeout");
    const wait = await svcHere(["deployments", "wait", randomUUID(), "--timeout", "1s"], { env });
    expect(timeout).toHaveBeenCalledWith(1_000);
    timeout.mockRestore();
    expect(wait).toMatchObject({ code: 124, stdout: "", stderr: expect.stringContaining(" within 1s.\n") });
  });
});

test("svc deployments watch prints the latest events and each new one once, and exits with 0 on Ctrl-C", async () => {
  const deployments = [randomUUID(), randomUUID(), randomUUID()];
  const [one = "", two = "", three = ""] = deployments;
  await publishStored(one);
  await publishStored(two);
  const watch = start("watch", "--last", "3", "--json");
  await eventually(() => expect(watch.stderr()).toContain("Following"));
  await publishStored(three);
  await publishStored(one, live);
  const lines = () => watch.stdout().trim().split("\n");
  await eventually(() => expect(lines()).toHaveLength(4));
  const seen = lines().map((line): { event: string; deployment_id: string } => JSON.parse(line));
  expect(seen.map(({ event, deployment_id }) => [event, deployment_id])).toEqual([
    ["deploy.started", one],
    ["deploy.started", two],
    ["deploy.started", three],
    ["deploy.succeeded", one],
  ]);
  watch.child.kill("SIGINT");
  expect(await watch.ended).toMatchObject({ code: 0 });
});

test("svc deployments watch prints as many of the latest events of a kind as asked for, over short pages", async () => {
  const [before, found, newest] = [randomUUID(), randomUUID(), randomUUID()];
  const given = async (second: number, changes: object) => {
    // Before what the feed returns to a reader who follows it from now on.
    const at = new Date(Date.now() - 3600_000 + second * 1000);
    const event = eventOf(projectId, { timestamp: at.toISOString(), ...changes });
    await givenEvent(event, { receivedAt: at, storedAt: at });
  };
  await given(0, { ...live, deployment_id: before });
  await given(1, { ...live, deployment_id: found });
  await given(1.5, broken);
  // A page ends after 250 read units, about 1 MB.
  const data = { log: "x".repeat(200_000) };
  for (let second = 2; second <= 7; second++) await given(second, { ...broken, data });
  await given(8, { ...live, deployment_id: newest });
  const path = `/v1/projects/${projectId}/events`;
  const query = "?event=deploy.succeeded&limit=2";
  const { body, headers } = await api.get(`${path}${query}`);
  expect(body.data).toMatchObject([{ deployment_id: newest }]);
  expect(headers.get("link")).toContain("next");
  const watch = start("watch", "--event", "deploy.succeeded", "--last", "2", "--json");
  await eventually(() => expect(watch.stderr()).toContain("Following"));
  const shown = watch.stdout().trim().split("\n");
  expect(shown.map((line) => JSON.parse(line).deployment_id)).toEqual([found, newest]);
  for (const change of [broken, live]) await publishStored(randomUUID(), change);
  await eventually(() => expect(watch.stdout().trim().split("\n")).toHaveLength(3));
  expect(watch.stdout()).not.toContain("deploy.failed");
  watch.child.kill("SIGINT");
  await watch.ended;
});
