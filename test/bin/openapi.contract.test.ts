import { randomBytes, randomUUID } from "node:crypto";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import fc from "fast-check";
import { mintToken } from "../../bin/local/mint-token.ts";
import { MAX_KEYS_PER_USER } from "../../functions/api-keys/api-key.ts";
import { MAX_ATTEMPTS } from "../../functions/deliveries/delivery.ts";
import { eventNames } from "../../functions/deployments/deployment-event.ts";
import { sampleEvent } from "../../functions/deployments/sample-event.ts";
import {
  type GatewayResponseRow,
  gatewayResponses,
  gatewayResponseTemplate,
} from "../../functions/manifest/gateway-responses.ts";
import { securityHeaders } from "../../functions/manifest/response-headers.ts";
import { tables } from "../../functions/manifest/tables.ts";
import { dynamo, sqs } from "../../functions/platform/aws.ts";
import { queueUrl, tableName } from "../../functions/platform/env.ts";
import { type ErrorCode, statusByCode } from "../../functions/platform/errors.ts";
import { MAX_WEBHOOKS_PER_PROJECT } from "../../functions/webhooks/webhook.ts";
import {
  document,
  type Json,
  type Operation,
  operations,
  undocumented,
  wrongBy,
  wrongByHeader,
} from "../support/api-contract.ts";
import { eventually } from "../support/eventually.ts";
import { invalid, valid } from "../support/json-arbitrary.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { type Response, send, startTestService, type TestService } from "../support/service.ts";

/*
 * The running service, asked whatever docs/openapi.json lets one ask and much that it does not: every answer has to be one
 * that is documented there for that operation, with no field and no header more; and every answer documented there is seen.
 */

const RUNS = 40;
/** Always the same requests. Another seed asks others: SEED=7 npm run --silent jest -- test/openapi.contract.test.ts */
const seed = Number(process.env.SEED ?? 20_261_121);

