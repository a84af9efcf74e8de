import { setTimeout } from "node:timers/promises";
import { inParallel } from "../../../../functions/foundation/platform/parallel.ts";
import { interceptDynamo, restoreAws, watchDynamo } from "../../../support/aws-calls.ts";
import { readPages } from "../../../support/pages.ts";
import { useService } from "../../../support/service.ts";

const service = useService();

const idsOf = (data: { id: string }[]) => data.map(({ id }) => id);

describe("the pages of the list", () => {
  test("have each project once, in the order of the ids, of a user and of a scoped key", async () => {
    const { api, userId } = service.user();
    const projects = (await Promise.all(Array.from({ length: 5 }, () => service.project(userId)))).toSorted();
    const scoped = { name: "ci", project_ids: projects.slice(1).toReversed() };
    const { key } = (await api.post("/v1/api-keys", scoped)).body.data;
    const sorted = (pages: string[][]) => pages.map((page) => page.toSorted());
    const [p1, p2, p3, p4, p5] = projects;
    expect(sorted(await readPages(api, "/v1/projects?limit=2"))).toEqual([[p1, p2], [p3, p4], [p5]]);
    expect(sorted(await readPages(service.as(key), "/v1/projects?limit=2"))).toEqual([
      [p2, p3],
      [p4, p5],
    ]);
    for (const query of ["", "?limit=5"]) {
      expect(sorted(await readPages(api, `/v1/projects${query}`))).toEqual([projects]);
    }
  });

  test("have 100 projects without a limit, in one query", async () => {
    const { api, userId } = service.user();
    const projects = await inParallel([...Array(101).keys()], 20, () => service.project(userId));
    const calls = watchDynamo();
    const { body } = await api.get("/v1/projects");
    restoreAws();
    expect(body.data).toHaveLength(100);
    expect(calls.filter(({ command }) => command === "QueryCommand")).toHaveLength(1);
    expect((await readPages(api, "/v1/projects")).flat().toSorted()).toEqual(projects.toSorted());
  });

  test("go on where DynamoDB ended a query early", async () => {
    const { api, userId } = service.user();
    const projects = await Promise.all(Array.from({ length: 5 }, () => service.project(userId)));
    interceptDynamo(async ({ command, input }, send) =>
      send(command === "QueryCommand" ? { ...input, Limit: 2 } : input),
    );
    const pages = await readPages(api, "/v1/projects");
    expect(pages).toHaveLength(3);
    expect(pages.flat().toSorted()).toEqual(projects.toSorted());
  });
});

test("a scoped key reads its projects by id, however many its user has", async () => {
  const { api, userId } = service.user();
  const [one, two] = await Promise.all(Array.from({ length: 12 }, () => service.project(userId)));
  const { key } = (await api.post("/v1/api-keys", { name: "ci", project_ids: [one, two] })).body.data;
  const reads: string[] = [];
  interceptDynamo(async ({ command, input }, send) => {
    if (JSON.stringify(input).includes('-projects"')) reads.push(command);
    return send();
  });
  const { body } = await service.as(key).get("/v1/projects");
  restoreAws();
  expect(idsOf(body.data).toSorted()).toEqual([one, two].toSorted());
  expect(reads).toEqual(["BatchGetItemCommand"]);
});

test("returns the projects of the caller only, by the time of joining", async () => {
  const [one, two] = [service.user(), service.user()];
  const ofOne: string[] = [];
  for (let count = 0; count < 12; count++) {
    ofOne.push(await service.project(one.userId));
    // Members of the same millisecond have no defined order.
    await setTimeout(2);
  }
  const shared = await service.project(one.userId);
  await service.project(two.userId, { projectId: shared, role: "viewer" });
  const seenBy = async ({ api }: typeof one) =>
    (await api.get("/v1/projects")).body.data.map(({ id, role }: Record<string, string>) => `${id} ${role}`);
  expect(await seenBy(one)).toEqual([...ofOne, shared].map((id) => `${id} admin`));
  expect(await seenBy(two)).toEqual([`${shared} viewer`]);
});
