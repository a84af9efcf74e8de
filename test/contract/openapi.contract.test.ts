import { generateKeyPairSync, randomBytes, randomUUID } from "node:crypto";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import fc from "fast-check";
import { mintToken } from "../../bin/command/mint-token.ts";
import { sampleFields } from "../../functions/foundation/events/sample-event.ts";
import { eventNames, webhookEventNames } from "../../functions/foundation/manifest/events.ts";
import { endpointRows } from "../../functions/foundation/manifest/function-rows.ts";
import {
  type GatewayResponseRow,
  gatewayResponses,
  gatewayResponseTemplate,
} from "../../functions/foundation/manifest/gateway-responses.ts";
import { securityHeaders } from "../../functions/foundation/manifest/response-headers.ts";
import { tables } from "../../functions/foundation/manifest/tables.ts";
import { sqs } from "../../functions/foundation/platform/aws.ts";
import { queueUrl } from "../../functions/foundation/platform/env.ts";
import { type ErrorCode, statusByCode } from "../../functions/foundation/platform/errors.ts";
import { MAX_KEYS_PER_USER } from "../../functions/identity/api-keys/api-key.ts";
import { MAX_SERVICE_ACCOUNTS_PER_PROJECT } from "../../functions/identity/service-accounts/service-account.ts";
import { MAX_TRUSTED_WORKFLOWS_PER_PROJECT } from "../../functions/identity/trusted-workflows/trusted-workflow.ts";
import { handler as suspend } from "../../functions/webhooks/webhook/suspend.ts";
import { MAX_WEBHOOKS_PER_PROJECT } from "../../functions/webhooks/webhook/webhook.ts";
import {
  document,
  type Json,
  type Operation,
  operations,
  schemaViolations,
  textViolations,
  undocumented,
} from "../support/api-contract.ts";
import { changeKey, unknownApiKey } from "../support/api-keys.ts";
import { interceptDynamo, restoreAws } from "../support/aws-calls.ts";
import { type CiSystem, startCiSystem } from "../support/ci-system.ts";
import { eventually } from "../support/eventually.ts";
import { boundaries, invalid, valid } from "../support/json-arbitrary.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { givenUsedBudget } from "../support/request-budget.ts";
import { type Response, send, startTestService, type TestService } from "../support/service.ts";
import { EXAMPLE_CODE, givenSignIn } from "../support/sign-ins.ts";
import { changeItem } from "../support/stored-items.ts";

/*
 * Sends valid and invalid requests to the running service and compares each response with docs/openapi.json. Every response
 * must be documented for its operation, without further fields or headers, and every documented response must occur.
 */

/** Random requests per property. More, and others: RUNS=100 SEED=7 npm run --silent jest -- test/contract/openapi.contract */
const RUNS = Number(process.env.RUNS ?? 3);
/** Fixed, so that every run sends the same requests. */
const seed = Number(process.env.SEED ?? 20_261_121);

let service: TestService;
let receiver: Receiver;
let ci: CiSystem;
let fixture: Fixture;
beforeAll(async () => {
  ci = await startCiSystem("ci");
  [service, receiver] = [await startTestService({ deliver: true }), await startReceiver()];
  fixture = await createFixture();
});
/** Room for as many new and rolled keys as RUNS asks for. */
beforeEach(() => givenUsedBudget(`credentials:${fixture.userId}`, -10_000));
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

/** Kinds of callers. */
const callers = [
  "session",
  "key",
  "viewer",
  "noCredential",
  "expired",
  "forged",
  "deletedKey",
  "expiredKey",
  "powerlessKey",
  "untrustedWorkflow",
  "basic",
] as const;
type Caller = (typeof callers)[number];

/** Callers that no operation accepts, with the error code. endpoints.test.ts sends them, and strangers, to every operation. */
const rejectedCallers: Partial<Record<Caller, ErrorCode>> = {
  noCredential: "unauthorized",
  basic: "unauthorized",
  expired: "token_expired",
  forged: "invalid_token",
  deletedKey: "invalid_api_key",
  expiredKey: "api_key_expired",
  untrustedWorkflow: "workflow_not_trusted",
};
const acceptedCallers = callers.filter((caller) => !(caller in rejectedCallers));

const idNames = [
  ...(["project_id", "webhook_id", "delivery_id", "certification_id"] as const),
  ...(["service_account_id", "trusted_workflow_id"] as const),
];

interface Fixture {
  authorizations: Record<Caller, string | undefined>;
  userId: string;
  token: string;
  /** Existing ids for the parameters of paths. */
  ids: Record<(typeof idNames)[number], string>;
  /** A webhook for operations that change it. Nothing is ever sent to it. */
  spareId: string;
}

const contractAccount = { name: "contract", role: "viewer" };
const trust = { issuer: "github", repository_id: "1296269", permissions: ["webhooks:read"] };

