import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { json } from "node:stream/consumers";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { mintToken } from "../../../../bin/command/mint-token.ts";
import { createCertification } from "../../../../functions/deliveries/certification/certification.ts";
import * as certifications from "../../../../functions/deliveries/certification/certification-store.ts";
import type { EndpointRow } from "../../../../functions/foundation/manifest/endpoints.ts";
import { endpointRows } from "../../../../functions/foundation/manifest/function-rows.ts";
import { permissions, workflowPermissions } from "../../../../functions/foundation/manifest/permissions.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { hashApiKey } from "../../../../functions/identity/api-keys/api-key.ts";
import { document } from "../../../support/api-contract.ts";
import { changeKey, unknownApiKey } from "../../../support/api-keys.ts";
import { useCiSystem } from "../../../support/ci-system.ts";
import { givenDelivery } from "../../../support/deliveries.ts";
import { givenUsedBudget } from "../../../support/request-budget.ts";
import { newScenario } from "../../../support/scenario.ts";
import { type Response, send, type TestService, useService } from "../../../support/service.ts";
import { newServiceAccount } from "../../../support/service-accounts.ts";
import { EXAMPLE_CODE, givenSignIn } from "../../../support/sign-ins.ts";
import { successStatusOf, validBodyOf } from "../../../support/valid-bodies.ts";

/*
 * Security tests that run for every endpoint row. A new row needs no test code here. `access` of the rows themselves is
 * pinned in rows.test.ts.
 */

const openRows = endpointRows.filter(({ access }) => access === "anyone");
const closedRows = endpointRows.filter(({ access }) => access !== "anyone");
const rowsOfProjects = endpointRows.filter(({ path }) => path.includes("{project_id}"));
const rowsOfWebhooks = endpointRows.filter(({ path }) => path.includes("{webhook_id}"));
const rowsOfAccounts = endpointRows.filter(({ path }) => path.includes("{service_account_id}"));
const rowsWithParams = endpointRows.filter(({ path }) => path.includes("{"));

const needsSession = ({ access }: EndpointRow) => access === "session" || access === "admin_session";
const needsAdmin = ({ access }: EndpointRow) => access === "admin" || access === "admin_session";

const isForWorkflows = ({ permission }: EndpointRow) => workflowPermissions.some((name) => name === permission);

const namesMoreThanProject = ({ path }: EndpointRow) => path.replace("{project_id}", "").includes("{");

const ci = useCiSystem("ci");
const service = useService();
let admin: ReturnType<TestService["user"]>;
let project: string;
/** Another one of the same admin. */
let otherProject: string;
let adminKey: string;
let viewer: ReturnType<TestService["user"]>;
let viewerKey: string;
let deletedKey: string;
let rolledKey: string;
let overlappingKey: string;
let overlappedKey: string;
let leakedKey: string;
let expiredKey: string;
let accountKey: string;

beforeAll(async () => {
  admin = service.user();
  project = await service.project(admin.userId);
  viewer = service.user();
  await service.project(viewer.userId, { projectId: project, role: "viewer" });
  otherProject = await service.project(admin.userId);
  viewerKey = (await viewer.api.post("/v1/api-keys", { name: "viewer" })).body.data.key;
  adminKey = (await admin.api.post("/v1/api-keys", { name: "kept" })).body.data.key;
  const { id, key } = (await admin.api.post("/v1/api-keys", { name: "deleted" })).body.data;
  await admin.api.delete(`/v1/api-keys/${id}`);
  deletedKey = key;
  const rolled = (await admin.api.post("/v1/api-keys", { name: "rolled" })).body.data;
  expect((await admin.api.post(`/v1/api-keys/${rolled.id}/roll`, { overlap_seconds: 0 })).status).toBe(200);
  rolledKey = rolled.key;
  overlappingKey = await keyInOverlap("rolled with an overlap");
  overlappedKey = await keyInOverlap("rolled, and the overlap is over");
  await changeKey(overlappedKey, { ends_at: new Date(0).toISOString() });
  leakedKey = (await admin.api.post("/v1/api-keys", { name: "leaked" })).body.data.key;
  expect((await admin.api.post("/v1/credentials/revoke", { credentials: [leakedKey] })).status).toBe(202);
  const expired = (await admin.api.post("/v1/api-keys", { name: "expired" })).body.data;
  expiredKey = expired.key;
  await changeKey(expiredKey, { expires_at: new Date(0).toISOString() });
  const accounts = `/v1/projects/${project}/service-accounts`;
  const { id: accountId } = (await admin.api.post(accounts, { name: "deploy", role: "admin" })).body.data;
  accountKey = (await admin.api.post(`${accounts}/${accountId}/api-keys`, { name: "ci" })).body.data.key;
  const conditions = { ref: "refs/heads/main", environment: "production", permissions: workflowPermissions };
  const trusted = await admin.api.post(`/v1/projects/${project}/trusted-workflows`, { ...ci.trust, ...conditions });
  expect(trusted.status).toBe(201);
});
beforeEach(() => givenSignIn(EXAMPLE_CODE, admin.userId, viewer.userId));

