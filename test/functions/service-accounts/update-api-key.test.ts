import { useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";

const service = useService();

test("changes the name and nothing else, and the audit log of the project shows it", async () => {
  const { admin, projectId, path, createKey } = await newServiceAccount(service);
  const { id, as } = await createKey();
  const [before] = (await admin.api.get(`${path}/api-keys`)).body.data;
  const { status, body } = await admin.api.patch(`${path}/api-keys/${id}`, { name: "deploy job" });
  expect({ status, data: body.data }).toEqual({ status: 200, data: { ...before, name: "deploy job" } });
  expect((await admin.api.get(`${path}/api-keys`)).body.data).toEqual([{ ...before, name: "deploy job" }]);
  expect((await as.get("/v1/projects")).status).toBe(200);
  const [event] = (await admin.api.get(`/v1/projects/${projectId}/audit-events`)).body.data;
  expect(event).toMatchObject({ action: "api_key.renamed", resource_id: id, details: { name: "deploy job" } });
});

test("rejects a name that is not valid with 400", async () => {
  const { admin, path, createKey } = await newServiceAccount(service);
  const { id } = await createKey();
  for (const body of [{}, { name: "" }, { name: "ci", permissions: ["keys:read"] }]) {
    expect((await admin.api.patch(`${path}/api-keys/${id}`, body)).body.error.code).toBe("validation_error");
  }
});
