import { randomUUID } from "node:crypto";
import { Webhook as Verifier } from "standardwebhooks";
import { logSink } from "../../../../functions/foundation/platform/log.ts";
import type { ImportResult } from "../../../../functions/foundation/schema/import-rows.ts";
import { bodySignature } from "../../../../functions/webhooks/receiver/signature.ts";
import { beforeTransaction, interceptDynamo, restoreAws } from "../../../support/aws-calls.ts";
import { call } from "../../../support/call.ts";
import { eventOf, findSecrets, publish } from "../../../support/deliveries.ts";
import { startReceiver } from "../../../support/receiver.ts";
import { type Api, useService } from "../../../support/service.ts";

const service = useService({ deliver: true });
let api: Api;
let project_id: string;
let path: string;
beforeEach(async () => {
  const user = service.user();
  api = user.api;
  project_id = await service.project(user.userId);
  path = `/v1/projects/${project_id}/webhooks`;
});

const importAll = (webhooks: unknown, more: object = {}) =>
  call<ImportResult>("webhooks-import", { webhooks, ...more });
const secret = "0123456789abcdef";
const AROUND = "must not begin or end with a space, a line break or a byte order mark";
const url = "https://example.com/hook";
const row = (changes: object = {}) => ({ project_id, url, events: ["deploy.started"], secret, ...changes });
const result = (imported: number, unchanged = 0, ...refused: [index: number, reason: string][]) => ({
  imported,
  unchanged,
  refused: refused.map(([index, reason]) => ({ index, reason })),
});
const listed = async () => (await api.get(path)).body.data;

test("an imported webhook is like any other, and was created by the platform", async () => {
  const rows = [
    row({ name: "Chat" }),
    row({ url: "https://example.com/off", enabled: false }),
    row({ url: "https://example.com/shadow", mode: "shadow", enabled: true }),
  ];
  expect(await importAll(rows)).toEqual(result(3));
  const [first, off, shadow] = await listed();
  expect(first).toMatchObject({ url, name: "Chat", events: ["deploy.started"], enabled: true });
  expect(off).toMatchObject({ url: "https://example.com/off", enabled: false, disabled_reason: "manual" });
  expect(shadow).toMatchObject({ mode: "shadow", enabled: true });
  const { body } = await api.get(`${path}/${first.id}`);
  expect(body.data).toMatchObject({ created_by: null, updated_by: null, secret_rotated_at: null });
  expect(JSON.stringify([body, first, off, shadow])).not.toContain(secret);
  const audit = (await api.get(`/v1/projects/${project_id}/audit-events`)).body.data;
  expect(audit).toHaveLength(4);
  expect(audit[2]).toMatchObject({ action: "webhook.created", actor: { type: "platform" }, resource_id: first.id });
  expect(JSON.stringify(audit)).not.toContain(secret);
});

test.each([
  ["text", secret],
  ["text after whsec_", "whsec_old-platform.signing_key"],
  ["base64 after whsec_", "whsec_b2xkIHBsYXRmb3Jt+/A="],
  ["256 bytes beyond ASCII", "é".repeat(128)],
])("signs with the existing secret, %s, also during the overlap of a rotation", async (_, existing) => {
  const receiver = await startReceiver();
  expect(await importAll([row({ url: receiver.url, secret: existing })])).toEqual(result(1));
  const [{ id }] = await listed();
  await publish(eventOf(project_id));
  const [first] = await receiver.waitFor(1);
  const isText = existing !== "whsec_b2xkIHBsYXRmb3Jt+/A=";
  const verifier = isText ? new Verifier(Buffer.from(existing), { format: "raw" }) : new Verifier(existing);
  const verify = ({ body, headers }: NonNullable<typeof first>) =>
    verifier.verify(body, headers as Record<string, string>);
  if (!first) return;
  expect(verify(first)).toEqual(JSON.parse(first.body));
  expect(first.headers["x-service-signature"]).toBe(bodySignature(first.body, existing));

  const { body } = await api.post(`${path}/${id}/rotate-secret`, {});
  expect(body.data.secret).toMatch(/^whsec_[0-9a-f]{64}$/);
  await publish(eventOf(project_id));
  const [, second] = await receiver.waitFor(2);
  if (!second) return;
  expect(verify(second)).toEqual(JSON.parse(second.body));
  expect(second.headers["x-service-signature"]).toBe(bodySignature(second.body, body.data.secret));
  expect(second.headers["x-service-signature-previous"]).toBe(bodySignature(second.body, existing));
  // Each rotation moves it to the next of three places.
  for (let place = 1; place <= 3; place++) {
    expect(await importAll([row({ url: receiver.url, secret: existing })])).toEqual(result(0, 1));
    await api.post(`${path}/${id}/rotate-secret`, {});
  }
  await receiver.close();
});

