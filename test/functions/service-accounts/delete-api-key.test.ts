import { useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";

const service = useService();

test("rejects the key from the next request on, and keeps the others", async () => {
  const { admin, path, createKey } = await newServiceAccount(service);
  const [deleted, kept] = [await createKey(), await createKey()];
  expect((await admin.api.delete(`${path}/api-keys/${deleted.id}`)).status).toBe(204);
  expect((await deleted.as.get("/v1/projects")).body.error.code).toBe("invalid_api_key");
  expect((await kept.as.get("/v1/projects")).status).toBe(200);
  expect((await admin.api.delete(`${path}/api-keys/${deleted.id}`)).status).toBe(404);
});

test("returns 404 for a key of a user, of another service account, and through another project", async () => {
  const [one, other] = [await newServiceAccount(service), await newServiceAccount(service)];
  const own = (await one.admin.api.post("/v1/api-keys", { name: "own" })).body.data;
  const foreign = await other.createKey();
  const { id, as } = await one.createKey();
  for (const wrong of [own.id, foreign.id]) {
    expect((await one.admin.api.delete(`${one.path}/api-keys/${wrong}`)).status).toBe(404);
  }
  const through = `${other.accounts}/${one.accountId}/api-keys/${id}`;
  expect((await other.admin.api.delete(through)).status).toBe(404);
  for (const api of [service.as(own.key), foreign.as, as]) expect((await api.get("/v1/projects")).status).toBe(200);
});