async function createFixture(): Promise<Fixture> {
  const [admin, viewer] = [service.user(), service.user()];
  const project_id = await service.project(admin.userId);
  await service.project(viewer.userId, { projectId: project_id, role: "viewer" });
  const keyOf = async ({ api }: typeof admin) => (await api.post("/v1/api-keys", { name: "contract" })).body.data;
  const [adminKey, deleted] = [await keyOf(admin), await keyOf(admin)];
  await admin.api.delete(`/v1/api-keys/${deleted.id}`);
  const [expired, powerless] = [await keyOf(service.user()), await keyOf(service.user())];
  await changeKey(expired.key, { expires_at: new Date(0).toISOString() });
  // No permission that an endpoint needs: a later version may remove one.
  await changeKey(powerless.key, { permissions: ["removed:permission"] });
  const path = `/v1/projects/${project_id}/webhooks`;
  const create = async (url: string) =>
    (await admin.api.post(path, { url, events: webhookEventNames })).body.data.id as string;
  const [webhook_id, spareId] = [await create(receiver.url), await create("https://hooks.example.com/spare")];
  const delivery = (await admin.api.post(`${path}/${webhook_id}/test`, {})).body.data;
  const certification = (await admin.api.post(`${path}/${webhook_id}/certify`)).body.data;
  const account = (await admin.api.post(`/v1/projects/${project_id}/service-accounts`, contractAccount)).body.data;
  await receiver.waitFor(1);
  const trusted = (await admin.api.post(`/v1/projects/${project_id}/trusted-workflows`, trust)).body.data;
  const bearer = (token: string) => `Bearer ${token}`;
  const secret = process.env.JWT_SECRET ?? "";
  return {
    authorizations: {
      session: bearer(admin.token),
      key: bearer(adminKey.key),
      viewer: bearer(viewer.token),
      noCredential: undefined,
      basic: "Basic dXNlcjpwYXNzd29yZA==",
      expired: bearer(mintToken(secret, admin.userId, -100)),
      forged: bearer(mintToken(randomBytes(32).toString("hex"), admin.userId)),
      deletedKey: bearer(deleted.key),
      expiredKey: bearer(expired.key),
      powerlessKey: bearer(powerless.key),
      untrustedWorkflow: bearer(ci.token({ exp: Math.floor(Date.now() / 1000) + 3600 })),
    },
    userId: admin.userId,
    token: admin.token,
    ids: {
      project_id,
      webhook_id,
      delivery_id: delivery.id,
      certification_id: certification.id,
      service_account_id: account.id,
      trusted_workflow_id: trusted.id,
    },
    spareId,
  };
}

/** Operations that could change the receiver: they get the webhook to which nothing is sent. */
const webhookChanges = ["updateWebhook", "rotateWebhookSecret"];

/** Returns ids of existing resources for an operation. For a deletion, it creates the resource. */
async function existingIds(operation: Operation): Promise<Record<string, string>> {
  const { id } = operation;
  const { ids, spareId, token } = fixture;
  const api = service.as(token);
  if (isOfKey(operation)) return { id: (await api.post("/v1/api-keys", { name: "to go" })).body.data.id };
  const accounts = `/v1/projects/${ids.project_id}/service-accounts`;
  if (id === "deleteServiceAccount") {
    return { ...ids, service_account_id: (await api.post(accounts, contractAccount)).body.data.id };
  }
  if (isOfAccountKey(operation)) {
    const keys = `${accounts}/${ids.service_account_id}/api-keys`;
    return { ...ids, id: (await api.post(keys, { name: "to go" })).body.data.id };
  }
  if (webhookChanges.includes(id)) return { ...ids, webhook_id: spareId };
  if (id === "deleteTrustedWorkflow") {
    const { body } = await api.post(`/v1/projects/${ids.project_id}/trusted-workflows`, trust);
    return { ...ids, trusted_workflow_id: body.data.id };
  }
  if (id !== "deleteWebhook") return ids;
  const hook = { url: "https://hooks.example.com/to-go", events: ["deploy.failed"] };
  const { body } = await api.post(`/v1/projects/${ids.project_id}/webhooks`, hook);
  return { ...ids, webhook_id: body.data.id };
}

const isOfAccountKey = ({ path }: Operation): boolean => path.includes("{service_account_id}/api-keys/{id}");
const isOfKey = ({ path }: Operation): boolean => path.startsWith("/v1/api-keys/{id}");

/** Deletes what a request created, or what was created for it, so that later requests stay below the limits. */
async function cleanUp(
  operation: Operation,
  caller: Caller,
  ids: Record<string, string>,
  response: Response,
): Promise<void> {
  const { id } = operation;
  const isKey = isOfKey(operation) || isOfAccountKey(operation);
  const authorization = response.status === 201 ? fixture.authorizations[caller] : `Bearer ${fixture.token}`;
  const kind = isOfKey(operation) ? "ApiKey" : isOfAccountKey(operation) ? "ServiceAccountApiKey" : id.slice(6);
  const { project_id, service_account_id } = fixture.ids;
  const accounts = `/v1/projects/${project_id}/service-accounts`;
  const [list, idName = ""] =
    {
      ApiKey: ["/v1/api-keys", "id"],
      Webhook: [`/v1/projects/${project_id}/webhooks`, "webhook_id"],
      TrustedWorkflow: [`/v1/projects/${project_id}/trusted-workflows`, "trusted_workflow_id"],
      ServiceAccount: [accounts, "service_account_id"],
      ServiceAccountApiKey: [`${accounts}/${service_account_id}/api-keys`, "id"],
    }[kind] ?? [];
  const createdId = response.status === 201 ? response.body.data.id : ids[idName];
  const isCreation = id.startsWith("create");
  if (!(isKey || isCreation || id.startsWith("delete")) || (isCreation && response.status !== 201)) return;
  if (list === undefined) throw new Error(`Add the list of what ${id} creates or deletes to cleanUp in this file.`);
  await send(`${service.baseUrl}${list}/${createdId}`, {
    method: "DELETE",
    headers: { authorization: authorization ?? "" },
  });
}

interface Request {
  caller: Caller;
  /** Ids that replace those of existing resources. */
  otherIds?: Record<string, string>;
  /** Sent unchanged. */
  text?: string | Buffer | undefined;
  contentType?: string | undefined;
  query?: string;
}

/** Statuses and codes of all responses so far, by operation. */
const seen = new Map<string, Set<string>>();

/** Operations with a budget per project. Every request of this test finds it unused. */
const budgeted = ["sendTestDelivery", "certifyWebhook", "redeliver", "recoverDeliveries"];

function pathOf({ path }: Operation, ids: Record<string, string> = fixture.ids): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name];
    if (id === undefined) throw new Error(`Add an id for {${name}} to createFixture in this file.`);
    return id;
  });
}