let service: TestService;
let receiver: Receiver;
let world: World;
beforeAll(async () => {
  [service, receiver] = [await startTestService({ deliver: true }), await startReceiver()];
  world = await newWorld();
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

/** Who asks, by what their credential is. */
const callers = [
  "session",
  "key",
  "viewer",
  "viewerKey",
  "stranger",
  "nobody",
  "expired",
  "forged",
  "deletedKey",
  "basic",
] as const;
type Caller = (typeof callers)[number];

const refusedCallers: Partial<Record<Caller, ErrorCode>> = {
  nobody: "unauthorized",
  basic: "unauthorized",
  expired: "token_expired",
  forged: "invalid_token",
  deletedKey: "invalid_api_key",
};

interface World {
  authorizations: Record<Caller, string | undefined>;
  userId: string;
  token: string;
  /** What each name in a path may stand for. */
  ids: { project_id: string; webhook_id: string; delivery_id: string };
  /** A webhook that changes: nothing is ever sent to it. */
  spareId: string;
}

async function newWorld(): Promise<World> {
  const [admin, viewer, stranger] = [service.user(), service.user(), service.user()];
  const project_id = await service.project(admin.userId);
  await service.project(viewer.userId, { projectId: project_id, role: "viewer" });
  const keyOf = async ({ api }: typeof admin) => (await api.post("/v1/api-keys", { name: "contract" })).body.data;
  const [adminKey, viewerKey, deleted] = [await keyOf(admin), await keyOf(viewer), await keyOf(admin)];
  await admin.api.delete(`/v1/api-keys/${deleted.id}`);
  const path = `/v1/projects/${project_id}/webhooks`;
  const create = async (url: string) =>
    (await admin.api.post(path, { url, events: ["deploy.started"] })).body.data.id as string;
  const [webhook_id, spareId] = [await create(receiver.url), await create("https://hooks.example.com/spare")];
  const delivery = (await admin.api.post(`${path}/${webhook_id}/test`, {})).body.data;
  await receiver.waitFor(1);
  const bearer = (token: string) => `Bearer ${token}`;
  const secret = process.env.JWT_SECRET ?? "";
  return {
    authorizations: {
      session: bearer(admin.token),
      key: bearer(adminKey.key),
      viewer: bearer(viewer.token),
      viewerKey: bearer(viewerKey.key),
      stranger: bearer(stranger.token),
      nobody: undefined,
      basic: "Basic dXNlcjpwYXNzd29yZA==",
      expired: bearer(mintToken(secret, admin.userId, -100)),
      forged: bearer(mintToken(randomBytes(32).toString("hex"), admin.userId)),
      deletedKey: bearer(deleted.key),
    },
    userId: admin.userId,
    token: admin.token,
    ids: { project_id, webhook_id, delivery_id: delivery.id },
    spareId,
  };
}

/** Operations that change a webhook so that it could send elsewhere get the one that never sends. */
const changesWebhook = ["updateWebhook", "rotateWebhookSecret"];

/** The ids that an operation finds something under. What it deletes is made for it. */
async function realIds({ id }: Operation): Promise<Record<string, string>> {
  const { ids, spareId, token } = world;
  const api = service.as(token);
  if (id === "deleteApiKey") return { id: (await api.post("/v1/api-keys", { name: "to go" })).body.data.id };
  if (changesWebhook.includes(id)) return { ...ids, webhook_id: spareId };
  if (id !== "deleteWebhook") return ids;
  const hook = { url: "https://hooks.example.com/to-go", events: ["deploy.failed"] };
  const { body } = await api.post(`/v1/projects/${ids.project_id}/webhooks`, hook);
  return { ...ids, webhook_id: body.data.id };
}

/** Takes away what was made, by the request or for it, so that no limit is reached by the way. */
async function tidyUp({ id }: Operation, caller: Caller, ids: Record<string, string>, answer: Response): Promise<void> {
  const authorization = answer.status === 201 ? world.authorizations[caller] : `Bearer ${world.token}`;
  const made = answer.status === 201 ? answer.body.data.id : ids[id === "deleteApiKey" ? "id" : "webhook_id"];
  const list = { ApiKey: "/v1/api-keys", Webhook: `/v1/projects/${world.ids.project_id}/webhooks` }[id.slice(6)];
  if (!/^(create|delete)/.test(id) || (id.startsWith("create") && answer.status !== 201)) return;
  await send(`${service.baseUrl}${list}/${made}`, {
    method: "DELETE",
    headers: { authorization: authorization ?? "" },
  });
}

interface Request {
  caller: Caller;
  /** Ids in place of those that there are something under. */
  otherIds?: Record<string, string>;
  /** Sent as it is. */
  text?: string | Buffer | undefined;
  contentType?: string | undefined;
  query?: string;
}

/** Statuses and codes that were seen, by operation. */
const seen = new Map<string, Set<string>>();

async function ask(operation: Operation, request: Request): Promise<Response> {
  const real = await realIds(operation);
  const ids = { ...real, ...request.otherIds };
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? "");
  const { text, contentType = "application/json", query = "", caller } = request;
  const authorization = world.authorizations[caller];
  const answer = await send(`${service.baseUrl}${path}${query}`, {
    method: operation.method,
    headers: { ...(authorization && { authorization }), ...(text !== undefined && { "content-type": contentType }) },
    // fetch sends no body with a GET.
    ...(text !== undefined && operation.method !== "GET" && { body: text as string }),
  });
  expectDocumented(operation, answer, { ...request, path });
  await tidyUp(operation, caller, real, answer);
  return answer;
}

function expectDocumented({ id, pointer }: Operation, answer: Response, request: object = {}): void {
  const { status, body } = answer;
  const problems = undocumented(`${pointer}/responses/${status}`, answer);
  // With the request and the answer beside it, a failure explains itself.
  const context = problems.length === 0 ? {} : { request, status, body };
  expect({ id, problems, ...context }).toEqual({ id, problems: [] });
  const codes = seen.get(id) ?? new Set();
  seen.set(id, codes.add(String(body?.error?.code ?? status)));
}

const bodySchema = ({ definition }: Operation): Json => definition.requestBody?.content["application/json"].schema;

const queryOf = (values: Record<string, unknown>) =>
  `?${new URLSearchParams(Object.entries(values).map(([name, value]): [string, string] => [name, String(value)]))}`;

/** The query parameters as one object. */
function querySchema({ definition: { parameters } }: Operation): Json {
  if (!parameters) return undefined;
  const entries = parameters.map(({ name, schema }: Json) => [name, schema]);
  return { type: "object", properties: Object.fromEntries(entries) };
}

const successOf = ({ definition }: Operation): number =>
  Number(Object.keys(definition.responses).find((status) => status.startsWith("2")));

const takesKeys = ({ definition }: Operation) => definition.security === undefined;
const isForAdmins = ({ definition }: Operation) =>
  definition.responses[403] !== undefined && takesKeys({ definition } as Operation);
const ofProject = ({ path }: Operation) => path.includes("{project_id}");

/** What an operation answers a request that is right in itself, to this caller. */
function codeFor(operation: Operation, caller: Caller): string | undefined {
  const refused = refusedCallers[caller];
  if (refused !== undefined) return refused;
  if (caller.endsWith("ey") && !takesKeys(operation)) return "session_required";
  if (caller === "stranger" && operation.path.includes("{")) return "not_found";
  if (caller.startsWith("viewer") && operation.id === "deleteApiKey") return "not_found";
  if (caller.startsWith("viewer") && ofProject(operation) && isForAdmins(operation)) return "forbidden";
  return undefined;
}

const exampleOf = ({ definition }: Operation): string | undefined => {
  const media = definition.requestBody?.content["application/json"];
  return media && JSON.stringify(media.example);
};

describe.each(operations)("$id", (operation) => {
  test.each(callers)("answers the example of the documentation, when %s asks", async (caller) => {
    const { status, body } = await ask(operation, { caller, text: exampleOf(operation) });
    const code = codeFor(operation, caller);
    expect({ status, code: body?.error?.code }).toEqual({
      status: code === undefined ? successOf(operation) : statusByCode[code as ErrorCode],
      code,
    });
  });

  const schema = bodySchema(operation);
  if (schema) {
    test("takes what its schema allows", async () => {
      const requests = fc.asyncProperty(valid(schema), async (body) => {
        const { status, body: answer } = await ask(operation, { caller: "session", text: JSON.stringify(body) });
        expect({ body, status, answer }).toMatchObject({ body, status: successOf(operation) });
      });
      await fc.assert(requests, { seed, numRuns: RUNS });
    });

    test("refuses what its schema does not allow, and says where", async () => {
      const requests = fc.asyncProperty(invalid(schema), async (body) => {
        const { status, body: answer } = await ask(operation, { caller: "session", text: JSON.stringify(body) });
        expect({ body, status, code: answer.error?.code }).toEqual({ body, status: 400, code: "validation_error" });
        expect(answer.error.details.length).toBeGreaterThan(0);
      });
      await fc.assert(requests, { seed, numRuns: RUNS });
    });

    test.each(uglyBodies(schema))("has a documented answer to %s", async (_title, text, contentType, expected) => {
      const { status, body } = await ask(operation, { caller: "session", text, contentType });
      if (expected)
        expect({ status, code: body?.error?.code }).toEqual({ status: statusByCode[expected], code: expected });
    });
  } else {
    test("does not look at a body", async () => {
      for (const text of ["{", "x".repeat(100_000)]) {
        expect((await ask(operation, { caller: "session", text })).status).toBe(successOf(operation));
      }
    });
  }

  const query = querySchema(operation);
  if (query) {
    test("takes the query parameters that are documented, and refuses others", async () => {
      const allowed = fc.asyncProperty(valid(query), async (values) => {
        expect((await ask(operation, { caller: "session", query: queryOf(values) })).status).toBe(200);
      });
      await fc.assert(allowed, { seed, numRuns: RUNS });
      const refused = fc.asyncProperty(invalid(query), async (values) => {
        fc.pre(typeof values === "object" && values !== null && !Array.isArray(values));
        // What is a number by its type is one as text too.
        fc.pre(Object.values(values).every((value) => typeof value === "string" && !/^\d+$/.test(value)));
        const isRight = ajvAllows(operation, values);
        const { status } = await ask(operation, { caller: "session", query: queryOf(values) });
        expect({ values, status }).toEqual({ values, status: isRight ? 200 : 400 });
      });
      await fc.assert(refused, { seed, numRuns: RUNS });
    });

    test.each([
      "?limit=0",
      "?limit=101",
      "?limit=007",
      "?limit=1e1",
      "?limit= 5",
      "?limit=",
      "?status=",
      "?status=gone",
      "?cursor=1",
      "?cursor=%00",
      "?limits=5",
      "?__proto__=1",
    ])("refuses the query %s", async (query) => {
      expect((await ask(operation, { caller: "session", query })).status).toBe(400);
    });

    test.each(["?", "?limit=5&limit=6", "?limit=%35", "?cursor=FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"])(
      "has a documented answer to the query %s",
      async (query) => {
        await ask(operation, { caller: "session", query });
      },
    );
  } else {
    test("does not look at query parameters", async () => {
      const text = exampleOf(operation);
      const { status } = await ask(operation, { caller: "session", query: "?limit=x&a[]=1&%ff=%", text });
      expect(status).toBe(successOf(operation));
    });
  }

  if (operation.path.includes("{")) {
    test("finds nothing under ids that name nothing", async () => {
      const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
      const ids = fc.oneof(
        fc.uuid(),
        fc.stringMatching(/^[!-~]{1,40}$/).map(encodeURIComponent),
        fc.constantFrom("%00", "%2e%2e", "%ff", "%"),
      );
      const requests = fc.asyncProperty(fc.constantFrom(...names), ids, async (name, id) => {
        // The URL parser takes these for steps in the path.
        fc.pre(!/^(\.|%2e){1,2}$/i.test(id));
        const text = exampleOf(operation);
        const { status } = await ask(operation, { caller: "session", otherIds: { [name]: id }, text });
        expect({ name, id, status }).toEqual({ name, id, status: 404 });
      });
      await fc.assert(requests, { seed, numRuns: RUNS });
    });
  }

  test("has a documented answer to anybody who asks for anything", async () => {
    const text = fc.oneof(
      fc.constant(undefined),
      fc.json(),
      fc.string(),
      ...(schema
        ? [valid(schema).map((body) => JSON.stringify(body)), invalid(schema).map((body) => JSON.stringify(body))]
        : []),
    );
    const requests = fc.asyncProperty(
      fc.record({
        caller: fc.constantFrom(...callers),
        otherIds: fc.oneof(
          fc.constant({}),
          fc.dictionary(fc.constantFrom("id", "project_id", "webhook_id", "delivery_id"), fc.uuid()),
        ),
        text,
        contentType: fc.constantFrom(
          "application/json",
          "application/json; charset=utf-8",
          "text/plain",
          "application/jsonp",
        ),
        query: fc.oneof(
          fc.constant(""),
          fc.webQueryParameters().map((given) => `?${given}`),
        ),
      }),
      async (request) => {
        await ask(operation, request);
      },
    );
    await fc.assert(requests, { seed, numRuns: RUNS });
  });
});

function ajvAllows({ definition }: Operation, values: Record<string, string>): boolean {
  return Object.entries(values).every(([name, value]) => {
    const schema = definition.parameters.find((each: Json) => each.name === name)?.schema;
    return schema !== undefined && wrongByHeader(schema, value).length === 0;
  });
}

type Ugly = [title: string, text: string | Buffer, contentType: string | undefined, expected: ErrorCode | undefined];

function uglyBodies({ properties, required = [] }: Json): Ugly[] {
  const [field = ""] = Object.keys(properties);
  const json = "application/json";
  return [
    ["half a body", '{"', json, "invalid_json"],
    ["a comma too much", `{"${field}":"x",}`, json, "invalid_json"],
    ["a byte order mark", `\ufeff{}`, json, undefined],
    ["NaN", "NaN", json, "invalid_json"],
    ["bytes that are no UTF-8", Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), json, "invalid_json"],
    ["deeply nested arrays", "[".repeat(10_000) + "]".repeat(10_000), json, "validation_error"],
    ["a deeply nested field", `{"${field}":${"[".repeat(10_000)}${"]".repeat(10_000)}}`, json, "validation_error"],
    ["__proto__ as a field", '{"__proto__":{"admin":true}}', json, "validation_error"],
    ["a field twice", `{"${field}":1,"${field}":[2]}`, json, "validation_error"],
    ["a number beyond all bounds", `{"${field}":1e999}`, json, "validation_error"],
    ["a text with half a character", `{"${field}":"\\ud800"}`, json, "validation_error"],
    ["a text with a zero in it", `{"${field}":"a\\u0000b"}`, json, "validation_error"],
    ["a body over 64 KB", JSON.stringify({ [field]: "x".repeat(70_000) }), json, "payload_too_large"],
    ["a body over 10 MB", "x".repeat(10 * 1024 * 1024 + 1), json, "payload_too_large"],
    ["a form", `${field}=x`, "application/x-www-form-urlencoded", "unsupported_media_type"],
    ["JSON that says it is text", "{}", "text/plain", "unsupported_media_type"],
    ["JSON of another kind", "{}", "application/merge-patch+json", "unsupported_media_type"],
    ["a content type of noise", "{}", ";;;", "unsupported_media_type"],
    ["no body", "", json, required.length > 0 ? "validation_error" : undefined],
  ];
}

