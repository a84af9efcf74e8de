import { randomUUID } from "node:crypto";
import type { WebhookEventName } from "../../functions/foundation/events/webhook-event.ts";
import type { Webhook } from "../../functions/webhooks/webhook/webhook.ts";
import type { Api, Response, TestService } from "./service.ts";

/** A project with one webhook, and clients of an admin, a viewer and an API key. */
export interface Scenario {
  /** Calls the API as an admin of the project. */
  api: Api;
  token: string;
  /** Calls the API as a viewer of the project. */
  viewer: Api;
  /** Creates an API key of the admin and returns its client. */
  key(): Promise<Api>;
  projectId: string;
  /** The webhook as the create endpoint returned it. */
  webhook: Webhook & { secret: string };
  /** `/v1/projects/<id>/webhooks/<webhook_id>` */
  path: string;
  /** Returns webhook paths for which the admin gets 404: unknown, in another of their projects, or of another user. */
  elsewhere(): Promise<[title: string, path: string][]>;
}

/** Creates a project with members and a webhook that has these fields. */
export async function newScenario(
  service: TestService,
  { url = "https://example.com/hook", events = ["deploy.started"] as WebhookEventName[] } = {},
): Promise<Scenario> {
  const [admin, viewer] = [service.user(), service.user()];
  const projectId = await service.project(admin.userId);
  await service.project(viewer.userId, { projectId, role: "viewer" });
  const create = async (api: Api, project: string) => {
    const { status, body } = await api.post(`/v1/projects/${project}/webhooks`, { url, events });
    expect(status).toBe(201);
    return body.data;
  };
  const webhook = await create(admin.api, projectId);
  const pathOf = (project: string, id: string) => `/v1/projects/${project}/webhooks/${id}`;
  return {
    api: admin.api,
    token: admin.token,
    viewer: viewer.api,
    projectId,
    webhook,
    path: pathOf(projectId, webhook.id),
    async key() {
      return service.as((await admin.api.post("/v1/api-keys", { name: "scenario" })).body.data.key);
    },
    async elsewhere() {
      const otherUser = service.user();
      const otherProject = await service.project(admin.userId);
      const foreignProject = await service.project(otherUser.userId);
      return [
        ["an unknown id", pathOf(projectId, randomUUID())],
        ["an id that is not a UUID", pathOf(projectId, "7")],
        ["the webhook in another project of the same admin", pathOf(otherProject, webhook.id)],
        ["a webhook of another project in this one", pathOf(projectId, (await create(admin.api, otherProject)).id)],
        ["a webhook of another user", pathOf(foreignProject, (await create(otherUser.api, foreignProject)).id)],
        ["the webhook in a project of another user", pathOf(foreignProject, webhook.id)],
        ["an unknown project", pathOf(randomUUID(), webhook.id)],
      ];
    },
  };
}

/**
 * Creates a scenario before each test.
 * @param fields returns those of the webhook, then
 */
export function useScenario(
  service: TestService,
  fields: () => Parameters<typeof newScenario>[1] = () => ({}),
): Scenario {
  const scenario = {} as Scenario;
  beforeEach(async () => void Object.assign(scenario, await newScenario(service, fields())));
  return scenario;
}

/** Returns the status and error code of a response. Messages are not part of the API. */
export const errorOf = ({ status, body }: Response) => ({ status, code: body?.error?.code });

/** Expects a `validation_error` and returns the paths in its details. */
export function invalidFieldsOf({ status, body }: Response): string[] {
  expect({ status, code: body?.error?.code }).toEqual({ status: 400, code: "validation_error" });
  return body.error.details.map(({ path }: { path: string }) => path);
}
