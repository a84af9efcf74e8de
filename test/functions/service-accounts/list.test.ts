import { useService } from "../../support/service.ts";
import { newServiceAccount } from "../../support/service-accounts.ts";

const service = useService();

test("lists the service accounts of the project, oldest first", async () => {
  const { admin, accounts } = await newServiceAccount(service);
  for (const name of ["second", "third"]) await admin.api.post(accounts, { name, role: "viewer" });
  const { status, body } = await admin.api.get(accounts);
  expect(status).toBe(200);
  expect(body.data.map(({ name }: { name: string }) => name)).toEqual(["deploy", "second", "third"]);
});

test("returns no service account of another project", async () => {
  await newServiceAccount(service);
  const admin = service.user();
  const other = await service.project(admin.userId);
  expect((await admin.api.get(`/v1/projects/${other}/service-accounts`)).body).toEqual({ data: [] });
});
