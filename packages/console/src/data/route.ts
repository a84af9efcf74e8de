/* Addresses of the screens. They are behind `#`, so that any file server can serve the page. */

/** The part of an address after its `?`: the filters of a list. Each screen reads the values that it knows. */
export type Query = Record<string, string>;

export type ProjectView = "webhooks" | "deliveries" | "events";
export type WebhookView = "deliveries" | "health" | "certification" | "verify";

export type Route =
  | { name: "projects" }
  | { name: "keys" }
  | { name: "audit" }
  | { name: "sign-in" }
  | { name: "project"; projectId: string; view: ProjectView; query: Query }
  | { name: "access"; projectId: string }
  | { name: "project-audit"; projectId: string }
  | {
      name: "webhook";
      projectId: string;
      webhookId: string;
      view: WebhookView;
      query: Query;
      deliveryId?: string;
    }
  | { name: "unknown" };

const uuid = "([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})";
const project = new RegExp(`^#/projects/${uuid}(?:/(deliveries|events))?$`);
const section = new RegExp(`^#/projects/${uuid}/(access|audit)$`);
const webhook = new RegExp(`^#/projects/${uuid}/webhooks/${uuid}(?:/(health|certification|verify))?$`);
const delivery = new RegExp(`^#/projects/${uuid}/webhooks/${uuid}/deliveries/${uuid}$`);

/** Parses an address. Only UUIDs are accepted as ids, so that a crafted link cannot reach another path of the API. */
export function routeOf(hash: string): Route {
  const [path = "", search = ""] = splitOnce(hash, "?");
  if (["", "#", "#/", "#/projects"].includes(path)) return { name: "projects" };
  if (path === "#/keys") return { name: "keys" };
  if (path === "#/audit") return { name: "audit" };
  if (path === "#/sign-in") return { name: "sign-in" };
  const [, sectionOf, name] = section.exec(path) ?? [];
  if (sectionOf) return { name: name === "audit" ? "project-audit" : "access", projectId: sectionOf };
  const query = Object.fromEntries(new URLSearchParams(search));
  const inProject = project.exec(path);
  if (inProject) {
    const [, projectId = "", view = "webhooks"] = inProject;
    return { name: "project", projectId, view: view as ProjectView, query };
  }
  const inDelivery = delivery.exec(path);
  if (inDelivery) {
    const [, projectId = "", webhookId = "", deliveryId = ""] = inDelivery;
    return { name: "webhook", projectId, webhookId, view: "deliveries", query, deliveryId };
  }
  const inWebhook = webhook.exec(path);
  if (inWebhook) {
    const [, projectId = "", webhookId = "", view = "deliveries"] = inWebhook;
    return { name: "webhook", projectId, webhookId, view: view as WebhookView, query };
  }
  return { name: "unknown" };
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

export const projectHref = (projectId: string) => `#/projects/${projectId}`;
export const projectDeliveriesHref = (projectId: string) => `${projectHref(projectId)}/deliveries`;
export const eventsHref = (projectId: string) => `${projectHref(projectId)}/events`;
export const accessHref = (projectId: string) => `${projectHref(projectId)}/access`;
export const projectAuditHref = (projectId: string) => `${projectHref(projectId)}/audit`;
export const webhookHref = (projectId: string, webhookId: string) => `${projectHref(projectId)}/webhooks/${webhookId}`;
export const healthHref = (projectId: string, webhookId: string) => `${webhookHref(projectId, webhookId)}/health`;
export const certificationHref = (projectId: string, webhookId: string) =>
  `${webhookHref(projectId, webhookId)}/certification`;
export const verifyHref = (projectId: string, webhookId: string) => `${webhookHref(projectId, webhookId)}/verify`;
export const deliveryHref = (projectId: string, webhookId: string, deliveryId: string) =>
  `${webhookHref(projectId, webhookId)}/deliveries/${deliveryId}`;

/** Adds filters to an address. Those that are undefined or empty are left out. */
export function withQuery(href: string, query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? "") !== "");
  return given.length === 0 ? href : `${href}?${new URLSearchParams(given)}`;
}