test("the same row again changes nothing, also after the webhook was renamed, disabled, or switched", async () => {
  const rows = [row({ events: ["deploy.started", "deploy.failed"], mode: "shadow" })];
  const other = { url: "https://example.com/other", events: ["deploy.failed"] };
  const older = [await api.post(path, other), await api.post(path, other)];
  expect(await importAll(rows)).toEqual(result(1));
  const [, , { id }] = await listed();
  for (const { body } of older) await api.patch(`${path}/${body.data.id}`, { url });
  await api.patch(`${path}/${id}`, { name: "New", mode: "live", enabled: false });
  const before = await listed();
  expect(await importAll([row({ events: ["deploy.failed", "deploy.started"], mode: "shadow" }), ...rows])).toEqual(
    result(0, 2),
  );
  expect(await listed()).toEqual(before);
});

test("null is the same as an absent field", async () => {
  const nulls = { name: null, filter: null, enabled: null, mode: null };
  expect(await importAll([row(nulls)])).toEqual(result(1));
  expect(await importAll([row()])).toEqual(result(0, 1));
  const [webhook] = await listed();
  expect(webhook).toMatchObject({ enabled: true });
  expect(Object.keys(webhook)).not.toEqual(expect.arrayContaining([expect.stringMatching(/^(name|filter|mode)$/)]));
});

test("a row with the URL of a webhook, and another secret or other events, is refused and changes nothing", async () => {
  await importAll([row()]);
  const before = await listed();
  const of = `the webhook ${before[0].id}, which has this URL`;
  const others = [
    row({ secret: "another secret of 16 bytes" }),
    row({ events: ["deploy.failed"] }),
    row({ url: "HTTPS://EXAMPLE.com:443/hook", secret: "another secret of 16 bytes" }),
  ];
  expect(await importAll(others)).toEqual(
    result(
      0,
      0,
      [0, `secret must be the same as in ${of}`],
      [1, `events must be the same as in ${of}`],
      [2, `secret must be the same as in ${of}`],
    ),
  );
  expect(await listed()).toEqual(before);
  expect(await findSecrets(before[0].id)).toMatchObject({ current: secret, previous: [] });
});

test("a row that differs from two webhooks with its URL is refused for the older one", async () => {
  await importAll([row()]);
  await api.post(path, { url, events: ["deploy.failed"] });
  const [{ id }] = await listed();
  const refusal = `secret must be the same as in the webhook ${id}, which has this URL`;
  expect(await importAll([row({ secret: "another secret of 16 bytes" })])).toEqual(result(0, 0, [0, refusal]));
});

test.each([true, false])("refuses rows with the reason, and imports the others, in a dry run: %s", async (dry_run) => {
  const suspended = await service.project(service.user().userId);
  await call("projects-suspend", { project_id: suspended, suspended: true });
  const rows: [changes: object, reason: string | undefined][] = [
    [{}, undefined],
    [{ project_id: "p-1" }, "project_id must be a UUID"],
    [{ url: "http://example.com/" }, "url must start with https://"],
    [{ url: "https://10.0.0.1/" }, "url must not point to a private or reserved address"],
    [{ url: "https://printer.local/" }, "url must have a public host name"],
    [{ events: ["deploy.unknown"] }, "events.0 must be one of"],
    [{ events: [] }, "events must name at least one event"],
    [{ secret: "x".repeat(15) }, "secret must have 16 to 256 bytes"],
    [{ secret: "é".repeat(129) }, "secret must have 16 to 256 bytes"],
    [{ secret: undefined }, "secret is required"],
    [{ secret: `${secret}\n` }, `secret ${AROUND}`],
    [{ secret: ` ${secret}` }, `secret ${AROUND}`],
    [{ secret: `\ufeff${secret}` }, `secret ${AROUND}`],
    [{ secret: " ".repeat(20) }, `secret ${AROUND}`],
    [{ secret: `${secret}\t${secret}` }, "secret must not contain control characters"],
    [{ secret: `${secret}\u0000x` }, "secret must not contain control characters"],
    [{ secret: `v1,whsec_${secret}` }, "secret must be given without v1, in front: whsec_ and what follows it"],
    [{ secret: "\ud800 is not valid Unicode" }, "secret must be valid Unicode"],
    [{ enabled: "yes" }, "enabled must be true or false"],
    [{ mode: "dry" }, "mode must be live or shadow"],
    [{ name: " " }, "name must not be blank"],
    [{ id: randomUUID() }, "id is not a known field"],
    [{ project_id: suspended }, "The project is suspended"],
    [{ secret: "another secret of 16 bytes" }, "secret must be the same as in"],
    [{ url: "https://example.com/other" }, undefined],
  ];
  const { imported, unchanged, refused } = await importAll([...rows.map(([changes]) => row(changes)), null], {
    dry_run,
  });
  expect({ imported, unchanged }).toEqual({ imported: 2, unchanged: 0 });
  const expected = rows.flatMap(([, reason], index) =>
    reason === undefined ? [] : [{ index, reason: expect.stringContaining(reason) }],
  );
  expect(refused).toEqual([...expected, { index: rows.length, reason: "the row must be a JSON object" }]);
  expect(await listed()).toHaveLength(dry_run ? 0 : 2);
});

