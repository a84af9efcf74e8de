import { createCertification } from "../../../../functions/deliveries/certification/certification.ts";
import * as certifications from "../../../../functions/deliveries/certification/certification-store.ts";
import { signatureHeaders } from "../../../../functions/webhooks/receiver/signature.ts";
import { useCiSystem } from "../../../support/ci-system.ts";
import { changeWebhook, givenDelivery } from "../../../support/deliveries.ts";
import { type Api, useService } from "../../../support/service.ts";
import { newServiceAccount } from "../../../support/service-accounts.ts";

/* Which callers see where deliveries go, and what signs them: each identity at each place that has one of the two. */

const ci = useCiSystem("masking");
const service = useService();

const url = "https://hooks.example.com/services/SECRETTOKEN";
const masked = "https://hooks.example.com/***";
const secret = "whsec_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const readOnly = ["webhooks:read", "deliveries:read"];

interface Place {
  path: string;
  /** Undefined = it has none. */
  url?: true;
  signatures?: true;
}

let places: Record<string, Place>;
let identities: Record<string, Api>;
let webhookPath: string;
let signatures: string[];

beforeAll(async () => {
  const { admin, projectId, accounts, createKey } = await newServiceAccount(service);
  const viewer = service.user();
  await service.project(viewer.userId, { role: "viewer", projectId });
  const keyOf = async (api: Api, permissions?: string[]) =>
    service.as((await api.post("/v1/api-keys", { name: "k", ...(permissions && { permissions }) })).body.data.key);
  const watcher = (await admin.api.post(accounts, { name: "watch", role: "viewer" })).body.data;
  const watcherKey = (await admin.api.post(`${accounts}/${watcher.id}/api-keys`, { name: "k" })).body.data.key;
  const workflowWith = async (repository_id: string, permissions: string[]) => {
    const { status } = await admin.api.post(`/v1/projects/${projectId}/trusted-workflows`, {
      ...{ issuer: "masking", repository_id, permissions },
    });
    expect(status).toBe(201);
    return service.as(ci.token({ repository_id }));
  };
  identities = {
    "an admin's JWT": admin.api,
    "an admin's full key": await keyOf(admin.api),
    "a service account's key": (await createKey()).as,
    "an admin's key with webhooks:write": await keyOf(admin.api, [...readOnly, "webhooks:write"]),
    "an admin's key with webhook-secrets:write": await keyOf(admin.api, [...readOnly, "webhook-secrets:write"]),
    "an admin's key that reads": await keyOf(admin.api, readOnly),
    "a viewer's JWT": viewer.api,
    "a viewer's full key": await keyOf(viewer.api),
    "a viewer's key with all permissions": await keyOf(viewer.api, [
      ...[...readOnly, "webhooks:write", "webhook-secrets:write"],
    ]),
    "a viewing service account's key": service.as(watcherKey),
    "a workflow that reads": await workflowWith("1", readOnly),
    "a workflow with webhooks:write": await workflowWith("2", [...readOnly, "webhooks:write"]),
  };

  const { data } = (
    await admin.api.post(`/v1/projects/${projectId}/webhooks`, {
      url,
      events: ["deploy.failed"],
      filter: { url: [url] },
    })
  ).body;
  const at = new Date();
  const failure = { at: at.toISOString(), error_code: "http_status" as const, status_code: 301, detail: `${url}/` };
  await changeWebhook(data, { failing_since: at.toISOString(), last_error: failure });
  const webhook = { ...data };
  const attempt = {
    ...{ number: 1, duration_ms: 1, trigger: "schedule" as const, ...failure },
    response_excerpt: `Moved to ${url}/`,
    response_headers: { location: "/services/SECRETTOKEN/", link: `<${url}>; rel="self"` },
  };
  const failed = await givenDelivery(webhook, { status: "failed", attempt_count: 1, attempts: [attempt] });
  const headers = {
    "X-Service-Event": "deploy.failed",
    ...signatureHeaders({ deliveryId: failed.id, at, body: failed.body }, secret, [`${secret}0`]),
    "X-Hub-Signature": "sha256=of-an-earlier-service",
  };
  signatures = Object.entries(headers).flatMap(([name, value]) => (/signature/i.test(name) ? value.split(/,? /) : []));
  const shadowed = await givenDelivery(webhook, { status: "shadowed", shadow: { at: at.toISOString(), headers } });
  const certification = createCertification(webhook.id, at, Buffer.alloc(16));
  await certifications.insert(certification);
  await certifications.finish(certification, {
    results: { valid: { ...failure, duration_ms: 1 } },
    finished_at: at.toISOString(),
  });

  webhookPath = `/v1/projects/${projectId}/webhooks/${webhook.id}`;
  places = {
    "the webhooks": { path: `/v1/projects/${projectId}/webhooks`, url: true },
    "the webhook": { path: webhookPath, url: true },
    "the deliveries of the project": { path: `/v1/projects/${projectId}/deliveries`, url: true },
    "the deliveries of the webhook": { path: `${webhookPath}/deliveries`, url: true },
    "a failed delivery": { path: `${webhookPath}/deliveries/${failed.id}`, url: true },
    "a shadowed delivery": { path: `${webhookPath}/deliveries/${shadowed.id}`, signatures: true },
    "a certification": { path: `${webhookPath}/certifications/${certification.id}`, url: true },
    "the statistics": { path: `${webhookPath}/stats` },
  };
});

