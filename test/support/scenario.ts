import { randomUUID } from "node:crypto";
import type { EventName } from "../../functions/deployments/deployment-event.ts";
import type { Webhook } from "../../functions/webhooks/webhook.ts";
import type { Api, Response, TestService } from "./service.ts";

/** A project with one webhook, and who may see or change it. */
export interface Scenario {
  /** An admin of the project. */
  api: Api;
  token: string;
  viewer: Api;
  /** An API key of the admin. */
  key: Api;
  projectId: string;
  /** As create has shown it. */
  webhook: Webhook & { secret: string };
  /** The webhook's path. */
  path: string;
  /** Paths of webhooks that are not there for the admin: of no webhook, in another project of theirs, of somebody else. */
  elsewhere: [title: string, path: string][];
}

/** @param webhook what it is created with */
export async function newScenario(
  service: TestService,
  { url = "https://example.com/hook", events = ["deploy.started"] as EventName[] } = {},
): Promise<Scenario> {
  const [admin, viewer, stranger] = [service.user(), service.user(), service.user()];
  const projectId = await service.project(admin.userId);
  await service.project(viewer.userId, { projectId, role: "viewer" });
  const { key } = (await admin.api.post("/v1/api-keys", { name: "scenario" })).body.data;
  const create = async (api: Api, project: string) => {
    const { status, body } = await api.post(`/v1/projects/${project}/webhooks`, { url, events });
    expect(status).toBe(201);
    return body.data;
  };
  const webhook = await create(admin.api, projectId);
  const [otherProject, foreignProject] = [await service.project(admin.userId), await service.project(stranger.userId)];
  const pathOf = (project: string, id: string) => `/v1/projects/${project}/webhooks/${id}`;
  return {
    api: admin.api,
    token: admin.token,
    viewer: viewer.api,
    key: service.as(key),
    projectId,
    webhook,
    path: pathOf(projectId, webhook.id),
    elsewhere: [
      ["an id that no webhook has", pathOf(projectId, randomUUID())],
      ["an id that is no UUID", pathOf(projectId, "7")],
      ["the webhook in another project of the same admin", pathOf(otherProject, webhook.id)],
      ["a webhook of another project in this one", pathOf(projectId, (await create(admin.api, otherProject)).id)],
      ["a webhook of somebody else", pathOf(foreignProject, (await create(stranger.api, foreignProject)).id)],
      ["the webhook in a project of somebody else", pathOf(foreignProject, webhook.id)],
      ["a project that does not exist", pathOf(randomUUID(), webhook.id)],
    ],
  };
}

/** The code of an error answer; with the status, all that a client should look at. */
export const errorOf = ({ status, body }: Response) => ({ status, code: body?.error?.code });

/** The paths of the details of a `validation_error`. */
export function wrongFieldsOf({ status, body }: Response): string[] {
  expect({ status, code: body?.error?.code }).toEqual({ status: 400, code: "validation_error" });
  return body.error.details.map(({ path }: { path: string }) => path);
}

/** Calls with each of the scenario's paths that lead nowhere, and expects the same of all of them: not found. */
export async function expectNotFound(
  { elsewhere }: Scenario,
  call: (path: string) => Promise<Response>,
): Promise<void> {
  for (const [title, path] of elsewhere) {
    expect({ title, ...errorOf(await call(path)) }).toEqual({ title, status: 404, code: "not_found" });
  }
}

/** Expects a viewer to be refused for being one. */
export async function expectForbidden(answer: Promise<Response>): Promise<void> {
  expect(errorOf(await answer)).toEqual({ status: 403, code: "forbidden" });
}