async function sendTo(operation: Operation, request: Request): Promise<Response> {
  if (budgeted.includes(operation.id)) await givenUsedBudget(fixture.ids.project_id, 0);
  if (operation.path === "/v1/sign-ins") await givenSignIn(EXAMPLE_CODE, fixture.userId);
  const existing = await existingIds(operation);
  const path = pathOf(operation, { ...existing, ...request.otherIds });
  const { text, contentType = "application/json", query = "", caller } = request;
  const authorization = fixture.authorizations[caller];
  const response = await send(`${service.baseUrl}${path}${query}`, {
    method: operation.method,
    headers: { ...(authorization && { authorization }), ...(text !== undefined && { "content-type": contentType }) },
    // fetch sends no body with a GET.
    ...(text !== undefined && operation.method !== "GET" && { body: text as string }),
  });
  expectDocumented(operation, response, { ...request, path });
  await cleanUp(operation, caller, existing, response);
  return response;
}

function expectDocumented({ id, pointer }: Operation, response: Response, request: object = {}): void {
  const { status, body } = response;
  const problems = undocumented(`${pointer}/responses/${status}`, response);
  // A failure shows the request and the response.
  const context = problems.length === 0 ? {} : { request, status, body };
  expect({ id, problems, ...context }).toEqual({ id, problems: [] });
  const codes = seen.get(id) ?? new Set();
  seen.set(id, codes.add(String(body?.error?.code ?? status)));
}

const bodySchema = ({ definition }: Operation): Json => definition.requestBody?.content["application/json"].schema;

const queryOf = (values: Record<string, unknown>) =>
  `?${new URLSearchParams(Object.entries(values).map(([name, value]): [string, string] => [name, String(value)]))}`;

/** The query parameters as one object schema; undefined = the operation has none. */
function querySchema({ definition: { parameters } }: Operation): Json {
  const inQuery = (parameters ?? []).filter((each: Json) => each.in === "query");
  if (inQuery.length === 0) return undefined;
  const entries = inQuery.map(({ name, schema }: Json) => [name, schema]);
  return { type: "object", properties: Object.fromEntries(entries) };
}

/** Fields whose values depend on earlier responses or on the present time. */
const opaqueFields: Record<string, string[]> = {
  recoverDeliveries: ["cursor"],
  createApiKey: ["project_ids", "expires_at"],
  createServiceAccountApiKey: ["project_ids", "expires_at"],
  // The pattern of a ref allows control characters, which the service rejects.
  createTrustedWorkflow: ["ref"],
  // Names that HTTP or a delivery has, and a delay that needs another field.
  createWebhook: ["headers", "settle_seconds"],
  updateWebhook: ["headers", "settle_seconds"],
  // An approval has further rules.
  decideSignIn: ["decision"],
  listEvents: ["after"],
  listDeliveries: ["cursor", "until"],
  listProjectDeliveries: ["cursor", "until"],
};

const listedEvents = {
  type: "array",
  minItems: 1,
  maxItems: 100,
  items: { enum: [...webhookEventNames, "*", "deploy.*"] },
};

/** Fields whose values depend on the settings, or contain what a schema cannot say: a checksum. */
const fixedFields: Record<string, Record<string, Json>> = {
  createTrustedWorkflow: { issuer: { const: "github" } },
  createWebhook: { events: listedEvents },
  updateWebhook: { events: listedEvents },
  sendTestDelivery: { event: { const: "deploy.succeeded" } },
  decideSignIn: { user_code: { const: EXAMPLE_CODE } },
  listEvents: { event: { enum: eventNames } },
  listDeliveries: { event: { enum: webhookEventNames } },
  listProjectDeliveries: { event: { enum: webhookEventNames } },
  revokeCredentials: { credentials: { type: "array", minItems: 1, maxItems: 100, items: { const: unknownApiKey() } } },
};

function withoutOpaqueFields({ id }: Operation, schema: Json): Json {
  const isOpaque = (name: string) => opaqueFields[id]?.includes(name);
  const properties = Object.entries<Json>(schema.properties).filter(([name]) => !isOpaque(name));
  return { ...schema, properties: { ...Object.fromEntries(properties), ...fixedFields[id] } };
}

const successOf = ({ definition }: Operation): number =>
  Number(Object.keys(definition.responses).find((status) => status.startsWith("2")));

const acceptsKeys = ({ definition }: Operation) =>
  (definition.security ?? document.security).some((scheme: Json) => "apiKey" in scheme);
const rowOf = ({ method, path }: Operation) => endpointRows.find((row) => row.method === method && row.path === path);
const requiresAdmin = (operation: Operation) => /^admin/.test(rowOf(operation)?.access ?? "");
const isForAnyone = (operation: Operation) => rowOf(operation)?.access === "anyone";
const isInProject = ({ path }: Operation) => path.includes("{project_id}");

/** Returns the error code that a valid request of this caller gets; undefined = it succeeds. */
function codeFor(operation: Operation, caller: Caller): string | undefined {
  if (isForAnyone(operation)) return undefined;
  const rejection = rejectedCallers[caller];
  if (rejection !== undefined) return rejection;
  if (/key$/i.test(caller) && !acceptsKeys(operation)) return "session_required";
  if (caller === "powerlessKey" && rowOf(operation)?.permission !== "none") return "insufficient_permission";
  if (caller === "viewer" && isOfKey(operation)) return "not_found";
  if (caller === "viewer" && isInProject(operation) && requiresAdmin(operation)) return "forbidden";
  return undefined;
}

const exampleOf = ({ definition }: Operation): string | undefined => {
  const media = definition.requestBody?.content["application/json"];
  return media && JSON.stringify(media.example);
};

const json = "application/json";

/** Queries of the operations that return pages. */
const pageQueries = {
  invalid: [
    ...["?limit=0", "?limit=101", "?limit=007", "?limit=1e1", "?limit= 5", "?limit=", "?status=", "?status=gone"],
    ...["?cursor=1", "?cursor=%00", "?limits=5", "?__proto__=1"],
  ],
  unusual: ["?limit=5&limit=6", "?limit=%35", "?cursor=FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"],
};

