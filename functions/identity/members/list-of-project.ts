import * as members from "../../foundation/access/member-store.ts";
import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";

/**
 * Lists the people who are members of a project, as the platform has reported them: admins first, then by the time of
 * joining. At most the first 500 by their ids.
 */
export const handler = defineEndpoint(endpoints.listMembers, {
  async run({ params: { project_id: project }, identity: caller, now }) {
    const found = await meteredReads({ project, caller }, now, (reads) => members.membersOf(reads, project));
    const order = ({ role, created_at }: (typeof found)[number]) => `${role} ${created_at}`;
    return ok(found.toSorted((one, other) => (order(one) < order(other) ? -1 : 1)));
  },
});
