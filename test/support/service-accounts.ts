import type { Api, TestService } from "./service.ts";

interface AccountScenario {
  /** A session of an admin of the project. */
  admin: ReturnType<TestService["user"]>;
  projectId: string;
  /** Path of the service accounts of the project. */
  accounts: string;
  /** Path of the service account. */
  path: string;
  accountId: string;
  createKey(limits?: object): Promise<{ id: string; key: string; as: Api }>;
}

/** Creates a project with an admin and a service account. */
export async function newServiceAccount(service: TestService, role = "admin"): Promise<AccountScenario> {
  const admin = service.user();
  const projectId = await service.project(admin.userId);
  const accounts = `/v1/projects/${projectId}/service-accounts`;
  const { status, body } = await admin.api.post(accounts, { name: "deploy", role });
  if (status !== 201) throw new Error(`POST ${accounts} returned ${status}`);
  const path = `${accounts}/${body.data.id}`;
  return {
    admin,
    projectId,
    accounts,
    path,
    accountId: body.data.id,
    async createKey(limits = {}) {
      const { data } = (await admin.api.post(`${path}/api-keys`, { name: "ci", ...limits })).body;
      return { id: data.id, key: data.key, as: service.as(data.key) };
    },
  };
}