/** Creates a key, rolls it, and returns the previous secret. */
async function keyInOverlap(name: string): Promise<string> {
  const { id, key } = (await admin.api.post("/v1/api-keys", { name })).body.data;
  expect((await admin.api.post(`/v1/api-keys/${id}/roll`, { overlap_seconds: 3600 })).status).toBe(200);
  return key;
}

/** Returns the path of a row in a project. Other ids do not exist unless `id` is given. */
const pathOf = ({ path }: EndpointRow, { projectId = project, id = randomUUID() as string } = {}) =>
  path.replace("{project_id}", projectId).replaceAll(/\{\w+\}/g, id);

/** Sends a request with a valid body. It succeeds, or returns 404 for an unknown id, if the credential is accepted. */
function call(row: EndpointRow, headers: Record<string, string>, path = pathOf(row)): Promise<Response> {
  const body = validBodyOf(row);
  const contentType: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  return send(`${service.baseUrl}${path}`, { method: row.method, headers: { ...contentType, ...headers }, body });
}

const metadata = () => `resource_metadata="${service.baseUrl}/.well-known/oauth-protected-resource"`;

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

function expectError({ status, headers, body }: Response, expectedStatus: number, code: string): void {
  expect({ status, code: body?.error?.code }).toEqual({ status: expectedStatus, code });
  expect(Object.keys(body)).toEqual(["error"]);
  const { details, ...error } = body.error;
  expect(error).toEqual({ code, message: expect.stringMatching(/./), request_id: headers.get("x-request-id") });
  expect(error.request_id).toMatch(/^[0-9a-f-]{36}$/);
  expect(headers.get("content-type")).toBe("application/json");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.has("www-authenticate")).toBe(status === 401);
  if (status === 401) expect(headers.get("www-authenticate")).toMatch(/^Bearer realm="api"/);
}

const withoutRequestId = ({ status, headers, body }: Response) => {
  const { "x-request-id": _, date: __, ...rest } = Object.fromEntries(headers);
  return { status, headers: rest, body: { error: { ...body.error, request_id: "" } } };
};

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const soon = () => Math.floor(Date.now() / 1000) + 600;
const signed = (header: object, payload: object, secret: string) => {
  const input = `${base64url(header)}.${base64url(payload)}`;
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
};