const ugly = {
  names: ["", " ", "\t", "a\nb", "\u202eevil", "\u200b", "x".repeat(101), "🚀".repeat(101)],
  urls: [
    "http://hooks.example.com/",
    "https://",
    "https:///hooks",
    "//hooks.example.com",
    "https://user:secret@hooks.example.com/",
    "https://printer.local/",
    "https://10.0.0.1/",
    "https://[::ffff:10.0.0.1]/",
    "https://0xa.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://hooks.example.com/ a",
    "https://hooks.example.com/ä",
    `https://hooks.example.com/${"x".repeat(2048)}`,
    "javascript:alert(1)",
    "file:///etc/passwd",
  ],
  /** Odd, but addresses. They are shown as they were given. */
  oddUrls: [
    "https://hooks.example.com/{a}|b^c`",
    "https://hooks.example.com/%",
    "HTTPS://HOOKS.example.com:443/",
    "https://8.8.8.8/?a=b#c",
  ],
  times: ["", "now", "2026-02-30T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T25:00:00Z"],
};

const operation = (id: string): Operation => {
  const found = operations.find((each) => each.id === id);
  if (!found) throw new Error(`there is no operation ${id}`);
  return found;
};

test.each(
  [
    ...ugly.names.map((name) => ["createApiKey", { name }] as const),
    ...ugly.urls.map((url) => ["createWebhook", { url, events: ["deploy.failed"] }] as const),
    ...ugly.urls.map((url) => ["updateWebhook", { url }] as const),
    ...ugly.times.map((since) => ["recoverDeliveries", { since }] as const),
  ].map(([id, body]) => [id, JSON.stringify(body).slice(0, 80), body] as const),
)("%s refuses %s", async (id, _shown, body) => {
  const answer = await ask(operation(id), { caller: "session", text: JSON.stringify(body) });
  expect(answer.body.error?.code).toBe("validation_error");
});

