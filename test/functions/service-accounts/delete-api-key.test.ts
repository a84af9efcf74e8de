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