const badCredentials: [title: string, code: string, token: () => string][] = [
  ["text that is not a token", "invalid_token", () => "garbage"],
  ["an expired JWT", "token_expired", () => mintToken(process.env.JWT_SECRET ?? "", admin.userId, -1)],
  ["a JWT with another secret", "invalid_token", () => mintToken(randomBytes(32).toString("hex"), admin.userId)],
  [
    "a JWT without a signature",
    "invalid_token",
    () => `${base64url({ alg: "none" })}.${base64url({ sub: admin.userId, exp: soon() })}.`,
  ],
  [
    "a JWT with alg none and a valid signature",
    "invalid_token",
    () => signed({ alg: "none" }, { sub: admin.userId, exp: soon() }, process.env.JWT_SECRET ?? ""),
  ],
  ["an unknown API key", "invalid_api_key", unknownApiKey],
  ["an API key with a wrong checksum", "invalid_api_key", () => `svc_${randomBytes(32).toString("hex")}`],
  ["a deleted API key", "invalid_api_key", () => deletedKey],
  ["an API key that a roll has replaced", "invalid_api_key", () => rolledKey],
  ["an earlier API key after its overlap", "invalid_api_key", () => overlappedKey],
  ["an API key that was revoked as leaked", "invalid_api_key", () => leakedKey],
  ["an expired API key", "api_key_expired", () => expiredKey],
  ["an API key in upper case", "invalid_api_key", () => `svc_${adminKey.slice(4).toUpperCase()}`],
  ["a truncated API key", "invalid_api_key", () => adminKey.slice(0, -1)],
  ["an API key with a trailing character", "invalid_api_key", () => `${adminKey}0`],
  ["only the prefix of an API key", "invalid_api_key", () => "svc_"],
  ["the key_prefix of an API key", "invalid_api_key", () => adminKey.slice(0, 12)],
  ["the stored hash of an API key", "invalid_token", () => hashApiKey(adminKey)],
  ["a partner key", "invalid_token", () => `svcp_${randomBytes(32).toString("hex")}`],
];

const noCredentials: [title: string, authorization: string][] = [
  ["an empty header", ""],
  ["the scheme Basic", `Basic ${Buffer.from("user:password").toString("base64")}`],
  ["a scheme without a token", "Bearer"],
  ["a scheme that starts with Bearer", "Bearerx token"],
  ["two tokens in one header", "Bearer one two"],
  ["two credentials in one header", "Bearer one, Bearer two"],
];

/** Status of a request that passes all access checks: other ids than that of the project do not exist. */
const passed = (row: EndpointRow) => (namesMoreThanProject(row) ? 404 : successStatusOf(row));
const outcomeOf = ({ status, body }: Response) => `${status} ${body?.error?.code ?? "ok"}`;

test.each(openRows)(
  "$method $path, for anyone, gives the same response with any credential and with none",
  async (row) => {
    const headers: Record<string, string>[] = [
      ...[admin.token, adminKey, ...badCredentials.map(([, , token]) => token())].map(bearer),
      ...noCredentials.map(([, authorization]) => ({ authorization })),
    ];
    // Codes are random.
    const withoutCodes = ({ device_code, user_code, ...data }: Record<string, unknown>) => data;
    const open = await call(row, {});
    expect(open.status).toBe(successStatusOf(row));
    for (const each of headers) {
      await givenUsedBudget("sign-in:address:127.0.0.1", 0);
      const { status, body } = await call(row, each);
      const expected = { each, status: open.status, data: withoutCodes(open.body.data) };
      expect({ each, status, data: withoutCodes(body.data) }).toEqual(expected);
    }
  },
);

/** One authorizer decides for all rows: every credential is sent to the first row of each access, and these to the others. */
const sentToAllRows = ["an expired JWT", "a JWT with another secret", "a deleted API key"];
const isFirstOfAccess = (row: EndpointRow) => row === closedRows.find(({ access }) => access === row.access);
const badCredentialsFor = (row: EndpointRow) =>
  badCredentials.filter(([title]) => isFirstOfAccess(row) || sentToAllRows.includes(title));

