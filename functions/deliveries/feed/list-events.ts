import { requireActive } from "../../foundation/access/suspension-store.ts";
import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, linkTo, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { newestPage, oldestPage } from "./event-feed-store.ts";
import { feedQuery, toRecord } from "./event-presenter.ts";

/**
 * Lists the deployment events of a project. The `Link` header has the URL of the next page (`rel="next"`), and the one
 * that returns what is stored later (`rel="monitor"`, RFC 5989).
 */
export const handler = defineEndpoint(endpoints.listEvents, {
  query: feedQuery,
  async run({ params, identity, query, requestUrl, now }) {
    const readPage = query.order === "oldest" ? oldestPage : newestPage;
    await requireActive(params.project_id);
    const { items, next, follow } = await meteredReads({ project: params.project_id, caller: identity }, now, (reads) =>
      readPage(reads, params.project_id, query, now),
    );
    const links = [
      next !== undefined && linkTo(requestUrl, { ...query.given, after: next }, "next"),
      follow !== undefined && linkTo(requestUrl, { ...query.given, order: "oldest", after: follow }, "monitor"),
    ].filter((link) => link !== false);
    return ok(items.map(toRecord), links.length === 0 ? {} : { Link: links.join(", ") });
  },
});