describe.each(operations)("$id", (operation) => {
  test("returns the documented status for its documented example to every kind of caller", async () => {
    const returned: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const caller of acceptedCallers) {
      const { status, body } = await sendTo(operation, { caller, text: exampleOf(operation) });
      returned[caller] = [status, body?.error?.code];
      const code = codeFor(operation, caller);
      expected[caller] = [code === undefined ? successOf(operation) : statusByCode[code as ErrorCode], code];
    }
    expect(returned).toEqual(expected);
  });

  const schema = bodySchema(operation);
  if (schema) {
    test("accepts every body that its schema allows", async () => {
      const requests = fc.asyncProperty(valid(withoutOpaqueFields(operation, schema)), async (body) => {
        const { status, body: received } = await sendTo(operation, { caller: "session", text: JSON.stringify(body) });
        expect({ body, status, received }).toMatchObject({ body, status: successOf(operation) });
      });
      await fc.assert(requests, { seed, numRuns: RUNS });
    });

    const boundaryBodies = Object.entries<Json>(withoutOpaqueFields(operation, schema).properties).flatMap(
      ([field, fieldSchema]) => boundaries(fieldSchema).map((value) => ({ [field]: value })),
    );
    if (boundaryBodies.length > 0) {
      test("accepts the smallest and the largest documented values", async () => {
        for (const part of boundaryBodies) {
          const text = JSON.stringify({ ...JSON.parse(exampleOf(operation) ?? ""), ...part });
          const { status, body } = await sendTo(operation, { caller: "session", text });
          expect({ part, status, error: body.error }).toEqual({ part, status: successOf(operation), error: undefined });
        }
      });
    }

    test("rejects a body that its schema does not allow, with details", async () => {
      const requests = fc.asyncProperty(invalid(schema), async (body) => {
        const { status, body: received } = await sendTo(operation, { caller: "session", text: JSON.stringify(body) });
        expect({ body, status, code: received.error?.code }).toEqual({ body, status: 400, code: "validation_error" });
        expect(received.error.details.length).toBeGreaterThan(0);
      });
      await fc.assert(requests, { seed, numRuns: RUNS });
    });

    const isFirst = operation.id === "createWebhook";
    test("gives documented responses to malformed bodies", async () => {
      const bodies = [...invalidBodies(schema), ...(isFirst ? unreadableBodies(schema) : [])];
      for (const [title, text, contentType, expected] of bodies) {
        const { status, body } = await sendTo(operation, { caller: "session", text, contentType });
        const hint =
          "A text that users write is a `displayName` of functions/foundation/schema/input.ts, or has rules like it.";
        const returned = [title, status, body?.error?.code, hint];
        if (expected) expect(returned).toEqual([title, statusByCode[expected], expected, hint]);
      }
    });
  }

  const parameters = querySchema(operation);
  if (parameters) {
    const query = withoutOpaqueFields(operation, parameters);
    test("accepts the documented query parameters and rejects others", async () => {
      const allowed = fc.asyncProperty(valid(query), async (values) => {
        expect((await sendTo(operation, { caller: "session", query: queryOf(values) })).status).toBe(200);
      });
      await fc.assert(allowed, { seed, numRuns: RUNS });
      const rejected = fc.asyncProperty(invalid(query), async (values) => {
        fc.pre(typeof values === "object" && values !== null && !Array.isArray(values));
        // As text, a number of the wrong type is a valid number. The validator also takes " 1" for one, the service does not.
        fc.pre(Object.values(values).every((value) => typeof value === "string" && !/^\s*\d+\s*$/.test(value)));
        const isValid = isQueryValid(query, values);
        const { status } = await sendTo(operation, { caller: "session", query: queryOf(values) });
        expect({ values, status }).toEqual({ values, status: isValid ? 200 : 400 });
      });
      await fc.assert(rejected, { seed, numRuns: RUNS });
    });

    test("accepts the examples of its parameters together, but a cursor of other deliveries", async () => {
      const examples = operation.definition.parameters.flatMap(({ name, in: place, example }: Json) =>
        place === "query" && example !== undefined ? [[name, example]] : [],
      );
      const query = queryOf(Object.fromEntries(examples));
      const { status, body } = await sendTo(operation, { caller: "session", query });
      const isOfDeliveries = /Deliveries$/.test(operation.id);
      expect([status, body.error?.details[0].path]).toEqual(isOfDeliveries ? [400, "cursor"] : [200, undefined]);
    });

    const isPaged = "limit" in query.properties;
    test("rejects invalid queries, and gives documented responses to unusual ones", async () => {
      for (const query of isPaged ? pageQueries.invalid : []) {
        expect([query, (await sendTo(operation, { caller: "session", query })).status]).toEqual([query, 400]);
      }
      for (const query of isPaged ? pageQueries.unusual : []) await sendTo(operation, { caller: "session", query });
    });
  }

  test.each([
    ["?_=1795233869", "_"],
    ["?utm_source=mail", "utm_source"],
    ["?__proto__=1", "__proto__"],
    ["?a[]=1", "a[]"],
    ["?Limit=5", "Limit"],
  ])("rejects the query %s with the name of the parameter, and accepts an empty one", async (query, path) => {
    const { status, body } = await sendTo(operation, { caller: "session", query, text: exampleOf(operation) });
    expect({ status, code: body?.error?.code }).toEqual({ status: 400, code: "validation_error" });
    expect(body.error.details).toEqual([{ path, message: "is not a known query parameter" }]);
    const accepted = await sendTo(operation, { caller: "session", query: "?", text: exampleOf(operation) });
    expect(accepted.status).toBe(successOf(operation));
  });

  if (!schema) {
    test("ignores a body, because it has none", async () => {
      const { status } = await sendTo(operation, { caller: "session", text: "{".repeat(100_000) });
      expect(status).toBe(successOf(operation));
    });
  }

  if (operation.path.includes("{")) {
    test("returns 404 for ids without a resource", async () => {
      const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
      const ids = fc.oneof(
        fc.uuid(),
        fc.stringMatching(/^[!-~]{1,40}$/).map(encodeURIComponent),
        fc.constantFrom("%00", "%2e%2e", "%ff", "%"),
      );
      const requests = fc.asyncProperty(fc.constantFrom(...names), ids, async (name, id) => {
        // The URL parser resolves these as path segments.
        fc.pre(!/^(\.|%2e){1,2}$/i.test(id));
        const text = exampleOf(operation);
        const { status } = await sendTo(operation, { caller: "session", otherIds: { [name]: id }, text });
        expect({ name, id, status }).toEqual({ name, id, status: 404 });
      });
      await fc.assert(requests, { seed, numRuns: RUNS });
    });
  }

  test("gives a documented response to random requests of all callers", async () => {
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
        otherIds: fc.oneof(fc.constant({}), fc.dictionary(fc.constantFrom("id", ...idNames), fc.uuid())),
        text,
        contentType: fc.constantFrom(
          "application/json",
          "application/json; charset=utf-8",
          "text/plain",
          "application/jsonp",
        ),
        query: fc.stringMatching(/^(\?([\w.~!$&'()*+,;=:@/?-]|%[0-9A-F]{2}){0,20})?$/),
      }),
      async (request) => {
        await sendTo(operation, request);
      },
    );
    await fc.assert(requests, { seed, numRuns: RUNS });
  });
});