describe.each(closedRows)("$method $path", (row) => {
  test("accepts a JWT, and an API key and its previous secret unless the access is `session` or `admin_session`", async () => {
    const [jwt, ...keys] = [
      await call(row, bearer(admin.token)),
      await call(row, bearer(adminKey)),
      await call(row, bearer(overlappingKey)),
    ];
    expect(jwt?.status).toBe(passed(row));
    for (const response of keys) {
      if (needsSession(row)) expectError(response, 403, "session_required");
      else expect(response.status).toBe(passed(row));
    }
  });

  test("returns 401 with a Bearer challenge for any other credential and for none, the same for all invalid API keys", async () => {
    const missing = await call(row, {});
    expectError(missing, 401, "unauthorized");
    expect(missing.headers.get("www-authenticate")).toBe(`Bearer realm="api", ${metadata()}`);
    for (const [title, authorization] of isFirstOfAccess(row) ? noCredentials : []) {
      const response = await call(row, { authorization });
      expect({ title, outcome: outcomeOf(response) }).toEqual({ title, outcome: "401 unauthorized" });
      expectError(response, 401, "unauthorized");
    }
    const ofInvalidKeys: object[] = [];
    for (const [title, code, token] of badCredentialsFor(row)) {
      const response = await call(row, bearer(token()));
      expect({ title, outcome: outcomeOf(response) }).toEqual({ title, outcome: `401 ${code}` });
      expectError(response, 401, code);
      expect(response.headers.get("www-authenticate")).toBe(`Bearer realm="api", error="invalid_token", ${metadata()}`);
      if (code === "invalid_api_key") ofInvalidKeys.push(withoutRequestId(response));
    }
    expect(ofInvalidKeys.length).toBeGreaterThan(isFirstOfAccess(row) ? 3 : 0);
    expect(ofInvalidKeys).toEqual(ofInvalidKeys.map(() => ofInvalidKeys[0]));
  });

  test("returns 401 for two Authorization headers, even if both are valid", async () => {
    const headers = { Authorization: [`Bearer ${admin.token}`, `Bearer ${admin.token}`] };
    const request = http.request(`${service.baseUrl}${pathOf(row)}`, { method: row.method, headers }).end();
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    expect(response.statusCode).toBe(401);
    expect(await json(response)).toMatchObject({ error: { code: "unauthorized" } });
  });
});

test("rejects a partner key even if its hash is stored in the table of API keys", async () => {
  const key = `svcp_${randomBytes(32).toString("hex")}`;
  const Item = {
    key_hash: hashApiKey(key),
    id: randomUUID(),
    user_id: admin.userId,
    name: "partner",
    key_prefix: "svcp_",
  };
  await dynamo().send(new PutCommand({ TableName: tableName("apiKeys"), Item }));
  for (const row of closedRows) expectError(await call(row, bearer(key)), 401, "invalid_token");
});

describe.each(rowsOfProjects)("access to the project in $method $path", (row) => {
  test("returns the same 404 to a user who is not a member, whether the project exists or not", async () => {
    const stranger = bearer(service.user().token);
    const foreign = await call(row, stranger);
    expectError(foreign, 404, "not_found");
    const unknown = await call(row, stranger, pathOf(row, { projectId: randomUUID() }));
    expect(withoutRequestId(unknown)).toEqual(withoutRequestId(foreign));
  });

  test("is allowed for a viewer unless the access is `admin` or `admin_session`, with a JWT and with an API key", async () => {
    for (const credential of [viewer.token, ...(needsSession(row) ? [] : [viewerKey])]) {
      const response = await call(row, bearer(credential));
      if (needsAdmin(row)) expectError(response, 403, "forbidden");
      else expect(response.status).toBe(passed(row));
      if (response.status === 404) expect(response.body.error.message).not.toContain("project");
    }
  });
});

describe.each(rowsOfProjects)("the key of a service account and $method $path", (row) => {
  test("is allowed in its project, unless a JWT is required", async () => {
    const response = await call(row, bearer(accountKey));
    if (needsSession(row)) expectError(response, 403, "session_required");
    else expect(response.status).toBe(passed(row));
  });
});

describe.each(rowsOfProjects.filter((row) => !needsSession(row)))(
  "the key of a service account in another project and $method $path",
  (row) => {
    test("gets the 404 of a stranger, also in a project of the admin who created it", async () => {
      const path = pathOf(row, { projectId: otherProject });
      const response = await call(row, bearer(accountKey), path);
      expectError(response, 404, "not_found");
      const stranger = await call(row, bearer(service.user().token), path);
      expect(withoutRequestId(response)).toEqual(withoutRequestId(stranger));
    });
  },
);

const rowsWithPermission = endpointRows.filter(({ permission }) => permission !== "none");

