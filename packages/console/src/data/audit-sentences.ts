import type { AuditEvent } from "../../../client/src/client.ts";

/* Entries of the audit log as sentences. `satisfies` makes the compiler require every action. */

type Actor = AuditEvent["actor"];

/** The predicate of each sentence, after "alice …". Texts of users are in quotes. */
const actions = {
  "api_key.created": (named) => `created the API key ${named}`,
  "api_key.deleted": (named, { reason, found }) => `deleted the API key ${named}${because(reason)}${at(found)}`,
  "sign_in.approved": (named) => `approved the sign-in of ${named}`,
  "sign_in.denied": (named) => `denied the sign-in of ${named}`,
  "api_key.renamed": (named) => `renamed an API key to ${named}`,
  "api_key.rolled": (named, { overlap_seconds: overlap }) =>
    `rolled the API key ${named}${overlap === 0 ? ", without an overlap" : ""}`,
  "api_key.earlier_ended": (named, { reason, found }) =>
    `revoked a previous secret of the API key ${named} before its overlap was over${because(reason)}${at(found)}`,
  "webhook.created": (named) => `created the webhook ${named}`,
  "webhook.updated": (named, details) => `${verbOf(details)} the webhook ${named}`,
  "webhook.secret_rotated": (named) => `rotated the signing secret of the webhook ${named}`,
  "webhook.disabled": (named, { reason }) => `disabled the webhook ${named}${because(reason)}`,
  "webhook.deleted": (named) => `deleted the webhook ${named}`,
  "webhook.test_requested": (named, { event }) => `sent a test delivery of ${String(event)} to the webhook ${named}`,
  "webhook.certification_requested": (named) => `started a certification of the webhook ${named}`,
  "webhook.redelivery_requested": (named) => `resent a delivery to the webhook ${named}`,
  "webhook.recovery_requested": (named, { since }) =>
    `resent the deliveries of the webhook ${named} since ${String(since)}`,
  "member.updated": (named, { role }) => `gave the user ${named} the role ${String(role)}`,
  "member.removed": (named) => `removed the user ${named} from the project`,
  "service_account.created": (named, { role }) => `created the service account ${named} with the role ${String(role)}`,
  "service_account.removal_begun": (named) =>
    `began to delete the service account ${named}, whose keys were revoked at once`,
  "service_account.deleted": (named) => `deleted the service account ${named} and its API keys`,
  "project.suspended": () => "suspended the project",
  "project.resumed": () => "ended the suspension of the project",
  "trusted_workflow.created": (named) => `trusted the CI workflow ${named}`,
  "trusted_workflow.deleted": (named) => `deleted the trusted workflow ${named}`,
} satisfies Record<AuditEvent["action"], (named: string, details: AuditEvent["details"]) => string>;

/** Why the service did something on its own. A reason that this version does not know is shown as it is. */
const reasons: Partial<Record<string, string>> = {
  leaked: "because it was reported as leaked",
  service_account_deleted: "because its service account was deleted",
  gone: "because the receiver returned 410 Gone",
  failing: "because no delivery succeeded for several days",
};

const because = (reason: unknown): string =>
  typeof reason === "string" ? ` ${reasons[reason] ?? `(${reason.replaceAll("_", " ")})`}` : "";

/** Where a scanner found a key. Text and not a link: strangers may have chosen the URL. */
function at(found: unknown): string {
  const { url } = Object(found);
  return typeof url === "string" ? ` at ${url}` : "";
}

/** `enabled`, `disabled`, or `changed the url and events of`. */
function verbOf({ enabled, ...changed }: AuditEvent["details"]): string {
  const fields = Object.keys(changed);
  if (fields.length > 0) return `changed the ${fields.join(" and ")} of`;
  return enabled === true ? "enabled" : "disabled";
}

/** Says who did it: `alice`, `alice with an API key`, `a workflow of acme/shop`, `The platform`. */
export function actorOf({ type, user_id = "", repository, ref }: Actor): string {
  switch (type) {
    case "platform":
      return "The platform";
    case "system":
      return "The service";
    case "anonymous":
      return "Someone without a credential";
    case "workflow":
      return `A CI workflow${repository === undefined ? "" : ` of ${repository}`}${ref === undefined ? "" : ` (${ref})`}`;
    case "api_key":
      return `${user_id} with an API key`;
    case "jwt":
      return user_id;
  }
}

/** Returns the name of what an entry is about; undefined when the entry has none. */
function nameIn({ name, url, issuer, repository_id }: AuditEvent["details"]): string | undefined {
  const isUrl = typeof url === "object" && url !== null && "host" in url;
  const text = name ?? (isUrl ? url.host : undefined);
  if (typeof text === "string") return `“${text}”`;
  return repository_id === undefined ? undefined : `of ${String(issuer)} repository ${String(repository_id)}`;
}

/** Returns the latest known names, by resource id. Only some entries contain one. @param entries newest first */
export function namesIn(entries: AuditEvent[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const { resource_id, details } of entries) {
    const name = nameIn(details);
    if (name !== undefined && !names.has(resource_id)) names.set(resource_id, name);
  }
  return names;
}

/**
 * Says what was done, after the name of the actor. An action that this version does not know is shown as it is.
 * @param names of resources, for entries that contain only an id
 */
export function sentenceOf({ action, details, resource_id }: AuditEvent, names: Map<string, string>): string {
  const does: ((named: string, details: AuditEvent["details"]) => string) | undefined = actions[action];
  const named = nameIn(details) ?? names.get(resource_id) ?? resource_id;
  return does ? does(named, details) : action;
}
