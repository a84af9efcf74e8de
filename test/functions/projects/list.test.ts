import { setTimeout } from "node:timers/promises";
import { interceptDynamo, restoreAws } from "../../support/aws-calls.ts";
import { startTestService, type TestService } from "../../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterEach(restoreAws);
afterAll(() => service.stop());

test("returns an empty array for a user without projects, with a JWT and with an API key", async () => {
  const { api } = service.user();
  const { key } = (await api.post("/v1/api-keys", { name: "ci" })).body.data;
  for (const caller of [api, service.as(key)]) {
    const { status, body } = await caller.get("/v1/projects");
    expect({ status, body }).toEqual({ status: 200, body: { data: [] } });
  }
});

test("returns exactly id, name, the role of the caller and the time of joining", async () => {
  const { api, userId } = service.user();
  const project = await service.project(userId, { role: "viewer" });
  const { data } = (await api.get("/v1/projects")).body;
  expect(data).toEqual([{ id: project, name: "Project", role: "viewer", created_at: expect.any(String) }]);
  expect(new Date(data[0].created_at).toISOString()).toBe(data[0].created_at);
});

test("returns the projects of all pages when DynamoDB returns a few at a time", async () => {
  const { api, userId } = service.user();
  const projects = await Promise.all(Array.from({ length: 5 }, () => service.project(userId)));
  let pages = 0;
  interceptDynamo(async ({ command, input }, send) => {
    if (command !== "QueryCommand") return send();
    pages++;
    return send({ ...input, Limit: 2 });
  });
  const listed = (await api.get("/v1/projects")).body.data.map(({ id }: { id: string }) => id);
  expect(listed.toSorted()).toEqual(projects.toSorted());
  expect(pages).toBe(3);
});

test("returns the projects of the caller only, oldest membership first", async () => {
  const [one, two] = [service.user(), service.user()];
  const ofOne: string[] = [];
  for (let count = 0; count < 12; count++) {
    ofOne.push(await service.project(one.userId));
    // Memberships of the same millisecond have no defined order.
    await setTimeout(2);
  }
  const shared = await service.project(one.userId);
  await service.project(two.userId, { projectId: shared, role: "viewer" });
  const seenBy = async ({ api }: typeof one) =>
    (await api.get("/v1/projects")).body.data.map(({ id, role }: Record<string, string>) => `${id} ${role}`);
  expect(await seenBy(one)).toEqual([...ofOne, shared].map((id) => `${id} admin`));
  expect(await seenBy(two)).toEqual([`${shared} viewer`]);
});