/** Keys of the admin by their limits: rows with the same permission share theirs. */
const scopedKeys = new Map<string, string>();
async function keyWith(limits: object): Promise<string> {
  const name = JSON.stringify(limits);
  const known = scopedKeys.get(name);
  if (known !== undefined) return known;
  const { status, body } = await admin.api.post("/v1/api-keys", { name: "scoped", ...limits });
  expect(status).toBe(201);
  scopedKeys.set(name, body.data.key);
  return body.data.key;
}

describe.each(rowsWithPermission)("a scoped key and $method $path", (row) => {
  test("returns 403 insufficient_permission and its name, with all other permissions", async () => {
    const others = permissions.filter((permission) => permission !== row.permission);
    const response = await call(row, bearer(await keyWith({ permissions: others })));
    expectError(response, 403, "insufficient_permission");
    expect(response.body.error.message).toContain(`the permission ${row.permission}.`);
  });

  test("is allowed with the permission alone, and in its projects", async () => {
    // A key that is limited to projects has no access to the log of its user.
    const isUserLog = row.path === "/v1/audit-events";
    const limits = { permissions: [row.permission], ...(!isUserLog && { project_ids: [project] }) };
    const response = await call(row, bearer(await keyWith(limits)));
    expect(response.status).toBe(passed(row));
  });

  test("returns the 404 of a stranger in another project of its user", async () => {
    const response = await call(row, bearer(await keyWith({ project_ids: [otherProject] })));
    if (!row.path.includes("{project_id}")) {
      return expect(response.status).toBe(row.path === "/v1/audit-events" ? 403 : passed(row));
    }
    expectError(response, 404, "not_found");
    expect(response.body.error.message).toContain("or the credential is limited to other projects");
    const stranger = await call(row, bearer(service.user().token));
    expect(withoutRequestId(response)).toEqual(withoutRequestId(stranger));
  });
});

/** Returns the token of a job that the trusted workflow matches, with other claims. */
const jobToken = (claims: object = {}) => ci.token({ environment: "production", ...claims });

describe.each(closedRows)("a trusted workflow and $method $path", (row) => {
  test("is rejected for another ref, another environment and another repository", async () => {
    const others = [{ ref: "refs/pull/1/merge" }, { environment: "preview" }, { repository_id: "1" }];
    for (const claims of others) {
      expectError(await call(row, bearer(jobToken(claims))), 401, "workflow_not_trusted");
    }
  });

  test("needs a permission for a workflow, and no person, and is documented for it unless it always gets 403", async () => {
    const response = await call(row, bearer(jobToken()));
    const isGiven = row.permission === "none" || isForWorkflows(row);
    if (needsSession(row)) expectError(response, 403, "session_required");
    else if (!isGiven) expectError(response, 403, "insufficient_permission");
    else expect(response.status).toBe(passed(row));
    const { security = document.security } = document.paths[row.path][row.method.toLowerCase()];
    const isDocumented = security.some((scheme: object) => "workflow" in scheme);
    expect({ isDocumented }).toEqual({ isDocumented: response.status !== 403 });
  });

  if (row.path.includes("{project_id}") && !needsSession(row) && isForWorkflows(row)) {
    test("gets the 404 of a stranger in another project", async () => {
      const path = pathOf(row, { projectId: otherProject });
      const response = await call(row, bearer(jobToken()), path);
      expectError(response, 404, "not_found");
      const stranger = await call(row, bearer(service.user().token), path);
      expect(withoutRequestId(response)).toEqual(withoutRequestId(stranger));
    });
  }
});

const malformedIds = [
  "1",
  "null",
  "*",
  "%00",
  "%23count",
  "%2e%2e%2f",
  "%E0%A4%A",
  "x".repeat(3000),
  "01890000000070008000000000000000",
  "{01890000-0000-7000-8000-000000000000}",
  "0189000g-0000-7000-8000-000000000000",
  "01890000-0000-7000-8000-0000000000000",
  "01890000-0000-7000-8000-000000000000%20",
  "01890000-0000-7000-8000-000000000000%0a",
];

