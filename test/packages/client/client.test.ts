import { randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { parseJsonExactly } from "../../../functions/foundation/events/deployment-event.ts";
import { sqs } from "../../../functions/foundation/platform/aws.ts";
import { queueUrl } from "../../../functions/foundation/platform/env.ts";
import { inParallel } from "../../../functions/foundation/platform/parallel.ts";
import { type Client, type ClientOptions, createClient, type WebhookRef } from "../../../packages/client/src/client.ts";
import { ApiError, NetworkError } from "../../../packages/client/src/errors.ts";
import { operations } from "../../support/api-contract.ts";
import { eventOf, publish } from "../../support/deliveries.ts";
import { eventually } from "../../support/eventually.ts";
import { useReceiver } from "../../support/receiver.ts";
import { useService } from "../../support/service.ts";

async function allResults<Result>(results: AsyncIterable<Result>): Promise<Result[]> {
  const all: Result[] = [];
  for await (const result of results) all.push(result);
  return all;
}

describe("with the service", () => {
  const service = useService({ deliver: true });
  const receiver = useReceiver();
  let client: Client;
  let projectId: string;
  let token: string;
  let userId: string;
  beforeAll(async () => {
    const user = service.user();
    ({ token, userId } = user);
    projectId = await service.project(user.userId);
    client = createClient({ baseUrl: `${service.baseUrl}/`, token });
  });

  test("each method that creates something sends the idempotency key, and a repeat creates nothing", async () => {
    const create = { idempotencyKey: "run-1" };
    const role = { name: "deploy", role: "viewer" } as const;
    const account = await client.createServiceAccount(projectId, role, create);
    expect(await client.createServiceAccount(projectId, role, create)).toEqual(account);
    const trust = { issuer: "github", repository_id: "1296269", permissions: ["webhooks:read" as const] };
    const trusted = await client.createTrustedWorkflow(projectId, trust, { idempotencyKey: "run-2" });
    expect(await client.createTrustedWorkflow(projectId, trust, { idempotencyKey: "run-2" })).toEqual(trusted);
    const ref = { projectId, serviceAccountId: account.id };
    const hook = { url: "https://hooks.example.com/once", events: ["deploy.failed" as const] };
    const withSecret: [key: string, create: (key: string) => Promise<{ id: string }>][] = [
      ["run-3", (idempotencyKey) => client.createApiKey({ name: "once" }, { idempotencyKey })],
      ["run-4", (idempotencyKey) => client.createServiceAccountApiKey(ref, { name: "once" }, { idempotencyKey })],
      ["run-5", (idempotencyKey) => client.createWebhook(projectId, hook, { idempotencyKey })],
    ];
    for (const [key, createOnce] of withSecret) {
      const { id } = await createOnce(key);
      const details = [{ path: "id", message: id }];
      await expect(createOnce(key)).rejects.toMatchObject({ code: "already_created", details });
    }
    await client.deleteApiKey((await client.listApiKeys())[0]?.id ?? "");
    await client.deleteWebhook({ projectId, webhookId: (await client.listWebhooks(projectId))[0]?.id ?? "" });
    await client.deleteTrustedWorkflow(projectId, trusted.id);
    await client.deleteServiceAccount(ref);
  });

  async function newPlace(): Promise<WebhookRef> {
    const { id } = await client.createWebhook(projectId, { url: receiver.url, events: ["deploy.started"] });
    return { projectId, webhookId: id };
  }

  test("has a method for each operation, and iterations over lists", () => {
    const iterations = [
      ...["eachDelivery", "eachProjectDelivery", "eachRecovery", "eachEvent", "eachAuditEvent", "eachProject"],
      ...["eachProjectAuditEvent", "followEvents"],
    ];
    const ids = operations.map(({ id }) => id);
    expect(Object.keys(client).sort()).toEqual([...ids, ...iterations].sort());
  });

  test("listProjects and eachProject request all pages", async () => {
    const { userId, token } = service.user();
    const ids = await inParallel([...Array(101).keys()], 20, () => service.project(userId));
    const urls: string[] = [];
    const ofUser = createClient({ baseUrl: service.baseUrl, token, onResponse: ({ url }) => urls.push(url) });
    const projects = await ofUser.listProjects();
    expect(urls).toHaveLength(2);
    expect(projects.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(projects).toEqual(projects.toSorted((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at)));
    expect(await allResults(ofUser.eachProject({ limit: 50 }))).toHaveLength(101);
    expect(urls).toHaveLength(5);
  });

  test("eachDelivery requests all pages, and each only when it is needed", async () => {
    const place = await newPlace();
    const sent = new Set<string>();
    for (let count = 0; count < 5; count++) sent.add((await client.sendTestDelivery(place)).id);
    const urls: string[] = [];
    const watched = createClient({ baseUrl: service.baseUrl, token, onResponse: ({ url }) => urls.push(url) });
    const ids: string[] = [];
    for await (const { id } of watched.eachDelivery(place, { limit: 2 })) ids.push(id);
    expect(ids).toEqual([...sent].reverse());
    expect(urls).toHaveLength(3);
    expect((await client.listDeliveries(place, { limit: 5 })).nextCursor).toBeUndefined();
    const until = new Date(Date.now() + 60_000).toISOString();
    const first = await client.listProjectDeliveries(projectId, { limit: 1, until });
    expect(first.items).toMatchObject([{ id: ids[0] }]);
    const { nextCursor: cursor = "" } = first;
    expect((await client.listProjectDeliveries(projectId, { limit: 1, until, cursor })).items).toMatchObject([
      { id: ids[1] },
    ]);
    for await (const { id } of watched.eachDelivery(place, { limit: 2 })) {
      expect(id).toBe(ids[0]);
      break;
    }
    expect(urls).toHaveLength(4);
  });

  test("eachEvent requests all pages, in both orders", async () => {
    const { projectId: project, deployments } = await newFeed(5);
    const read = (query: object) => allResults(client.eachEvent(project, { limit: 2, ...query }));
    const idsIn = async (query: object) => (await read(query)).map(({ deployment_id }) => deployment_id);
    expect(await idsIn({})).toEqual(deployments.toReversed());
    expect(await idsIn({ order: "oldest" })).toEqual(deployments);
    expect(await idsIn({ deployment_id: deployments[1] })).toEqual([deployments[1]]);
  });

  test("followEvents yields what is new from now on, continues at a cursor, and ends with the signal", async () => {
    const { projectId: project, publishOne } = await newFeed(3);
    const stop = new AbortController();
    const following = createClient({ baseUrl: service.baseUrl, token, signal: stop.signal });
    const start = (await client.listEvents(project)).followCursor;
    const expected = [await publishOne(), await publishOne()];
    const found: string[] = [];
    const read = async (after: string | undefined, count: number): Promise<string | undefined> => {
      for await (const { items, cursor } of following.followEvents(project, { limit: 1, ...(after && { after }) })) {
        found.push(...items.map(({ deployment_id }) => deployment_id));
        if (found.length >= count) return cursor;
      }
      return undefined;
    };
    const cursor = await read(start, 1);
    expect(await read(cursor, 2)).not.toBe(cursor);
    expect(found).toEqual(expected);
    const ended = read(undefined, 99);
    stop.abort(new Error("enough"));
    await expect(ended).rejects.toThrow("enough");
  });

  /** Creates a project with events, oldest first. */
  async function newFeed(count: number) {
    const project = await service.project(userId);
    const publishOne = async (): Promise<string> => {
      const event = eventOf(project);
      await publish(event);
      const deployment_id = String(event.deployment_id);
      await eventually(async () => expect((await client.listEvents(project, { deployment_id })).items).toHaveLength(1));
      return deployment_id;
    };
    const deployments: string[] = [];
    for (let index = 0; index < count; index++) deployments.push(await publishOne());
    return { projectId: project, deployments, publishOne };
  }

  test("throws an ApiError with the code, request id and details of the response", async () => {
    const rejected = client.createWebhook(projectId, { url: "http://example.com", events: [] });
    const error: ApiError = await rejected.catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      status: 400,
      code: "validation_error",
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      details: [
        { path: "url", message: expect.stringContaining("must start with https://") },
        { path: "events", message: "must name at least one event" },
      ],
      retryAfterSeconds: undefined,
    });
    expect(error.message).toContain("must start with https://");
    const anyone = createClient({ baseUrl: service.baseUrl });
    await expect(anyone.listProjects()).rejects.toMatchObject({ code: "unauthorized" });
  });

  test("escapes ids, so that they cannot change the path", async () => {
    const urls: string[] = [];
    const watched = createClient({ baseUrl: service.baseUrl, token, onResponse: ({ url }) => urls.push(url) });
    await expect(watched.deleteApiKey("../projects?x=#y")).rejects.toMatchObject({ code: "not_found" });
    expect(urls).toEqual([`${service.baseUrl}/v1/api-keys/..%2Fprojects%3Fx%3D%23y`]);
  });

  test("parseJson can keep the digits of large numbers in a payload", async () => {
    const { webhookId } = await newPlace();
    const event = `{"event":"deploy.started","project_id":"${projectId}","deployment_id":"${randomUUID()}","timestamp":"2026-11-21T00:00:00Z","data":{"build":9007199254740993}}`;
    await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody: event }));
    const exact = createClient({ baseUrl: service.baseUrl, token, parseJson: parseJsonExactly });
    await eventually(async () => {
      const { items } = await exact.listDeliveries({ projectId, webhookId });
      expect(items).toHaveLength(1);
      const { payload } = await exact.getDelivery({ projectId, webhookId }, items[0]?.id ?? "");
      expect(JSON.stringify(payload)).toContain("9007199254740993");
    });
  });
});

