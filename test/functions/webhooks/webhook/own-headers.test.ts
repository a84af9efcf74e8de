import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { certify } from "../../../../functions/deliveries/certification/certify.ts";
import { type TableKey, tables } from "../../../../functions/foundation/manifest/tables.ts";
import { dynamo } from "../../../../functions/foundation/platform/aws.ts";
import { tableName } from "../../../../functions/foundation/platform/env.ts";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import type { Webhook } from "../../../../functions/webhooks/webhook/webhook.ts";
import { rotateSecret } from "../../../../functions/webhooks/webhook/webhook-secret-store.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { carry } from "../../../support/attempts.ts";
import { findSecrets, newDelivery, rowOf, takeDeliveryMessages } from "../../../support/deliveries.ts";
import { useReceiver } from "../../../support/receiver.ts";
import { errorOf, invalidFieldsOf, useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

/* Headers that a user adds to the requests of a webhook. */

const service = useService();
const receiver = useReceiver("test");
const scenario = useScenario(service, () => ({ url: receiver.url }));

const value = "Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyz";
const importedSecret = "text-of-an-earlier-service";
const headers = { Authorization: value, "X-Team": "shop" };
const patch = (body: object) => scenario.api.patch(scenario.path, body);
const list = () => scenario.path.replace(/\/[^/]+$/, "");
const stored = (): Promise<Webhook> => webhooks.get(scenario.projectId, scenario.webhook.id);

afterEach(takeDeliveryMessages);

test("a webhook is created with headers, whose names are shown and whose values are in the table of secrets alone", async () => {
  const logged: string[] = [];
  logSink.write = (_, line) => void logged.push(JSON.stringify(line));
  const body = { url: receiver.url, events: ["deploy.failed"], headers };
  const created = await scenario.api.post(list(), body);
  const { id } = created.body.data;
  const path = `${list()}/${id}`;
  const responses = [created, await scenario.api.get(path), await scenario.api.get(list())];
  for (const { body } of responses) {
    expect([body.data].flat().find((each) => each.id === id).header_names).toEqual(Object.keys(headers));
  }
  responses.push(await scenario.api.get(`/v1/projects/${scenario.projectId}/audit-events`));
  const found: string[] = [];
  for (const key of Object.keys(tables) as TableKey[]) {
    const { Items } = await dynamo().send(new ScanCommand({ TableName: tableName(key) }));
    if (JSON.stringify(Items).includes(value)) found.push(key);
  }
  expect(found).toEqual(["webhookSecrets"]);
  expect(JSON.stringify([responses.map((response) => response.body), logged])).not.toContain(value);
});

test("a change replaces all headers, null removes them, and other changes and a rotation keep them", async () => {
  expect((await patch({ headers })).body.data.header_names).toEqual(["Authorization", "X-Team"]);
  expect((await patch({ name: "Chat" })).body.data.header_names).toEqual(["Authorization", "X-Team"]);
  await scenario.api.post(`${scenario.path}/rotate-secret`, {});
  expect((await findSecrets(scenario.webhook.id))?.headers).toEqual(Object.entries(headers));
  expect((await patch({ headers: { "X-Key": "1" } })).body.data.header_names).toEqual(["X-Key"]);
  const { data } = (await patch({ headers: null })).body;
  expect(data).not.toHaveProperty("header_names");
  expect(await findSecrets(scenario.webhook.id)).not.toHaveProperty("headers");
});

test("a URL of another origin needs the headers again, so that their values go nowhere else", async () => {
  await patch({ headers });
  const other = receiver.url.replace("127.0.0.1", "localhost");
  for (const url of [other, receiver.url.replace("http:", "https:"), receiver.url.replace(/:\d+/, ":1")]) {
    const rejected = await patch({ url });
    expect(invalidFieldsOf(rejected)).toEqual(["headers"]);
    expect(rejected.body.error.details[0].message).toContain("must be given again, or be null");
  }
  expect((await patch({ url: `${receiver.url}/other` })).body.data.header_names).toEqual(["Authorization", "X-Team"]);
  expect((await patch({ url: other, headers: { "X-Key": "1" } })).body.data.header_names).toEqual(["X-Key"]);
  expect((await patch({ url: receiver.url, headers: null })).body.data).not.toHaveProperty("header_names");
  expect((await patch({ url: other })).status).toBe(200);
});

test("requests have them beside those of every delivery, and the values of the moment of the attempt", async () => {
  await patch({ headers });
  await carry(newDelivery(await stored()));
  await patch({ headers: { authorization: "Bearer another" } });
  await carry(newDelivery(await stored()));
  expect(receiver.received.map((request) => request.headers)).toMatchObject([
    { authorization: value, "x-team": "shop", "content-type": "application/json", "x-service-event": "deploy.started" },
    { authorization: "Bearer another", "content-type": "application/json" },
  ]);
  expect(receiver.received[1]?.headers).not.toHaveProperty("x-team");
});

test.each([
  ["the value", value],
  ["the credential after its scheme", value.slice("Bearer ".length)],
  ["the credential in base64", Buffer.from(value.slice("Bearer ".length)).toString("base64")],
])("a response that has %s is masked in the log", async (_, returned) => {
  await patch({ headers });
  receiver.respondWith((_request, response) => response.writeHead(500, { "x-echo": returned }).end(`got ${returned}!`));
  const delivery = newDelivery(await stored());
  await carry(delivery);
  const row = JSON.stringify(await rowOf(delivery));
  expect(row).toContain("got ***");
  expect(row).not.toContain(returned);
});

test.each([
  ["a password", "robot:hunter2-Very-Secret", "hunter2"],
  ["a short one with a colon", "robot:hunt:er2", "hunt"],
])("a response that has the user name and %s of Basic authentication is masked in the log", async (_, sent, part) => {
  await patch({ headers: { Authorization: `Basic ${Buffer.from(sent).toString("base64")}` } });
  const password = sent.slice("robot:".length);
  receiver.respondWith((_request, response) => response.writeHead(401).end(`${sent}, ${password}!`));
  const delivery = newDelivery(await stored());
  await carry(delivery);
  const row = JSON.stringify(await rowOf(delivery));
  expect(row).toContain("***");
  expect(row).not.toContain(part);
});

test("in shadow mode, the log has their names", async () => {
  await patch({ headers, mode: "shadow" });
  const delivery = newDelivery(await stored());
  await carry(delivery);
  expect((await rowOf(delivery)).shadow?.headers).toMatchObject({ Authorization: "***", "X-Team": "***" });
});

test("the probes of a certification have them too", async () => {
  await patch({ headers });
  expect((await scenario.api.post(`${scenario.path}/certify`, {})).status).toBe(202);
  const [call] = await takeDeliveryMessages();
  await certify(call as never, () => 60_000);
  expect(receiver.received.length).toBeGreaterThanOrEqual(6);
  expect(receiver.received.map((request) => request.headers.authorization)).toEqual(receiver.received.map(() => value));
});

test.each([
  ["a header", value.slice("Bearer ".length)],
  ["the secret, an imported text", importedSecret],
])("a redirect of a probe that has %s is masked in the report", async (_, returned) => {
  await patch({ headers });
  await rotateSecret(await stored(), importedSecret, { expiresAt: undefined, at: new Date().toISOString() });
  const location = `https://example.com/?of=${returned}`;
  receiver.respondWith((_request, response) => response.writeHead(302, { location }).end());
  const { data } = (await scenario.api.post(`${scenario.path}/certify`, {})).body;
  const [call] = await takeDeliveryMessages();
  await certify(call as never, () => 60_000);
  const report = JSON.stringify((await scenario.api.get(`${scenario.path}/certifications/${data.id}`)).body);
  expect(report).toContain("https://example.com/?of=***");
  expect(report).not.toContain(returned);
});

test.each<[string, unknown, string]>([
  ["a list", ["Authorization"], "must be a JSON object with names and values"],
  ["none", {}, "must have 1 to 5 headers, or be null"],
  ["six", Object.fromEntries([..."abcdef"].map((name) => [name, "1"])), "must have 1 to 5 headers, or be null"],
  ["a name with a space", { "X Key": "1" }, "must have names of headers"],
  ["an empty name", { "": "1" }, "must have names of headers"],
  ["a name that is too long", { ["x".repeat(101)]: "1" }, "must have names of headers"],
  ["a line break in a name", { "X-Key\r\nHost": "1" }, "must have names of headers"],
  ["a name twice", { "X-Key": "1", "x-key": "2" }, "must not have a header twice"],
  ["an empty value", { "X-Key": "" }, "must have a value of 1 to 2048"],
  ["a number", { "X-Key": 1 }, "must have a value of 1 to 2048"],
  ["a line break in a value", { "X-Key": "a\r\nHost: b" }, "must have a value of 1 to 2048"],
  ["a line break at the end", { "X-Key": "a\n" }, "must have a value of 1 to 2048"],
  ["a space at the end", { "X-Key": "a " }, "must have a value of 1 to 2048"],
  ["an umlaut", { "X-Key": "ä" }, "must have a value of 1 to 2048"],
  ["a value that is too long", { "X-Key": "x".repeat(2_049) }, "must have a value of 1 to 2048"],
  ...[
    ...["Host", "content-type", "Content-Length", "USER-AGENT", "Accept", "Connection", "Transfer-Encoding", "TE"],
    ...["X-Service-Signature", "X-Service-Sequence", "webhook-id", "Signature-Input", "Proxy-Authorization", "Expect"],
  ].map((name): [string, unknown, string] => [name, { [name]: "1" }, `must not have ${name}, which the service`]),
])("headers are rejected with a reason: %s", async (_, given, reason) => {
  const response = await patch({ headers: given });
  expect(errorOf(response)).toEqual({ status: 400, code: "validation_error" });
  expect(JSON.stringify(response.body.error.details)).toContain(JSON.stringify(reason).slice(1, -1));
  expect(await stored()).not.toHaveProperty("header_names");
});

test("a value that is rejected is not in the error", async () => {
  const { body } = await patch({ headers: { Authorization: "secret-of-a-user\n" } });
  expect(JSON.stringify(body)).not.toContain("secret-of-a-user");
});

/** Fields that came with them, and their rules. */
test.each<[string, unknown, string]>([
  ["format", "mattermost", "must be one of standard, slack, discord"],
  ["format", null, "must be one of standard, slack, discord"],
  ["delivery", "newest", "must be every or latest"],
  ["settle_seconds", 61, "must be a whole number of seconds from 0 to 60"],
  ["settle_seconds", -1, "must be a whole number of seconds from 0 to 60"],
  ["settle_seconds", 1.5, "must be a whole number of seconds from 0 to 60"],
  ["settle_seconds", 10, 'needs "delivery": "latest"'],
  ["header_names", ["X-Key"], "is not a known field"],
])("%s %j is rejected with its rule", async (field, given, rule) => {
  const rejected = invalidFieldsOf(await patch({ [field]: given }));
  expect(rejected).toContain(field);
  const { body } = await scenario.api.post(list(), { url: receiver.url, events: ["*"], [field]: given });
  expect(body.error.details[0].message).toContain(rule);
});

test("a webhook that uses none of the new fields has none of them, also after they are taken back", async () => {
  const names = ["format", "header_names", "delivery", "settle_seconds", "subscribed_at"];
  const before = Object.keys((await scenario.api.get(scenario.path)).body.data);
  expect(before.filter((name) => names.includes(name))).toEqual([]);
  const all = { format: "slack", headers, delivery: "latest", settle_seconds: 5 };
  expect((await patch(all)).body.data).toMatchObject({ format: "slack", delivery: "latest", settle_seconds: 5 });
  const { data } = (await patch({ format: "standard", headers: null, delivery: "every" })).body;
  expect(Object.keys(data)).toEqual(before);
});