test("webhooks of a project are read and stored with one call each, and only their secrets are compared one by one", async () => {
  const rows = [1, 2, 3].map((number) => row({ url: `https://example.com/${number}` }));
  // The service works on other projects at the same time.
  let ids = [project_id];
  const calls: string[] = [];
  interceptDynamo(({ command, input }, send) => {
    if (ids.some((id) => JSON.stringify(input).includes(id))) calls.push(command);
    return send();
  });
  expect(await importAll(rows)).toEqual(result(3));
  expect(calls).toEqual(["QueryCommand", "TransactWriteItemsCommand"]);
  const imported = await listed();
  expect(imported.map(({ url }: { url: string }) => url)).toEqual(rows.map(({ url }) => url));
  ids = [project_id, ...imported.map(({ id }: { id: string }) => id)];
  calls.length = 0;
  expect(await importAll(rows)).toEqual(result(0, 3));
  restoreAws();
  expect(calls).toHaveLength(1 + 3);
});

test("the limit of webhooks per project holds, and a dry run knows it", async () => {
  const rows = Array.from({ length: 22 }, (_, index) => row({ url: `https://example.com/${index}` }));
  const full = "The limit of 20 webhooks per project is reached. Delete one first.";
  const expected = result(20, 0, [20, full], [21, full]);
  expect(await importAll(rows, { dry_run: true })).toEqual(expected);
  expect(await listed()).toEqual([]);
  expect(await importAll(rows)).toEqual(expected);
  expect(await listed()).toHaveLength(20);
  expect((await api.post(path, { url, events: ["deploy.started"] })).status).toBe(409);
  expect(await importAll(rows, { dry_run: true })).toEqual({ ...expected, imported: 0, unchanged: 20 });
});

test("calls with the same rows at the same time store each webhook once", async () => {
  const rows = [1, 2, 3].map((number) => row({ url: `https://example.com/${number}` }));
  const results = await Promise.all([1, 2, 3].map(() => importAll(rows)));
  expect(await listed()).toHaveLength(3);
  expect(results.reduce((sum, { imported }) => sum + imported, 0)).toBe(3);
  expect(results.flatMap(({ refused }) => refused)).toEqual([]);
});

test("a row that is unchanged is counted once, also when another call stores a webhook meanwhile", async () => {
  const [known, other, added] = [1, 2, 3].map((number) => row({ url: `https://example.com/${number}` }));
  await importAll([known]);
  beforeTransaction(() => importAll([other]));
  expect(await importAll([known, added])).toEqual(result(1, 1));
  restoreAws();
});

test("the log has the counts of an import, and no secret", async () => {
  const lines: string[] = [];
  const write = logSink.write;
  logSink.write = (_level, line) => void lines.push(JSON.stringify(line));
  await importAll([row(), row({ secret: "another secret of 16 bytes" })]);
  logSink.write = write;
  expect(lines.filter((line) => line.includes("rows imported"))).toHaveLength(1);
  expect(lines.join()).not.toMatch(new RegExp(`${secret}|another secret`));
});

test.each<[string, unknown]>([
  ["no list", undefined],
  ["more than a thousand rows", Array.from({ length: 1_001 }, () => ({}))],
])("fails for %s", async (_, webhooks) => {
  await expect(importAll(webhooks)).rejects.toMatchObject({ code: "validation_error" });
});
