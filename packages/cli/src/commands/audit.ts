import type { AuditEvent } from "../../../client/src/client.ts";
import { numberParser } from "../terminal/read-number.ts";
import { printList } from "../terminal/terminal.ts";
import { relativeTime, table } from "../views/table.ts";
import { findProject } from "./find.ts";
import type { ApiCall, SvcCommand } from "./svc-command.ts";

export function addAudit(program: SvcCommand): void {
  program
    .command("audit")
    .summary("who did what: to your keys, or in a project")
    .description(
      "Shows what was done to your API keys, newest first; with --project, to the webhooks, members and service accounts of a project (admins).",
    )
    .option("--project <id or name>", "the log of a project; default: that of your keys")
    .option("--limit <n>", "1-100 entries", numberParser("--limit", 1, 100), 20)
    .signedIn(async ({ api, json, project, limit }: ApiCall & { project?: string; limit: number }) => {
      const { items } =
        project === undefined
          ? await api.listAuditEvents({ limit })
          : await api.listProjectAuditEvents(await findProject(api, project), { limit });
      printList(items, json, "Nothing was done in the last 400 days.", (entries) =>
        table(["at", "action", "resource", "by", "from", "details"], entries.map(rowOf)),
      );
    });
}

const rowOf = ({ at, action, resource_id, actor, details }: AuditEvent): string[] => [
  relativeTime(at),
  action,
  resource_id,
  actorOf(actor),
  actor.address ?? "",
  Object.entries(details)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", "),
];

/** `alice`, `alice with the key 0192…`, `workflow:… of acme/shop`, `the platform`, `this service`. */
function actorOf({ type, user_id, credential_id, repository }: AuditEvent["actor"]): string {
  if (type === "platform") return "the platform";
  if (type === "system") return "this service";
  if (type === "anonymous") return "someone without a credential";
  const credential = credential_id === undefined ? "" : ` with the key ${credential_id}`;
  return `${user_id ?? ""}${credential}${repository === undefined ? "" : ` of ${repository}`}`;
}
