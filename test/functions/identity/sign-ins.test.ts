import { randomUUID } from "node:crypto";
import { transactIf } from "../../../functions/foundation/platform/dynamo.ts";
import { handler as revokeAll } from "../../../functions/identity/api-keys/revoke-all.ts";
import { handler as removeMember } from "../../../functions/identity/members/remove-member.ts";
import { deviceKey, type SignIn } from "../../../functions/identity/sign-ins/sign-in.ts";
import { findByDevice, taking } from "../../../functions/identity/sign-ins/sign-in-store.ts";
import { handler as suspend } from "../../../functions/webhooks/webhook/suspend.ts";
import { givenUsedBudget } from "../../support/request-budget.ts";
import { errorOf, invalidFieldsOf } from "../../support/scenario.ts";
import { send, type TestService, useService } from "../../support/service.ts";
import { changeItem } from "../../support/stored-items.ts";

/* Sign-in of a machine: it shows a code, a person confirms it, and the machine gets a key of that person. */

process.env.CONSOLE_ADDRESS = "https://console.example.com/";
const service = useService();
type User = ReturnType<TestService["user"]>;

const post = (body: object) =>
  send(`${service.baseUrl}/v1/sign-ins`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const begin = async (client = "svc on build-7") => {
  const { body } = await post({ client });
  return body.data as { device_code: string; user_code: string };
};
beforeEach(() => givenUsedBudget("sign-in:address:127.0.0.1", 0));

const limits = () => ({ name: "build-7", expires_at: new Date(Date.now() + 86_400_000).toISOString() });
const decide = ({ api }: Pick<User, "api">, user_code: string, more: object = {}) =>
  api.patch("/v1/sign-ins", { user_code, ...more });
const approve = (user: Pick<User, "api">, code: string, more: object = {}) =>
  decide(user, code, { decision: "approve", ...limits(), ...more });
/** Asks for the key, as if the time between two questions had passed. */
async function ask(device_code: string) {
  await changeItem("apiKeys", { key_hash: deviceKey(device_code) }, { asked_at: new Date(0).toISOString() }).catch(
    () => {},
  );
  return (await post({ device_code })).body.data;
}

test("an approval returns one key, with the name and the limits that the user chose", async () => {
  const user = service.user();
  const project = await service.project(user.userId);
  const started = (await post({ client: "svc on build-7" })).body.data;
  expect(started).toEqual({
    status: "pending",
    device_code: expect.stringMatching(/^[\w-]{43}$/),
    user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
    verification_uri: "https://console.example.com/#/sign-in",
    expires_in: 600,
    interval: 5,
  });
  const { device_code, user_code } = started;
  expect(await ask(device_code)).toEqual({ status: "pending" });
  const shown = await decide(user, ` ${user_code.toLowerCase().replace("-", " ")}`);
  expect(shown.body.data).toMatchObject({ client: "svc on build-7", address: "127.0.0.1", status: "pending" });
  const granted = { permissions: ["webhooks:read"], project_ids: [project] };
  expect((await approve(user, user_code, granted)).body.data).toMatchObject({ status: "approved" });
  const { status, api_key } = await ask(device_code);
  expect([status, api_key]).toEqual(["approved", expect.objectContaining({ name: "build-7", ...granted })]);
  expect((await service.as(api_key.key).get(`/v1/projects/${project}/webhooks`)).status).toBe(200);
  expect((await service.as(api_key.key).get("/v1/api-keys")).status).toBe(403);
  const [listed] = (await user.api.get("/v1/api-keys")).body.data;
  expect(listed).toMatchObject({ id: api_key.id, name: "build-7" });
  const [event] = (await user.api.get("/v1/audit-events")).body.data;
  expect(event).toMatchObject({ action: "api_key.created", actor: { type: "jwt", user_id: user.userId } });
  // A repeated question, and a repeated approval.
  expect(await ask(device_code)).toEqual({ status: "expired" });
  expect(errorOf(await approve(user, user_code))).toEqual({ status: 404, code: "not_found" });
});

test("revoking all keys of a user denies a pending approval, and not a later one", async () => {
  const user = service.user();
  const { device_code, user_code } = await begin();
  await approve(user, user_code);
  expect(await revokeAll({ user_id: user.userId })).toEqual({ revoked: 0 });
  expect(await ask(device_code)).toEqual({ status: "denied" });
  expect((await user.api.get("/v1/api-keys")).body.data).toEqual([]);
  const next = await begin();
  await approve(user, next.user_code);
  expect((await ask(next.device_code)).status).toBe("approved");
});

test("concurrent polls return one key", async () => {
  const user = service.user();
  const { device_code, user_code } = await begin();
  await approve(user, user_code);
  const answers = await Promise.all([post({ device_code }), post({ device_code }), post({ device_code })]);
  const states = answers.map(({ body }) => body.data.status);
  expect(states.filter((state) => state === "approved")).toHaveLength(1);
  expect((await user.api.get("/v1/api-keys")).body.data).toHaveLength(1);
});

test("an approval is deleted with the creation of its key, and a slow second poll creates none", async () => {
  const { device_code, user_code } = await begin();
  await approve(service.user(), user_code);
  const read = await findByDevice(device_code, new Date());
  const take = () => transactIf(taking(read as SignIn));
  expect([await take(), await take()]).toEqual([true, false]);
});

test("no key is created for a project that is suspended, before or after the approval", async () => {
  const user = service.user();
  const project_id = await service.project(user.userId);
  const { device_code, user_code } = await begin();
  await suspend({ project_id, suspended: true });
  const refused = await approve(user, user_code, { project_ids: [project_id] });
  expect(errorOf(refused)).toEqual({ status: 403, code: "project_suspended" });
  await suspend({ project_id, suspended: false });
  await approve(user, user_code, { project_ids: [project_id] });
  await suspend({ project_id, suspended: true });
  expect(await ask(device_code)).toEqual({ status: "denied" });
});

test("a poll within the interval returns slow_down, and a denied sign-in returns denied", async () => {
  const { device_code, user_code } = await begin();
  expect((await post({ device_code })).body.data.status).toBe("pending");
  expect((await post({ device_code })).body.data.status).toBe("slow_down");
  expect((await decide(service.user(), user_code, { decision: "deny" })).body.data.status).toBe("denied");
  expect(await ask(device_code)).toEqual({ status: "denied" });
});

test("a second decision of a code returns 409, also by another user", async () => {
  const [one, other] = [service.user(), service.user()];
  const { device_code, user_code } = await begin();
  expect((await approve(one, user_code)).status).toBe(200);
  for (const decision of ["approve", "deny"]) {
    const again = await decide(other, user_code, { decision, ...limits() });
    expect(errorOf(again)).toEqual({ status: 409, code: "conflict" });
  }
  const { api_key } = await ask(device_code);
  expect((await one.api.get("/v1/api-keys")).body.data).toMatchObject([{ id: api_key.id }]);
});

test("an approval requires a JWT: an API key returns 403, and no credential 401", async () => {
  const user = service.user();
  const { user_code } = await begin();
  const { key } = (await user.api.post("/v1/api-keys", { name: "ci" })).body.data;
  expect(errorOf(await approve({ api: service.as(key) }, user_code))).toEqual({
    status: 403,
    code: "session_required",
  });
  const stranger = await send(`${service.baseUrl}/v1/sign-ins`, { method: "PATCH", body: "{}" });
  expect(stranger.status).toBe(401);
});

test.each<[string, (other: string) => object, string]>([
  ["a project of others", (other) => ({ project_ids: [other] }), "project_ids.0"],
  ["more than 90 days", () => ({ expires_at: new Date(Date.now() + 91 * 86_400_000).toISOString() }), "expires_at"],
  ["no end", () => ({ expires_at: undefined }), "expires_at"],
  ["an end in the past", () => ({ expires_at: new Date(0).toISOString() }), "expires_at"],
  ["an unknown permission", () => ({ permissions: ["everything"] }), "permissions.0"],
  ["no name", () => ({ name: undefined }), "name"],
])("an approval beyond the rights of the user returns 400: %s", async (_, more, field) => {
  const other = await service.project(service.user().userId);
  const { device_code, user_code } = await begin();
  expect(invalidFieldsOf(await approve(service.user(), user_code, more(other)))).toEqual([field]);
  expect(await ask(device_code)).toEqual({ status: "pending" });
});

test("a user who left the project after the approval gets no key created", async () => {
  const user = service.user();
  const project_id = await service.project(user.userId);
  const { device_code, user_code } = await begin();
  await approve(user, user_code, { project_ids: [project_id] });
  await removeMember({ project_id, user_id: user.userId });
  expect(await ask(device_code)).toEqual({ status: "denied" });
  expect((await user.api.get("/v1/api-keys")).body.data).toEqual([]);
});

test("an expired, unknown or malformed code returns 404", async () => {
  const { device_code, user_code } = await begin();
  await changeItem("apiKeys", { key_hash: deviceKey(device_code) }, { valid_until: new Date().toISOString() });
  const user = service.user();
  for (const code of [user_code, "BBBB-BBBB", "-", "x".repeat(100)]) {
    expect((await decide(user, code)).status).toBe(404);
  }
  expect(await ask(device_code)).toEqual({ status: "expired" });
  expect((await post({ device_code: randomUUID() })).body.data).toEqual({ status: "expired" });
});

test("the 11th code of a user and the 11th sign-in of an address return 429", async () => {
  const user = service.user();
  const codes = Array.from({ length: 11 }, (_, at) => `BBBB-BBB${"BCDFGHJKLMN"[at]}`);
  const states = [];
  for (const code of codes) states.push((await decide(user, code)).status);
  expect(states.at(-1)).toBe(429);
  for (let at = 0; at < 10; at++) await post({ client: "flood" });
  const refused = await post({ client: "flood" });
  expect([refused.status, refused.headers.has("retry-after")]).toEqual([429, true]);
});

test.each<[string, object]>([
  ["an invisible character", { client: "svc\u202e" }],
  ["a long name", { client: "x".repeat(101) }],
  ["a number", { device_code: 7 }],
])("a request with %s returns 400", async (_, body) => {
  expect(errorOf(await post(body))).toEqual({ status: 400, code: "validation_error" });
});
