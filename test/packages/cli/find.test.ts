import { newestDeliveries } from "../../../packages/cli/src/find.ts";
import type { Client, DeliveryQuery } from "../../../packages/client/src/client.ts";

test("a list reads pages of at most 100 deliveries, and has as many as asked for", async () => {
  const queries: DeliveryQuery[] = [];
  const listProjectDeliveries = async (_project: string, query: DeliveryQuery) => {
    queries.push(query);
    return {
      items: Array.from({ length: 100 }, (_, index) => ({ id: `${queries.length}-${index}` })),
      nextCursor: "c",
    };
  };
  const api = { listProjectDeliveries } as unknown as Client;
  const found = await newestDeliveries(api, { projectId: "p" }, { limit: 150, status: "failed" });
  expect(found.map(({ id }) => id)).toEqual(expect.arrayContaining(["1-0", "2-49"]));
  expect(found).toHaveLength(150);
  expect(queries).toEqual([
    { status: "failed", limit: 100 },
    { status: "failed", limit: 100, cursor: "c" },
  ]);
});