test.each<[string, sees: { urls: boolean; signatures: boolean }]>([
  ["an admin's JWT", { urls: true, signatures: true }],
  ["an admin's full key", { urls: true, signatures: true }],
  ["a service account's key", { urls: true, signatures: true }],
  ["an admin's key with webhooks:write", { urls: true, signatures: false }],
  ["an admin's key with webhook-secrets:write", { urls: false, signatures: true }],
  ["an admin's key that reads", { urls: false, signatures: false }],
  ["a viewer's JWT", { urls: false, signatures: false }],
  ["a viewer's full key", { urls: false, signatures: false }],
  ["a viewer's key with all permissions", { urls: false, signatures: false }],
  ["a viewing service account's key", { urls: false, signatures: false }],
  ["a workflow that reads", { urls: false, signatures: false }],
  ["a workflow with webhooks:write", { urls: true, signatures: false }],
])("%s sees %j", async (identity, sees) => {
  for (const [place, { path, ...has }] of Object.entries(places)) {
    const { status, body } = await (identities[identity] as Api).get(path);
    // A filter is about the data of deployments, and is not masked.
    const text = JSON.stringify(body, (name, value) => (name === "filter" ? undefined : value));
    const seen = {
      status,
      urls: text.includes("SECRETTOKEN"),
      signatures: signatures.filter((each) => text.includes(each.slice(-16))).length,
    };
    const count = has.signatures && sees.signatures ? signatures.length : 0;
    expect({ place, ...seen }).toEqual({ place, status: 200, urls: has.url === true && sees.urls, signatures: count });
  }
});

test("a viewer sees the host of each URL, and which headers signed", async () => {
  const get = async (place: string) =>
    (await (identities["a viewer's JWT"] as Api).get(places[place]?.path ?? "")).body.data;
  const hint = `Redirects are not followed: register ${masked} instead.`;
  expect(await get("the webhook")).toMatchObject({
    url: masked,
    filter: { url: [url] },
    health: { last_error: { hint } },
  });
  expect((await get("a failed delivery")).attempts).toMatchObject([
    {
      hint,
      response_excerpt: `Moved to ${masked}`,
      response_headers: { location: "/***", link: `<${masked}>; rel="self"` },
    },
  ]);
  expect((await get("a shadowed delivery")).shadow.headers).toEqual({
    "X-Service-Event": "deploy.failed",
    "X-Service-Signature": "***",
    "X-Service-Signature-Previous": "***",
    "X-Hub-Signature": "***",
    "webhook-id": expect.any(String),
    "webhook-timestamp": expect.any(String),
    "webhook-signature": "***",
  });
});

test("a masked URL is rejected where a URL is set, so that nobody writes it back", async () => {
  const admin = identities["an admin's JWT"] as Api;
  const body = { url: masked, events: ["deploy.failed"] };
  const message = "url is masked: pass the whole URL, which admins with webhooks:write can read";
  for (const response of [
    await admin.patch(webhookPath, { url: masked }),
    await admin.post(places["the webhooks"]?.path ?? "", body),
  ]) {
    expect(response).toMatchObject({ status: 400, body: { error: { details: [{ path: "url" }] } } });
    expect(response.body.error.message).toContain(message);
  }
});

test("a key that rotates secrets and reads no URL gets the new secret with a masked URL", async () => {
  const api = identities["an admin's key with webhook-secrets:write"] as Api;
  const { data } = (await api.post(`${webhookPath}/rotate-secret`, {})).body;
  expect(data).toMatchObject({ url: masked, secret: expect.stringMatching(/^whsec_[0-9a-f]{64}$/) });
});