/** One pattern decides for all ids: every text is sent to the first row with a parameter, and these to the others. */
const malformedForAllRows = ["1", "%23count", "01890000-0000-7000-8000-000000000000%0a"];

test.each(rowsWithParams)("$method $path returns 404 for an id that is not a UUID", async (row) => {
  for (const name of row.path.match(/\{\w+\}/g) ?? []) {
    const isFirst = row === rowsWithParams.find(({ path }) => path.includes(name));
    for (const id of isFirst ? malformedIds : malformedForAllRows) {
      const path = pathOf({ ...row, path: row.path.replace(name, id) as EndpointRow["path"] });
      expectError(await call(row, bearer(admin.token), path), 404, "not_found");
    }
  }
});

test.each(rowsOfWebhooks)("$method $path returns 404 for a webhook that the caller cannot see", async (row) => {
  const { token, webhook, path, elsewhere } = await newScenario(service, { events: ["deploy.failed"] });
  const { id } = await givenDelivery(webhook, { status: "failed" });
  await certifications.insert({ ...createCertification(webhook.id, new Date(), randomBytes(16)), id });
  const statusOf = async (place: string) => {
    const { status } = await call(row, bearer(token), row.path.replace(/.*{webhook_id}/, place).replace(/{\w+}/, id));
    return status;
  };
  for (const [title, place] of await elsewhere()) expect([title, await statusOf(place)]).toEqual([title, 404]);
  expect(await statusOf(path)).toBe(successStatusOf(row));
});

test.each(rowsOfAccounts)(
  "$method $path returns 404 for an account of another project, and the key of another owner",
  async (row) => {
    const [one, other] = [await newServiceAccount(service), await newServiceAccount(service)];
    const [own, foreign] = [(await one.createKey()).id, (await other.createKey()).id];
    const ofUser = (await one.admin.api.post("/v1/api-keys", { name: "own" })).body.data.id;
    const statusOf = async ({ admin, accounts }: typeof one, key: string) => {
      const path = row.path.replace(/.*{service_account_id}/, `${accounts}/${one.accountId}`).replace(/{\w+}/, key);
      return (await call(row, bearer(admin.token), path)).status;
    };
    expect(await statusOf(other, own)).toBe(404);
    const others = row.path.includes("/api-keys/") ? [foreign, ofUser] : [];
    for (const key of others) expect(await statusOf(one, key)).toBe(404);
    expect(await statusOf(one, own)).toBe(successStatusOf(row));
  },
);

test.each([
  "/",
  "/v1",
  "/v2/api-keys",
  "/V1/api-keys",
  "/v1/api-keys/",
  "//v1/api-keys",
  "/v1/api-keys/1/2",
  "/v1/unknown",
  "/v1/projects/x/webhooks/y/deliveries/z/more",
])("returns 404 for the unknown route %s, with and without credentials", async (path) => {
  for (const method of ["GET", "POST", "DELETE"]) {
    expectError(await send(`${service.baseUrl}${path}`, { method }), 404, "not_found");
    expectError(await send(`${service.baseUrl}${path}`, { method, headers: bearer(admin.token) }), 404, "not_found");
  }
});

test.each([...new Set(endpointRows.map(({ path }) => path))])(
  "%s returns 405 with an Allow header for other methods",
  async (path) => {
    const supported = endpointRows.filter((row) => row.path === path).map(({ method }): string => method);
    const others = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter((method) => !supported.includes(method));
    for (const method of others) {
      for (const headers of [{}, bearer(admin.token)]) {
        const response = await send(`${service.baseUrl}${path}`, { method, headers });
        expectError(response, 405, "method_not_allowed");
        expect(response.headers.get("allow")?.split(", ").sort()).toEqual(supported.toSorted());
      }
    }
  },
);

test("every request has its own request id", async () => {
  const responses = await Promise.all(endpointRows.map((row) => call(row, bearer(admin.token))));
  expect(new Set(responses.map(({ headers }) => headers.get("x-request-id"))).size).toBe(endpointRows.length);
});