function isQueryValid({ properties }: Json, values: Record<string, string>): boolean {
  return Object.entries(values).every(([name, value]) => {
    const schema = properties[name];
    return schema !== undefined && textViolations(schema, value).length === 0;
  });
}

type MalformedBody = [
  title: string,
  text: string | Buffer,
  contentType: string | undefined,
  expected: ErrorCode | undefined,
];

/** Bodies whose response depends on the schema, or is documented for each operation. */
function invalidBodies({ properties, required = [] }: Json): MalformedBody[] {
  const [field = ""] = Object.keys(properties);
  return [
    ["an incomplete object", '{"', json, "invalid_json"],
    ["a lone surrogate", `{"${field}":"\\ud800"}`, json, "validation_error"],
    ["a text with a null character", `{"${field}":"a\\u0000b"}`, json, "validation_error"],
    ["a body over 64 KB", JSON.stringify({ [field]: "x".repeat(70_000) }), json, "payload_too_large"],
    ["JSON sent as text/plain", "{}", "text/plain", "unsupported_media_type"],
    ["no body", "", json, required.length > 0 ? "validation_error" : undefined],
  ];
}

/** Bodies that are rejected in the same way by all operations. */
function unreadableBodies({ properties }: Json): MalformedBody[] {
  const [field = ""] = Object.keys(properties);
  return [
    ["a trailing comma", `{"${field}":"x",}`, json, "invalid_json"],
    ["a byte order mark", `\ufeff{}`, json, undefined],
    ["NaN", "NaN", json, "invalid_json"],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), json, "invalid_json"],
    ["deeply nested arrays", "[".repeat(10_000) + "]".repeat(10_000), json, "validation_error"],
    ["a deeply nested field", `{"${field}":${"[".repeat(10_000)}${"]".repeat(10_000)}}`, json, "validation_error"],
    ["__proto__ as a field", '{"__proto__":{"admin":true}}', json, "validation_error"],
    ["a field twice", `{"${field}":1,"${field}":[2]}`, json, "validation_error"],
    ["a number that overflows", `{"${field}":1e999}`, json, "validation_error"],
    ["a body over 10 MB", "x".repeat(10 * 1024 * 1024 + 1), json, "payload_too_large"],
    ["a form", `${field}=x`, "application/x-www-form-urlencoded", "unsupported_media_type"],
    ["JSON sent as merge-patch+json", "{}", "application/merge-patch+json", "unsupported_media_type"],
    ["a malformed content type", "{}", ";;;", "unsupported_media_type"],
  ];
}

const operation = (id: string): Operation => {
  const found = operations.find((each) => each.id === id);
  if (!found) throw new Error(`No operation ${id} in docs/openapi.json.`);
  return found;
};

test.each([
  ["a filter of a field without a name", { filter: { "": ["1"] } }],
  ["a filter of a field with 101 characters", { filter: { ["x".repeat(101)]: ["1"] } }],
  ["a header without a name", { headers: { "": "1" } }],
  ["a header with a space in its name", { headers: { "X A": "1" } }],
  ["a header with a space after its value", { headers: { "X-A": "1 " } }],
])("createWebhook rejects %s, and its schema does not allow it", async (_title, field) => {
  const create = operation("createWebhook");
  const body = { ...JSON.parse(exampleOf(create) ?? ""), ...field };
  const { status } = await sendTo(create, { caller: "session", text: JSON.stringify(body) });
  const pointer = `${create.pointer}/requestBody/content/application~1json/schema`;
  expect([status, schemaViolations(pointer, body).length > 0]).toEqual([400, true]);
});

