import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { jest } from "@jest/globals";
import jwt from "jsonwebtoken";
import { mintToken } from "../../../../bin/command/mint-token.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import { hashApiKey } from "../../../../functions/identity/api-keys/api-key.ts";
import type { Verification } from "../../../../functions/identity/verification/verify.ts";
import { unknownApiKey } from "../../../support/api-keys.ts";
import { interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import { useCiSystem } from "../../../support/ci-system.ts";
import { fakeDate } from "../../../support/fake-date.ts";
import { useService } from "../../../support/service.ts";

const ci = useCiSystem("ci");
const service = useService();
/** The calls to DynamoDB since the start of the last verification, and a hook that runs before each of them. */
let calls: string[] = [];
let beforeCall: () => Promise<void> | void;

beforeAll(() =>
  interceptDynamo(async ({ command, input }, send) => {
    const table = /(api-keys|projects|trusted-workflows)$/.exec(String(input.TableName))?.[0];
    calls.push(`${command} ${table}${input.ConsistentRead ? ", consistent" : ""}`);
    await beforeCall();
    return send();
  }),
);
beforeEach(() => {
  beforeCall = () => {};
});
afterEach(() => void jest.useRealTimers());
afterAll(restoreAws);

async function verifyAll(credentials: unknown[]): Promise<Verification[]> {
  calls = [];
  return (await call<{ results: Verification[] }>("credentials-verify", { credentials })).results;
}
const verify = async (token: string, more: object = {}) => (await verifyAll([{ token, ...more }]))[0];
const invalid = (code: string) => ({ valid: false, code });

async function givenKey(limits: object = {}, role: "admin" | "viewer" = "admin") {
  const { api, userId, token: session } = service.user();
  const projectId = await service.project(userId, { role });
  const { id, key } = (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data;
  return { api, userId, session, projectId, id, key };
}

describe("an API key", () => {
  test("is valid, with its user and no limits", async () => {
    const { key, id, userId } = await givenKey();
    expect(await verify(key)).toEqual({
      valid: true,
      type: "api_key",
      user_id: userId,
      key_id: id,
      permissions: null,
      project_ids: null,
      role: null,
      expires_at: null,
    });
  });

  test("is valid with its limits, and with the role of its user in the project", async () => {
    const { api, userId } = service.user();
    const project_id = await service.project(userId, { role: "viewer" });
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const limits = { permissions: ["webhooks:read"], project_ids: [project_id], expires_at };
    const { key } = (await api.post("/v1/api-keys", { name: "ci", ...limits })).body.data;
    const entry = { project_id: project_id.toUpperCase(), permission: "webhooks:read" };
    expect(await verify(key, entry)).toMatchObject({ valid: true, ...limits, role: "viewer" });
  });

  test("that has expired, is unknown, or is a partner's has its code", async () => {
    const { key } = await givenKey({ expires_at: new Date(Date.now() + 3_600_000).toISOString() });
    fakeDate().advance(3_601);
    const tokens = [key, unknownApiKey(), `svcp_${"0".repeat(64)}`].map((token) => ({ token }));
    expect(await verifyAll(tokens)).toEqual(["api_key_expired", "invalid_api_key", "invalid_token"].map(invalid));
  });

  test("costs one read per call, also in several entries, and none with a wrong checksum", async () => {
    const { key, userId } = await givenKey();
    const projects = await Promise.all([service.project(userId), service.project(userId)]);
    await verify(key);
    const entries = [...projects.map((project_id) => ({ token: key, project_id })), { token: key }];
    expect((await verifyAll(entries)).map(({ valid }) => valid)).toEqual([true, true, true]);
    const ofProject = "GetItemCommand projects, consistent";
    expect(calls.toSorted()).toEqual(["GetItemCommand api-keys, consistent", ofProject, ofProject]);
    const wrong = key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");
    expect(await verify(wrong)).toEqual(invalid("invalid_api_key"));
    expect(calls).toEqual([]);
  });

  test("counts as used, at most once per minute", async () => {
    const { key } = await givenKey();
    const before = Date.now();
    await verifyAll([{ token: key }, { token: key }]);
    expect(calls).toEqual(["GetItemCommand api-keys, consistent", "UpdateItemCommand api-keys"]);
    const record = { TableName: tableName("apiKeys"), Key: { key_hash: hashApiKey(key) } };
    const { Item } = await dynamo().send(new GetCommand({ ...record, ConsistentRead: true }));
    expect(Date.parse(Item?.last_used_at)).toBeGreaterThanOrEqual(before);
    expect(Item).toMatchObject({ last_used_ip: null, last_used_user_agent: null });
    await verify(key);
    expect(calls).toEqual(["GetItemCommand api-keys, consistent"]);
  });

  test("without the permission, or in a project that its user is not a member of, is refused", async () => {
    const { key, projectId } = await givenKey({ permissions: ["webhooks:read"] });
    expect(await verify(key, { permission: "webhooks:write" })).toEqual(invalid("forbidden"));
    expect(await verify(key, { permission: "webhooks:read", project_id: projectId })).toMatchObject({ valid: true });
    const elsewhere = await service.project(service.user().userId);
    for (const project_id of [elsewhere, randomUUID()])
      expect(await verify(key, { project_id })).toEqual(invalid("not_found"));
  });

  test("that is limited to a project is not found in another one of its user", async () => {
    const { api, userId } = service.user();
    const [mine, other] = await Promise.all([service.project(userId), service.project(userId)]);
    const { key } = (await api.post("/v1/api-keys", { name: "ci", project_ids: [mine] })).body.data;
    const entries = [mine, other].map((project_id) => ({ token: key, project_id }));
    expect(await verifyAll(entries)).toMatchObject([{ valid: true, role: "admin" }, invalid("not_found")]);
  });
});

describe("the JWT of a user", () => {
  test("is valid until it expires, with the role of the user and without limits", async () => {
    const { userId, session, projectId } = await givenKey({}, "viewer");
    const exp = Number(Object(jwt.decode(session)).exp);
    expect(await verify(session, { project_id: projectId, permission: "webhooks:write" })).toEqual({
      valid: true,
      type: "jwt",
      user_id: userId,
      key_id: null,
      permissions: null,
      project_ids: null,
      role: "viewer",
      expires_at: new Date(exp * 1000).toISOString(),
    });
    fakeDate().advance(3_601);
    expect(await verify(session)).toEqual(invalid("token_expired"));
  });

  test.each([
    ["signed by another provider", () => mintToken("0".repeat(32), "user-1")],
    ["that is no JWT", () => "hello"],
    ["of more than 8 KB", () => `a.${"b".repeat(8 * 1024)}.c`],
  ])("%s is invalid_token", async (_title, token) => {
    expect(await verify(token())).toEqual(invalid("invalid_token"));
  });
});

describe("the token of a workflow", () => {
  const newRepository = () => String(Math.ceil(Math.random() * 2 ** 40));

  async function givenTrust(permissions = ["webhooks:read", "webhooks:write"], repository_id = newRepository()) {
    const { api, userId } = service.user();
    const projectId = await service.project(userId);
    const trust = { ...ci.trust, repository_id, permissions };
    const { id } = (await api.post(`/v1/projects/${projectId}/trusted-workflows`, trust)).body.data;
    return { projectId, id, repository_id, token: ci.token({ repository_id }) };
  }

  test("is valid in the project that trusts it, with its permissions and without a role, for one read", async () => {
    const { projectId, id, token } = await givenTrust();
    expect(await verify(token, { project_id: projectId, permission: "webhooks:write" })).toEqual({
      valid: true,
      type: "workflow",
      user_id: `workflow:${id}`,
      key_id: null,
      permissions: ["webhooks:read", "webhooks:write"],
      project_ids: [projectId],
      role: null,
      expires_at: new Date(Number(Object(jwt.decode(token)).exp) * 1000).toISOString(),
    });
    expect(calls).toEqual(["QueryCommand trusted-workflows, consistent"]);
  });

  test("has in each entry the permissions of the project that the entry names", async () => {
    const { token, projectId, repository_id } = await givenTrust(["webhooks:read"]);
    const other = await givenTrust(["deliveries:read"], repository_id);
    const entries = [projectId, other.projectId].map((project_id) => ({ token, project_id }));
    expect(await verifyAll(entries)).toMatchObject([
      { permissions: ["webhooks:read"], project_ids: [projectId] },
      { permissions: ["deliveries:read"], project_ids: [other.projectId] },
    ]);
  });

  test("in another project, without the permission, or of a repository without trust is refused", async () => {
    const { token } = await givenTrust();
    const untrusted = ci.token({ repository_id: newRepository() });
    const entries = [
      { token, project_id: randomUUID() },
      { token, permission: "deliveries:write" },
      { token: untrusted },
    ];
    expect(await verifyAll(entries)).toEqual(["not_found", "forbidden", "invalid_token"].map(invalid));
  });
});

test("returns the results in the order of the credentials, malformed ones included", async () => {
  const { key: token, session } = await givenKey();
  const malformed = [
    null,
    [],
    token,
    {},
    { token: 5 },
    { token: "" },
    { token: "two words" },
    { token: ` ${token}` },
    { token: `${token} ` },
    { token: "tök" },
    { token: [token] },
    { token, project_id: "shop" },
    { token, project_id: null },
    { token, permission: "webhooks:admin" },
    { token, permission: "none" },
    { token, permission: null },
    { token, scope: "all" },
  ];
  const entries = malformed.flatMap((entry) => [entry, { token: session }]);
  expect(await verifyAll(entries)).toEqual(
    malformed.flatMap(() => [invalid("malformed"), expect.objectContaining({ valid: true, type: "jwt" })]),
  );
  expect(calls).toEqual([]);
});

test.each([
  ["no credentials", {}],
  ["credentials that are no array", { credentials: "svc_" }],
  ["an unknown field", { credentials: [], dry_run: true }],
  ["101 credentials", { credentials: Array(101).fill({ token: "a" }) }],
])("throws validation_error for %s", async (_title, input) => {
  await expect(call("credentials-verify", input)).rejects.toMatchObject({ code: "validation_error" });
});

test("verifies a hundred credentials, and none", async () => {
  expect(await verifyAll([])).toEqual([]);
  const unknown = Array.from({ length: 100 }, () => ({ token: unknownApiKey() }));
  expect(await verifyAll(unknown)).toEqual(Array(100).fill(invalid("invalid_api_key")));
  expect(calls).toHaveLength(100);
});

test("throws during an outage, when all calls have ended, so that no valid credential is taken for an invalid one", async () => {
  const tokens = [await givenKey(), await givenKey()].map(({ key }) => ({ token: key }));
  let ended = 0;
  beforeCall = async () => {
    // The second call outlasts the first.
    if (calls.length > 1) await sleep(50);
    ended += 1;
    throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  };
  await expect(verifyAll([...tokens, { token: "hello" }])).rejects.toThrow("ECONNREFUSED");
  expect(ended).toBe(2);
});

test("logs how many credentials it rejected, and nothing of them", async () => {
  const { session } = await givenKey();
  const lines: object[] = [];
  logSink.write = (level, line) => void lines.push({ level, ...line });
  await verifyAll([{ token: session }, { token: "hello" }, {}]);
  await verify(session);
  expect(lines).toEqual([{ level: "info", message: "credentials rejected", rejected: 2, verified: 3 }]);
  logSink.write = () => {};
});