test.each(ugly.oddUrls)("createWebhook shows %s as it was given", async (url) => {
  const text = JSON.stringify({ url, events: ["deploy.failed", "deploy.failed"] });
  const { body } = await ask(operation("createWebhook"), { caller: "key", text });
  expect(body.data).toMatchObject({ url, events: ["deploy.failed"] });
});

describe("limits and states", () => {
  test("a user's last key and a project's last webhook are followed by a documented refusal", async () => {
    const { api, userId, token } = service.user();
    const project_id = await service.project(userId);
    const fill = async (path: string, body: object, count: number) => {
      const made = await Promise.all(Array.from({ length: count }, () => api.post(path, body)));
      expect(made.every(({ status }) => status === 201)).toBe(true);
      return api.post(path, body);
    };
    const hook = { url: "https://hooks.example.com/", events: ["deploy.failed"] };
    const webhook = await fill(`/v1/projects/${project_id}/webhooks`, hook, MAX_WEBHOOKS_PER_PROJECT);
    expectDocumented(operation("createWebhook"), webhook);
    const key = await fill("/v1/api-keys", { name: "one of many" }, MAX_KEYS_PER_USER);
    expectDocumented(operation("createApiKey"), key);
    expect([webhook.status, key.status]).toEqual([409, 409]);
    const listed = await service.as(token).get("/v1/api-keys");
    expectDocumented(operation("listApiKeys"), listed);
    expect(listed.body.data).toHaveLength(MAX_KEYS_PER_USER);
  });

  test("a delivery that was attempted too often is not sent again", async () => {
    const { webhook_id, delivery_id: id } = world.ids;
    await dynamo().send(
      new UpdateCommand({
        TableName: tableName("deliveries"),
        Key: { webhook_id, id },
        UpdateExpression: "SET attempt_count = :max",
        ExpressionAttributeValues: { ":max": MAX_ATTEMPTS },
      }),
    );
    const { body } = await ask(operation("redeliver"), { caller: "session" });
    expect(body.error.code).toBe("conflict");
  });

  test("a disabled webhook is shown as such, and recovers nothing", async () => {
    const { ids, spareId } = world;
    const path = `/v1/projects/${ids.project_id}/webhooks/${spareId}`;
    const api = service.as(world.token);
    expectDocumented(operation("updateWebhook"), await api.patch(path, { enabled: false }));
    expectDocumented(operation("getWebhook"), await api.get(path));
    expectDocumented(operation("listWebhooks"), await api.get(`/v1/projects/${ids.project_id}/webhooks`));
    const refused = await api.post(`${path}/recover`, { since: new Date().toISOString() });
    expectDocumented(operation("recoverDeliveries"), refused);
    expect(refused.status).toBe(409);
  });

  test("every kind of failed attempt is shown as documented", async () => {
    const path = `/v1/projects/${world.ids.project_id}/webhooks`;
    const api = service.as(world.token);
    const answers = [500, 301, 204, 410];
    for (const status of answers) {
      receiver.answerWith((_, response) =>
        response.writeHead(status, { location: "https://example.com/" }).end("Grüße"),
      );
      const { data } = (await api.post(path, { url: receiver.url, events: ["deploy.failed"] })).body;
      const sent = await api.post(`${path}/${data.id}/test`, {});
      await eventually(async () => {
        const shown = await api.get(`${path}/${data.id}/deliveries/${sent.body.data.id}`);
        expectDocumented(operation("getDelivery"), shown);
        expect(shown.body.data.attempts.map((attempt: Json) => attempt.status_code)).toEqual([status]);
      });
      expectDocumented(operation("listWebhooks"), await api.get(path));
      expect((await api.delete(`${path}/${data.id}`)).status).toBe(204);
    }
    receiver.answerWith(200);
  });

  test("pages lead to the next one, as documented", async () => {
    const { project_id, webhook_id } = world.ids;
    let path: string | undefined = `/v1/projects/${project_id}/webhooks/${webhook_id}/deliveries?limit=1`;
    await ask(operation("sendTestDelivery"), { caller: "session" });
    const ids: string[] = [];
    while (path !== undefined && ids.length < 3) {
      const page: Response = await service.as(world.token).get(path);
      expectDocumented(operation("listDeliveries"), page);
      ids.push(...page.body.data.map(({ id }: Json) => id));
      path = /<([^>]+)>/.exec(page.headers.get("link") ?? "")?.[1]?.replace(service.baseUrl, "");
    }
    expect(new Set(ids).size).toBe(3);
  });
});