describe("limits and states", () => {
  test("creating anything above its limit returns a documented 409", async () => {
    const { project_id, service_account_id } = fixture.ids;
    const ofAccount = { user_id: `service-account:${service_account_id}`, id: "#count" };
    const ofProject = { project_id, id: "#count" };
    const trusts = { listed_under: `project#${project_id}`, entry: "#project" };
    const counters = [
      ["createWebhook", "webhooks", ofProject, "webhook_count", MAX_WEBHOOKS_PER_PROJECT],
      ["createApiKey", "userApiKeys", { user_id: fixture.userId, id: "#count" }, "key_count", MAX_KEYS_PER_USER],
      ["createServiceAccount", "serviceAccounts", ofProject, "account_count", MAX_SERVICE_ACCOUNTS_PER_PROJECT],
      ["createServiceAccountApiKey", "userApiKeys", ofAccount, "key_count", MAX_KEYS_PER_USER],
      ["createTrustedWorkflow", "trustedWorkflows", trusts, "trust_count", MAX_TRUSTED_WORKFLOWS_PER_PROJECT],
    ] as const;
    for (const [id, table, key, count, max] of counters) {
      const before = await changeItem(table, key, { [count]: max });
      const { status } = await sendTo(operation(id), { caller: "session", text: exampleOf(operation(id)) });
      await changeItem(table, key, before);
      expect({ id, status }).toEqual({ id, status: 409 });
    }
  });

  test("deleting a service account that another request deletes returns a documented 409", async () => {
    const { project_id } = fixture.ids;
    const accounts = `/v1/projects/${project_id}/service-accounts`;
    const admin = service.as(fixture.token);
    const { id } = (await admin.post(accounts, contractAccount)).body.data;
    await changeItem("serviceAccounts", { project_id, id }, { removing_at: new Date().toISOString() });
    const response = await admin.delete(`${accounts}/${id}`);
    expectDocumented(operation("deleteServiceAccount"), response);
    expect(response.status).toBe(409);
    await changeItem("serviceAccounts", { project_id, id }, { removing_at: new Date(0).toISOString() });
    expect((await admin.delete(`${accounts}/${id}`)).status).toBe(204);
  });

  test("a report that the scanner has not signed returns a documented 403", async () => {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = publicKey.export({ type: "spki", format: "pem" });
    const list = JSON.stringify({ public_keys: [{ key_identifier: "known", key }] });
    process.env.SECRET_SCANNING_KEYS_URL = `data:application/json,${encodeURIComponent(list)}`;
    const response = await send(`${service.baseUrl}/v1/credentials/revoke`, {
      method: "POST",
      headers: { "github-public-key-identifier": "f", "github-public-key-signature": "f" },
      body: "[]",
    });
    delete process.env.SECRET_SCANNING_KEYS_URL;
    expectDocumented(operation("revokeCredentials"), response);
    expect(response.status).toBe(403);
  });

  test("a code without a machine, and one that is decided, return a documented 404 and 409", async () => {
    const decide = operation("decideSignIn");
    const { api } = service.user();
    await givenSignIn(EXAMPLE_CODE);
    const statuses: number[] = [];
    for (const user_code of ["WRONG-ONE", EXAMPLE_CODE, EXAMPLE_CODE]) {
      const response = await api.patch(decide.path, { user_code, decision: "deny" });
      expectDocumented(decide, response);
      statuses.push(response.status);
    }
    expect(statuses).toEqual([404, 200, 409]);
  });

  test("rolling an expired key returns a documented 409", async () => {
    const { api } = service.user();
    const { id, key } = (await api.post("/v1/api-keys", { name: "expired" })).body.data;
    await changeKey(key, { expires_at: new Date(0).toISOString() });
    const response = await api.post(`/v1/api-keys/${id}/roll`, {});
    expectDocumented(operation("rollApiKey"), response);
    const { project_id, service_account_id } = fixture.ids;
    const keys = `/v1/projects/${project_id}/service-accounts/${service_account_id}/api-keys`;
    const admin = service.as(fixture.token);
    const ofAccount = (await admin.post(keys, { name: "expired" })).body.data;
    await changeKey(ofAccount.key, { expires_at: new Date(0).toISOString() });
    const second = await admin.post(`${keys}/${ofAccount.id}/roll`, {});
    expectDocumented(operation("rollServiceAccountApiKey"), second);
    expect([response.status, second.status]).toEqual([409, 409]);
  });

  test.each(["revokeCredentials", "requestSignIn"])(
    "%s returns a documented 503 while the table is not available",
    async (id) => {
      await givenUsedBudget("sign-in:address:127.0.0.1", 0);
      interceptDynamo(() => Promise.reject(Object.assign(new Error("connection refused"), { code: "ECONNREFUSED" })));
      const { path, method } = operation(id);
      const headers = { "content-type": "application/json" };
      const response = await send(service.baseUrl + path, {
        method,
        headers,
        body: exampleOf(operation(id)) as string,
      });
      restoreAws();
      expectDocumented(operation(id), response);
      expect(response.status).toBe(503);
    },
  );

  const repeatable = operations.filter((each) => rowOf(each)?.repeatReturns);
  test.each(repeatable)(
    "$id returns documented responses for a repeat and for another use of an Idempotency-Key",
    async (each) => {
      const { id, method } = each;
      const create = async (changes: object, key: string) => {
        const response = await send(`${service.baseUrl}${pathOf(each)}`, {
          method,
          headers: {
            authorization: `Bearer ${fixture.token}`,
            "content-type": "application/json",
            "idempotency-key": `${id}-${key}`,
          },
          body: JSON.stringify({ ...JSON.parse(exampleOf(each) ?? ""), ...changes }),
        });
        expectDocumented(each, response);
        return response;
      };
      const other = id === "createWebhook" ? { url: "https://hooks.example.com/other" } : { name: "other" };
      const first = await create({}, "one");
      const repeat = await create({}, "one");
      const others = [(await create(other, "one")).status, (await create({}, "a b")).status];
      expect([first.status, ...others]).toEqual([201, 422, 400]);
      if (rowOf(each)?.repeatReturns === "record") expect(repeat.body).toEqual(first.body);
      else expect(repeat.body.error.details).toEqual([{ path: "id", message: first.body.data.id }]);
    },
  );

  test.each(budgeted)("%s returns a documented 429 when the budget of the project is used up", async (id) => {
    const { project_id } = fixture.ids;
    await givenUsedBudget(project_id, 120);
    const body = JSON.parse(exampleOf(operation(id)) ?? "{}");
    const response = await service.as(fixture.token).post(pathOf(operation(id)), body);
    await givenUsedBudget(project_id, 0);
    expectDocumented(operation(id), response);
    expect(response.status).toBe(429);
  });

  test("a recovery that ends early returns a documented cursor, which the next call accepts", async () => {
    const { webhook_id, delivery_id: id } = fixture.ids;
    // As many rows as a call reads: creating them takes too long.
    const Items = Array(25_000).fill({ status: "succeeded" });
    interceptDynamo(async ({ command, input }, sendCall) => {
      const isScan = command === "QueryCommand" && String(input.TableName).endsWith("-deliveries");
      return isScan ? { Items, LastEvaluatedKey: { webhook_id, id } } : sendCall();
    });
    const since = "2026-01-01T00:00:00Z";
    const first = await sendTo(operation("recoverDeliveries"), { caller: "session", text: JSON.stringify({ since }) });
    restoreAws();
    const { next_cursor: cursor, ...rest } = first.body.data;
    expect(rest).toEqual({ count: 0, complete: false });
    const text = JSON.stringify({ since, cursor });
    const next = await sendTo(operation("recoverDeliveries"), { caller: "session", text });
    expect(next.body.data).toMatchObject({ complete: true, next_cursor: null });
  });

  test("a disabled webhook is returned as documented, and recover returns 409", async () => {
    const { ids, spareId } = fixture;
    const path = `/v1/projects/${ids.project_id}/webhooks/${spareId}`;
    const api = service.as(fixture.token);
    expectDocumented(operation("updateWebhook"), await api.patch(path, { enabled: false }));
    expectDocumented(operation("getWebhook"), await api.get(path));
    expectDocumented(operation("listWebhooks"), await api.get(`/v1/projects/${ids.project_id}/webhooks`));
    const rejected = await api.post(`${path}/recover`, { since: new Date().toISOString() });
    expectDocumented(operation("recoverDeliveries"), rejected);
    expect(rejected.status).toBe(409);
  });

  test("attempts with every kind of result are returned as documented", async () => {
    const path = `/v1/projects/${fixture.ids.project_id}/webhooks`;
    const api = service.as(fixture.token);
    const statuses = [500, 301, 204, 410];
    for (const status of statuses) {
      receiver.respondWith((_, response) =>
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
    receiver.respondWith(200);
  });

  test("what sends, and what reads deliveries and events, is rejected with a documented 403 while the project is suspended", async () => {
    const { project_id, service_account_id } = fixture.ids;
    const keys = `/v1/projects/${project_id}/service-accounts/${service_account_id}/api-keys`;
    const key = (await service.as(fixture.token).post(keys, { name: "rolled" })).body.data.id;
    await suspend({ project_id, suspended: true });
    const rolled = await service.as(fixture.token).post(`${keys}/${key}/roll`, {});
    expect(rolled.body.error.code).toBe("project_suspended");
    expectDocumented(operation("rollServiceAccountApiKey"), rolled);
    const renamed = await service.as(fixture.token).patch(`${keys}/${key}`, { name: "renamed" });
    expect(renamed.body.error.code).toBe("project_suspended");
    expectDocumented(operation("updateServiceAccountApiKey"), renamed);
    const named = await service.as(fixture.token).post("/v1/api-keys", { name: "named", project_ids: [project_id] });
    expect(named.body.error.code).toBe("project_suspended");
    expectDocumented(operation("createApiKey"), named);
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const approval = {
      user_code: EXAMPLE_CODE,
      decision: "approve",
      name: "ci",
      project_ids: [project_id],
      expires_at,
    };
    await givenSignIn(EXAMPLE_CODE, fixture.userId);
    const approved = await service.as(fixture.token).patch("/v1/sign-ins", approval);
    expect(approved.body.error.code).toBe("project_suspended");
    expectDocumented(operation("decideSignIn"), approved);
    const reads = "listEvents listDeliveries listProjectDeliveries getDelivery getCertification getWebhookStats";
    const changes = "createWebhook updateWebhook rotateWebhookSecret createTrustedWorkflow";
    const changesOfAccounts = "createServiceAccount createServiceAccountApiKey";
    for (const id of [...`${reads} ${changes} ${changesOfAccounts}`.split(" "), ...budgeted]) {
      const { body } = await sendTo(operation(id), { caller: "session", text: exampleOf(operation(id)) });
      expect({ id, code: body.error.code }).toEqual({ id, code: "project_suspended" });
    }
    expectDocumented(
      operation("getWebhook"),
      await service.as(fixture.token).get(`/v1/projects/${project_id}/webhooks/${fixture.spareId}`),
    );
    await suspend({ project_id, suspended: false });
  });

  test("the documented defaults are those that the tests of the operations expect", () => {
    const { parameters } = operation("listDeliveries").definition;
    expect(parameters.find(({ name }: Json) => name === "limit").schema.default).toBe(20);
    expect(bodySchema(operation("rotateWebhookSecret")).properties.overlap_seconds.default).toBe(86_400);
  });

  test("the feed links to its next page, and to what follows, as documented", async () => {
    const { project_id } = fixture.ids;
    const path = `/v1/projects/${project_id}/events`;
    for (const name of eventNames) {
      const event = sampleFields(name, { projectId: project_id, id: randomUUID(), now: new Date() });
      await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody: JSON.stringify(event) }));
    }
    const read = async (url: string): Promise<Response> => {
      const page = await service.as(fixture.token).get(url.replace(service.baseUrl, ""));
      expect(page.status).toBe(200);
      expectDocumented(operation("listEvents"), page);
      return page;
    };
    await eventually(async () => expect((await read(path)).body.data.length).toBeGreaterThanOrEqual(3));
    const { pattern } = operation("listEvents").definition.parameters.find(({ name }: Json) => name === "after").schema;
    for (const order of ["newest", "oldest"]) {
      const links = (await read(`${path}?order=${order}&limit=2`)).headers.get("link") ?? "";
      expect(links).toMatch(/rel="next"|rel="monitor"/);
      for (const [, target = ""] of links.matchAll(/<([^>]+)>/g)) {
        expect(new URL(target).searchParams.get("after")).toMatch(new RegExp(pattern));
        await read(target);
      }
    }
  });
});

