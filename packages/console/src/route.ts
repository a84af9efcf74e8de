/* Addresses of the screens. They are behind `#`, so that any file server can serve the page. */

export type Route =
  | { name: "projects" }
  | { name: "keys" }
  | { name: "audit" }
  | { name: "project"; projectId: string }
  | { name: "access"; projectId: string }
  | { name: "project-audit"; projectId: string }
  | { name: "webhook"; projectId: string; webhookId: string; view: "deliveries" | "verify"; deliveryId?: string }
  | { name: "unknown" };

const uuid = "([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})";
const project = new RegExp(`^#/projects/${uuid}$`);
const section = new RegExp(`^#/projects/${uuid}/(access|audit)$`);
const webhook = new RegExp(`^#/projects/${uuid}/webhooks/${uuid}(/verify)?$`);
const delivery = new RegExp(`^#/projects/${uuid}/webhooks/${uuid}/deliveries/${uuid}$`);

/** Parses an address. Only UUIDs are accepted as ids, so that a crafted link cannot reach another path of the API. */
export function routeOf(hash: string): Route {
  if (["", "#", "#/", "#/projects"].includes(hash)) return { name: "projects" };
  if (hash === "#/keys") return { name: "keys" };
  if (hash === "#/audit") return { name: "audit" };
  const [, sectionOf, name] = section.exec(hash) ?? [];
  if (sectionOf) return { name: name === "audit" ? "project-audit" : "access", projectId: sectionOf };
  const [, projectId = "", webhookId = "", third = ""] =
    project.exec(hash) ?? webhook.exec(hash) ?? delivery.exec(hash) ?? [];
  if (projectId === "") return { name: "unknown" };
  if (webhookId === "") return { name: "project", projectId };
  if (third === "/verify") return { name: "webhook", projectId, webhookId, view: "verify" };
  return { name: "webhook", projectId, webhookId, view: "deliveries", ...(third && { deliveryId: third }) };
}

export const projectHref = (projectId: string) => `#/projects/${projectId}`;
export const accessHref = (projectId: string) => `${projectHref(projectId)}/access`;
export const projectAuditHref = (projectId: string) => `${projectHref(projectId)}/audit`;
export const webhookHref = (projectId: string, webhookId: string) => `${projectHref(projectId)}/webhooks/${webhookId}`;
export const verifyHref = (projectId: string, webhookId: string) => `${webhookHref(projectId, webhookId)}/verify`;
export const deliveryHref = (projectId: string, webhookId: string, deliveryId: string) =>
  `${webhookHref(projectId, webhookId)}/deliveries/${deliveryId}`;
