import type { Command } from "commander";
import type { AuditEvent } from "../../client/src/client.ts";
import { signedIn } from "./api.ts";
import { findProject } from "./find.ts";
import type { Globals } from "./globals.ts";
import { relativeTime, table } from "./table.ts";
import { jsonText, note, print } from "./terminal.ts";

interface AuditOptions extends Globals {
  project?: string;
  limit: string;
}

export function addAudit(program: Command): void {
  program
    .command("audit")
    .summary("who did what: to your keys, or in a project")
    .description(
      "Shows what was done to your API keys, newest first; with --project, to the webhooks, members and service accounts of a project (admins).",
    )
    .option("--project <id or name>", "the log of a project; default: that of your keys")
    .option("--limit <n>", "1-100 entries", "20")
    .action(async (_options, command: Command) => {
      const { json, project, limit, ...globals }: AuditOptions = command.optsWithGlobals();
      const api = await signedIn(globals);
      const { items: entries } =
        project === undefined
          ? await api.listAuditEvents({ limit: Number(limit) })
          : await api.listProjectAuditEvents(await findProject(api, project), { limit: Number(limit) });
      if (json) return print(jsonText(entries));
      if (entries.length === 0) return note("Nothing was done in the last 400 days.");
      const titles = ["at", "action", "resource", "by", "from", "details"];
      print(table(titles, entries.map(rowOf)));
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