describe("requests without an operation", () => {
  // endpoints.test.ts tests every method and unknown routes.
  test("another method of each path returns a documented 405, and an unknown route a documented 404", async () => {
    for (const path of Object.keys(document.paths)) {
      const response = await send(`${service.baseUrl}${path.replaceAll(/\{\w+\}/g, randomUUID())}`, { method: "PUT" });
      const problems = undocumented(`${pointerOf(path)}/x-other-methods`, response);
      expect({ path, status: response.status, problems }).toEqual({ path, status: 405, problems: [] });
    }
    const unknown = await send(`${service.baseUrl}/v1`);
    expect([unknown.status, undocumented("/components/responses/NotFound", unknown)]).toEqual([404, []]);
  });
});

const pointerOf = (path: string) => `/paths/${path.replaceAll("/", "~1")}`;

describe("requests to receivers", () => {
  const receivers: Receiver[] = [];
  afterAll(() => Promise.all(receivers.map((each) => each.close())));

  // payload.test.ts has the payloads of all events.
  test("a delivery matches its documentation, also with one and with three previous secrets", async () => {
    const name = "deploy.succeeded";
    const { api, userId } = service.user();
    const projectId = await service.project(userId);
    const path = `/v1/projects/${projectId}/webhooks`;
    // Retries of other tests arrive at the shared one.
    const own = await startReceiver();
    receivers.push(own);
    const { data } = (await api.post(path, { url: own.url, events: [name] })).body;
    const previous: number[] = [];
    for (const rotations of [0, 1, 2]) {
      for (let each = 0; each < rotations; each++) {
        expect((await api.post(`${path}/${data.id}/rotate-secret`, {})).status).toBe(200);
      }
      const count = own.received.length;
      const event = sampleFields(name, { projectId, id: randomUUID(), now: new Date() });
      const MessageBody = JSON.stringify(event);
      await sqs().send(new SendMessageCommand({ QueueUrl: queueUrl("events"), MessageBody }));
      const [{ body, headers } = { body: "", headers: {} }] = (await own.waitFor(count + 1)).slice(count);
      const pointer = `/webhooks/${name}/post`;
      const problems = schemaViolations(`${pointer}/requestBody/content/application~1json/schema`, JSON.parse(body));
      const { parameters } = document.webhooks[name].post;
      for (const { name: header, required, schema } of parameters) {
        const value = new Headers(headers as Record<string, string>).get(header) ?? undefined;
        if (value === undefined && required) problems.push(`${header} is missing`);
        if (value !== undefined) problems.push(...textViolations(schema, String(value)));
      }
      const known = parameters.map((each: Json) => each.name.toLowerCase());
      const apiHeaders = Object.keys(headers).filter((header) => /^(x-|webhook-)/.test(header));
      expect({ problems, unknown: apiHeaders.filter((header) => !known.includes(header)) }).toEqual({
        problems: [],
        unknown: [],
      });
      const signatures = new Headers(headers as Record<string, string>).get("x-service-signature-previous") ?? "";
      previous.push(signatures.split("sha256=").length - 1);
    }
    expect(previous).toEqual([0, 1, 3]);
  });
});