describe("where there is no operation", () => {
  test.each(Object.keys(document.paths))("other methods of %s are refused as documented", async (path) => {
    const taken = operations.filter((each) => each.path === path).map(({ method }) => method);
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter((name) => !taken.includes(name))) {
      const answer = await send(`${service.baseUrl}${path.replaceAll(/\{\w+\}/g, randomUUID())}`, { method });
      const problems = undocumented(`${pointerOf(path)}/x-other-methods`, answer);
      expect({ method, status: answer.status, problems }).toEqual({ method, status: 405, problems: [] });
      expect(answer.headers.get("allow")?.split(", ").sort()).toEqual(taken.sort());
    }
  });

  test.each(["/", "/v1", "/v1/api-keys/", "/v2/projects"])("%s is not found, as documented", async (path) => {
    const answer = await send(`${service.baseUrl}${path}`);
    expect(answer.status).toBe(404);
    expect(undocumented("/components/responses/NotFound", answer)).toEqual([]);
  });
});

const pointerOf = (path: string) => `/paths/${path.replaceAll("/", "~1")}`;

describe("what receivers get", () => {
  test.each(eventNames)("%s is as documented, during a rotation too", async (name) => {
    const { api, userId } = service.user();
    const projectId = await service.project(userId);
    const path = `/v1/projects/${projectId}/webhooks`;
    const { data } = (await api.post(path, { url: receiver.url, events: [name] })).body;
    for (const isRotated of [false, true]) {
      if (isRotated) expect((await api.post(`${path}/${data.id}/rotate-secret`, {})).status).toBe(200);
      const count = receiver.received.length;
      const event = sampleEvent(name, { projectId, deploymentId: randomUUID(), now: new Date() });
      const MessageBody = JSON.stringify(event);
      await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody }));
      const { body, headers } = (await receiver.waitFor(count + 1))[count] ?? {
        body: "",
        headers: {} as Record<string, string>,
      };
      const pointer = `/webhooks/${name}/post`;
      const problems = wrongBy(`${pointer}/requestBody/content/application~1json/schema`, JSON.parse(body));
      const { parameters } = document.webhooks[name].post;
      for (const { name: header, required, schema } of parameters) {
        const value = headers[header.toLowerCase()];
        if (value === undefined && required) problems.push(`${header} is missing`);
        if (value !== undefined) problems.push(...wrongByHeader(schema, String(value)));
      }
      const known = parameters.map((each: Json) => each.name.toLowerCase());
      const ours = Object.keys(headers).filter((header) => /^(x-|webhook-)/.test(header));
      expect({ problems, unknown: ours.filter((header) => !known.includes(header)) }).toEqual({
        problems: [],
        unknown: [],
      });
      expect("x-service-signature-previous" in headers).toBe(isRotated);
    }
  });
});

