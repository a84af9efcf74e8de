import { mintToken } from "../../../bin/local/mint-token.ts";
import { useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";

const service = useService();

test("returns the service account, which is a member of this project only, with its role", async () => {
  const { admin, projectId, accounts, createKey, accountId } = await newServiceAccount(service, "viewer");
  const { data } = (await admin.api.get(accounts)).body;
  expect(data).toEqual([
    {
      id: accountId,
      project_id: projectId,
      user_id: `service-account:${accountId}`,
      name: "deploy",
      role: "viewer",
      created_at: expect.stringMatching(/Z$/),
      created_by: admin.userId,
    },
  ]);
  const { as } = await createKey();
  expect((await as.get("/v1/projects")).body.data).toMatchObject([{ id: projectId, name: "Project", role: "viewer" }]);
});

test("a JWT with the user id of a service account is rejected", async () => {
  const { accountId } = await newServiceAccount(service);
  const token = mintToken(process.env.JWT_SECRET ?? "", `service-account:${accountId}`);
  expect((await service.as(token).get("/v1/projects")).body.error.code).toBe("invalid_token");
});

test.each([
  [{ name: "x" }, "role"],
  [{ name: "x", role: "owner" }, "role"],
  [{ role: "admin" }, "name"],
  [{ name: "", role: "admin" }, "name"],
  [{ name: "x", role: "admin", user_id: "user-1" }, "user_id"],
])("rejects the body %j", async (body, path) => {
  const { admin, accounts } = await newServiceAccount(service);
  const response = await admin.api.post(accounts, body);
  expect(response.body.error).toMatchObject({ code: "validation_error", details: [{ path }] });
});

test("allows 50 per project, also under concurrent creates, and another one after a delete", async () => {
  const { admin, accounts, path } = await newServiceAccount(service);
  const create = async () => (await admin.api.post(accounts, { name: "one of many", role: "viewer" })).status;
  const statuses = await Promise.all(Array.from({ length: 52 }, create));
  expect(statuses.filter((status) => status === 201)).toHaveLength(49);
  expect(await create()).toBe(409);
  expect((await admin.api.delete(path)).status).toBe(204);
  expect(await create()).toBe(201);
});