describe("with a stub service", () => {
  type Step = [status: number, headers?: Record<string, string>, body?: string];
  interface ReceivedRequest {
    method: string | undefined;
    url: string | undefined;
    body: string;
  }
  const servers: http.Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** Starts a service that returns these responses in turn, and creates a client for it. */
  async function startStub(steps: Step[], options: Partial<ClientOptions> = {}) {
    const requests: ReceivedRequest[] = [];
    const server = http.createServer(async (request, response) => {
      const { method, url } = request;
      requests.push({ method, url, body: await text(request) });
      const [status, more = {}, body = ""] = steps[requests.length - 1] ?? [500];
      response.writeHead(status, more).end(body);
    });
    servers.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { requests, baseUrl, client: createClient({ baseUrl, token: "svc_1", ...options }) };
  }

  const errorBody = (code: string) => JSON.stringify({ error: { code, message: "No.", request_id: "1" } });
  const busy: Step = [503, { "Retry-After": "1" }, errorBody("service_unavailable")];
  const limited: Step = [429, { "Retry-After": "1" }, errorBody("rate_limited")];
  const projects: Step = [200, {}, '{"data":[]}'];
  const place = { projectId: "p", webhookId: "w" };

  test("retries a POST after a 429, with the same body", async () => {
    const { client, requests } = await startStub([limited, [201, {}, '{"data":{"id":"1"}}']]);
    expect(await client.createApiKey({ name: "ci" })).toEqual({ id: "1" });
    expect(requests.map(({ body }) => body)).toEqual(['{"name":"ci"}', '{"name":"ci"}']);
  });

  test("the methods whose body is optional send an empty one, so that the service decides", async () => {
    const { client, requests } = await startStub(Array(4).fill([202, {}, '{"data":{}}']));
    await client.rollApiKey("k");
    await client.rollServiceAccountApiKey({ projectId: "p", serviceAccountId: "a" }, "k");
    await client.rotateWebhookSecret(place);
    await client.sendTestDelivery(place);
    expect(requests.map(({ body }) => body)).toEqual(["{}", "{}", "{}", "{}"]);
  });

  test("a 404 for a delete that is retried after a 503 counts as deleted; any other 404 throws", async () => {
    const notFound: Step = [404, {}, errorBody("not_found")];
    const { client } = await startStub([busy, limited, notFound, notFound]);
    expect(await client.deleteApiKey("1")).toBeUndefined();
    await expect(client.deleteApiKey("1")).rejects.toMatchObject({ code: "not_found" });
    const rateLimited = await startStub([limited, notFound]);
    await expect(rateLimited.client.deleteApiKey("1")).rejects.toMatchObject({ code: "not_found" });
    const read = await startStub([busy, notFound]);
    await expect(read.client.listApiKeys()).rejects.toMatchObject({ code: "not_found" });
  });

  test("an aborted signal ends a wait and a request", async () => {
    const stop = new AbortController();
    const onResponse = () => setTimeout(() => stop.abort(new Error("enough")), 20);
    const { client } = await startStub([limited], { signal: stop.signal, onResponse });
    await expect(client.listProjects()).rejects.toThrow("enough");
    await expect(client.listProjects()).rejects.toThrow("enough");
  });

  test.each<[string, Step]>([
    ["an error page of a proxy", [502, { "content-type": "text/html" }, "<h1>Bad gateway</h1>"]],
    ["a page with status 200", [200, {}, "<h1>Welcome</h1>"]],
    ["JSON of another service", [200, {}, '{"items":[]}']],
    ["JSON that is no object", [200, {}, "null"]],
    ["an error in another format", [400, {}, '{"message":"Forbidden"}']],
  ])("throws a NetworkError without a retry for %s", async (_title, step) => {
    const { client, requests } = await startStub([step]);
    await expect(client.listProjects()).rejects.toBeInstanceOf(NetworkError);
    expect(requests).toHaveLength(1);
  });

  test.each([301, 302, 303, 307, 308])("does not follow a %i redirect, to another host or the same", async (status) => {
    const target = await startStub([projects, projects, projects, projects]);
    const { client, requests } = await startStub([
      [status, { location: `${target.baseUrl}/v1/projects` }, '{"data":[]}'],
      [status, { location: "/v1/elsewhere" }, errorBody("forbidden")],
      [status, { location: `${target.baseUrl}/v1/api-keys` }],
      projects,
    ]);
    await expect(client.listProjects()).rejects.toBeInstanceOf(NetworkError);
    await expect(client.listProjects()).rejects.toBeInstanceOf(NetworkError);
    await expect(client.createApiKey({ name: "ci" })).rejects.toBeInstanceOf(NetworkError);
    expect(target.requests).toEqual([]);
    expect(requests.map(({ url }) => url)).toEqual(["/v1/projects", "/v1/projects", "/v1/api-keys"]);
  });

  test("names the unreachable service and the cause", async () => {
    const { client, baseUrl } = await startStub([]);
    const [server] = servers;
    await new Promise((resolve) => server?.close(resolve));
    await expect(client.listProjects()).rejects.toThrow(`Could not reach ${baseUrl} (ECONNREFUSED).`);
  });

  test.each<[string, Partial<ClientOptions>]>([
    ["without a signal", {}],
    ["with a signal that is not aborted", { signal: new AbortController().signal }],
  ])("throws a NetworkError after timeoutSeconds without a complete response, %s", async (_title, options) => {
    const server = http.createServer((_request, response) => void response.write("{")).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = createClient({ baseUrl, token: "svc_1", timeoutSeconds: 0.1, ...options });
    await expect(client.listProjects()).rejects.toThrow(`No complete response from ${baseUrl} within 0.1 seconds.`);
  });

  describe("eachRecovery", () => {
    const since = "2026-11-20T00:00:00Z";
    const result = (count: number, next_cursor: string | null): Step => [
      202,
      {},
      JSON.stringify({ data: { count, complete: next_cursor === null, next_cursor } }),
    ];
    const bodiesOf = (requests: ReceivedRequest[]) => requests.map(({ body }) => JSON.parse(body));

    test("makes no further call when the loop ends, and begins at a given cursor", async () => {
      const { client, requests } = await startStub([result(1, "c2"), result(1, "c3")]);
      for await (const { next_cursor } of client.eachRecovery(place, { since, cursor: "c1" })) {
        expect(next_cursor).toBe("c2");
        break;
      }
      expect(bodiesOf(requests)).toEqual([{ since, cursor: "c1" }]);
    });

    test("ends after a result without a cursor, as an earlier version of the service returns it", async () => {
      const { client, requests } = await startStub([[202, {}, '{"data":{"count":1}}']]);
      expect(await allResults(client.eachRecovery(place, { since }))).toEqual([{ count: 1 }]);
      expect(requests).toHaveLength(1);
    });
  });

  test.each<[string, string, (client: Client) => AsyncIterable<unknown>]>([
    ["eachDelivery", "status=held", (api) => api.eachDelivery(place, { status: "held", cursor: "c1" })],
    ["eachProjectDelivery", "limit=7", (api) => api.eachProjectDelivery("p", { limit: 7, cursor: "c1" })],
    ["eachAuditEvent", "limit=7", (api) => api.eachAuditEvent({ limit: 7, cursor: "c1" })],
    ["eachProjectAuditEvent", "limit=7", (api) => api.eachProjectAuditEvent("p", { limit: 7, cursor: "c1" })],
    ["eachProject", "limit=7", (api) => api.eachProject({ limit: 7, cursor: "c1" })],
    ["eachEvent", "deployment_id=d", (api) => api.eachEvent("p", { deployment_id: "d", after: "c1" })],
  ])("%s begins at a given cursor, and continues at that of each page, with %s", async (_, filter, iterate) => {
    const link = '<https://api.test/?cursor=c2>; rel="next"';
    const { client, requests } = await startStub([[200, { link }, '{"data":[]}'], projects]);
    await allResults(iterate(client));
    const asked = requests.map(({ url }) => url?.split("?")[1]?.replace("after", "cursor"));
    expect(asked).toEqual([`${filter}&cursor=c1`, `${filter}&cursor=c2`]);
  });

  test("uses only the cursor of a Link header, not its host", async () => {
    const elsewhere = await startStub([]);
    const link = `<${elsewhere.baseUrl}/v1/steal?cursor=01a1fc46-ece3-72cf-a63b-96f2a7307b8c>; rel="next"`;
    const { client, requests } = await startStub([[200, { link }, '{"data":[]}'], projects]);
    for await (const _ of client.eachDelivery(place)) throw new Error("unexpected delivery");
    expect(requests.map(({ url }) => url)).toEqual([
      "/v1/projects/p/webhooks/w/deliveries",
      "/v1/projects/p/webhooks/w/deliveries?cursor=01a1fc46-ece3-72cf-a63b-96f2a7307b8c",
    ]);
    expect(elsewhere.requests).toEqual([]);
  });
});