describe("when the service itself fails", () => {
  const throttled = ["THROTTLED", "QUOTA_EXCEEDED", "WAF_FILTERED"] as const;
  test.each(throttled)("%s is answered as documented, by every operation", async (type) => {
    const row: GatewayResponseRow = gatewayResponses[type];
    const requestId = randomUUID();
    const body = JSON.parse(gatewayResponseTemplate(row).replace("$context.requestId", requestId));
    const headers = {
      ...securityHeaders,
      ...row.headers,
      "content-type": "application/json",
      "x-request-id": requestId,
    };
    for (const each of operations) {
      expectDocumented(each, { status: row.status ?? 0, headers: new Headers(headers), body });
    }
  });

  test("no operation answers with more than what is documented when its settings are gone", async () => {
    // Nobody is let in with a key, and a session finds no table.
    const names = Object.values(tables).map(({ env }) => env);
    const kept = names.map((name) => [name, process.env[name]] as const);
    const ids = new Map<string, Record<string, string>>();
    for (const each of operations) ids.set(each.id, await realIds(each));
    for (const name of names) delete process.env[name];
    try {
      for (const each of operations) {
        const path = each.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids.get(each.id)?.[name] ?? "");
        for (const [caller, code] of [
          ["session", "internal_error"],
          ["key", "service_unavailable"],
        ] as const) {
          const text = exampleOf(each);
          const answer = await send(`${service.baseUrl}${path}`, {
            method: each.method,
            headers: {
              authorization: world.authorizations[caller] ?? "",
              ...(text !== undefined && { "content-type": "application/json" }),
            },
            ...(text !== undefined && { body: text }),
          });
          expectDocumented(each, answer);
          expect(answer.body.error.code).toBe(code);
        }
      }
    } finally {
      for (const [name, value] of kept) process.env[name] = value ?? "";
    }
  });
});

test.each(operations)("every answer that is documented for $id has been seen", ({ id, definition }) => {
  const documented = Object.entries<Json>(definition.responses).flatMap(([status, { $ref }]) => {
    if (!$ref) return [status];
    const { examples } = document.components.responses[$ref.split("/").at(-1)].content["application/json"];
    return Object.keys(examples);
  });
  expect([...(seen.get(id) ?? [])].sort()).toEqual(documented.sort());
});