test.each(Object.entries(rejectedCallers))(
  "the response to the caller %s is documented for every operation",
  async (caller, code) => {
    const response = await send(`${service.baseUrl}/v1/projects`, {
      headers: { authorization: fixture.authorizations[caller as Caller] ?? "" },
    });
    expect(response.body.error.code).toBe(code);
    for (const each of operations) if (!isForAnyone(each)) expectDocumented(each, response);
  },
);

describe("failures of the service", () => {
  const throttled = ["THROTTLED", "QUOTA_EXCEEDED", "WAF_FILTERED"] as const;
  test.each(throttled)("the %s response is documented for every operation", async (type) => {
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

  test("operations return documented errors when the table settings are missing", async () => {
    // The authorizer cannot look up keys, and a handler called with a JWT finds no table.
    const names = Object.values(tables).map(({ env }) => env);
    const kept = names.map((name) => [name, process.env[name]] as const);
    const ids = new Map<string, Record<string, string>>();
    for (const each of operations) ids.set(each.id, await existingIds(each));
    for (const name of names) delete process.env[name];
    try {
      for (const each of operations) {
        const path = pathOf(each, ids.get(each.id));
        for (const [caller, code] of [
          ["session", "internal_error"],
          ["key", "service_unavailable"],
        ] as const) {
          const text = exampleOf(each);
          const response = await send(`${service.baseUrl}${path}`, {
            method: each.method,
            headers: {
              authorization: fixture.authorizations[caller] ?? "",
              ...(text !== undefined && { "content-type": "application/json" }),
            },
            ...(text !== undefined && { body: text }),
          });
          expectDocumented(each, response);
          // With a JWT it reads nothing.
          if (each.id === "getCurrentCredential" && caller === "session") expect(response.status).toBe(200);
          else expect(response.body.error.code).toBe(isForAnyone(each) ? "internal_error" : code);
        }
      }
    } finally {
      for (const [name, value] of kept) process.env[name] = value ?? "";
    }
  });
});

test.each(operations)("every response that is documented for $id has occurred", ({ id, definition }) => {
  const documented = Object.entries<Json>(definition.responses).flatMap(([status, { $ref }]) => {
    if (!$ref) return [status];
    const { examples } = document.components.responses[$ref.split("/").at(-1)].content["application/json"];
    return Object.keys(examples).filter((code) => id !== "getCurrentCredential" || code !== "internal_error");
  });
  const hint = "A code that needs a state, such as a limit, occurs in a test of `limits and states`: add it there.";
  expect({ responses: [...(seen.get(id) ?? [])].sort(), hint }).toEqual({ responses: documented.sort(), hint });
});
