import { randomBytes } from "node:crypto";
import { projectOf } from "../../foundation/access/member-store.ts";
import { requireActive } from "../../foundation/access/suspension-store.ts";
import { created, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { createServiceAccount, serviceAccountInput, toListItem } from "./service-account.ts";
import * as serviceAccounts from "./service-account-store.ts";

/** Creates a service account in a project. */
export const handler = defineEndpoint(endpoints.createServiceAccount, {
  input: serviceAccountInput,
  async run({ params: { project_id }, input, identity, actor, onceOnly, now }) {
    await requireActive(project_id);
    const account = createServiceAccount(input, project_id, identity.userId, now, randomBytes(16));
    const project = await projectOf(identity.userId, project_id);
    const response = toListItem(account);
    await serviceAccounts.insert(account, project?.name ?? "", actor, onceOnly(response));
    return created(response);
  },
});
