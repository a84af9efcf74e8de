import { givenUsedReads } from "../../support/request-budget.ts";
import { errorOf } from "../../support/scenario.ts";
import { useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";

const service = useService();

test("lists the keys of the service account only, without the keys themselves", async () => {
  const { admin, path, createKey } = await newServiceAccount(service);
  await admin.api.post("/v1/api-keys", { name: "of the admin" });
  const { id, key } = await createKey();
  const { body } = await admin.api.get(`${path}/api-keys`);
  expect(body.data).toMatchObject([{ id, name: "ci", key_prefix: key.slice(0, 12), last_used_at: null }]);
  expect(JSON.stringify(body)).not.toContain(key);
});

test("returns address and user agent with include=last_use, and rejects other parameters", async () => {
  const { admin, path, createKey } = await newServiceAccount(service);
  await (await createKey()).as.get("/v1/projects");
  const [shown] = (await admin.api.get(`${path}/api-keys?include=last_use`)).body.data;
  expect(shown).toMatchObject({ last_used_ip: "127.0.0.1", last_used_user_agent: "node" });
  expect((await admin.api.get(`${path}/api-keys?limit=1`)).status).toBe(400);
});

test("is rejected with 429 beyond the project's budget of reads", async () => {
  const { admin, path, projectId } = await newServiceAccount(service);
  await givenUsedReads(projectId, 5_000);
  expect(errorOf(await admin.api.get(`${path}/api-keys`))).toEqual({ status: 429, code: "rate_limited" });
});
