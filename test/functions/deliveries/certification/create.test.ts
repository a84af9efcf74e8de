import { randomBytes } from "node:crypto";
import { type Options, verifyWebhook } from "../../../../docs/receivers/node/verify-webhook.mjs";
import { createCertification } from "../../../../functions/deliveries/certification/certification.ts";
import * as certifications from "../../../../functions/deliveries/certification/certification-store.ts";
import { find } from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { interceptDynamo, interceptSqs, isCall } from "../../../support/aws-calls.ts";
import { changeWebhook, rowsOf } from "../../../support/deliveries.ts";
import { eventually } from "../../../support/eventually.ts";
import { type Received, useReceiver } from "../../../support/receiver.ts";
import { errorOf, useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

/* The certification of receivers that verify well and badly, through the API and the sender. */

const service = useService({ deliver: true });
const receiver = useReceiver("test");
const scenario = useScenario(service, () => ({ url: receiver.url, events: ["deploy.failed"] }));

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const certify = () => scenario.api.post(`${scenario.path}/certify`);

/** Certifies the receiver and waits for the report. */
async function certified() {
  const { status, body } = await certify();
  expect(status).toBe(202);
  return eventually(async () => {
    const report = (await scenario.api.get(`${scenario.path}/certifications/${body.data.id}`)).body.data;
    expect(report.status).toBe("finished");
    return report;
  });
}

/** Responds with the status that a function returns for a request, or 500 when it throws. */
function respondAs(statusOf: (request: Received) => number): void {
  receiver.respondWith((request, response) => {
    let status = 500;
    try {
      status = statusOf(request);
    } catch {}
    response.writeHead(status).end();
  });
}

/** Verifies as the example for Node does. */
const verifyAs =
  (options: Partial<Options> = {}, changed = (body: string) => body) =>
  ({ body, headers }: Received): number => {
    try {
      verifyWebhook({ body: changed(body), headers, secret: scenario.webhook.secret, ...options });
      return 204;
    } catch {
      return 401;
    }
  };

const failedChecks = ({ checks }: { checks: { check: string; passed: boolean }[] }) =>
  checks.filter(({ passed }) => !passed).map(({ check }) => check);

test("a certification starts without checks", async () => {
  const { status, body } = await certify();
  expect(status).toBe(202);
  const { id, created_at, ...rest } = body.data;
  expect(id).toMatch(UUID);
  expect(created_at).toMatch(TIME);
  const webhook_id = scenario.webhook.id;
  expect(rest).toEqual({ webhook_id, status: "running", finished_at: null, passed: null, checks: [] });
});

test("a receiver that verifies as the example for Node does passes every check", async () => {
  respondAs(verifyAs());
  const { passed, finished_at, checks } = await certified();
  expect(passed).toBe(true);
  expect(finished_at).toMatch(TIME);
  const duration_ms = expect.any(Number);
  const accepted = { expected: "2xx", status_code: 204, error_code: null, duration_ms, passed: true, hint: null };
  const rejected = { ...accepted, expected: "4xx", status_code: 401, error_code: "http_status" };
  expect(checks).toEqual([
    { check: "valid", ...accepted },
    { check: "repeated", ...accepted },
    { check: "unusual_body", ...accepted },
    { check: "forged_signature", ...rejected },
    { check: "stale_timestamp", ...rejected },
    { check: "cut_body", ...rejected },
    // Of the slowest response, whichever it is.
    expect.objectContaining({ check: "response_time", expected: "within 15 s", passed: true, hint: null }),
  ]);
});

test.each<[string, () => (request: Received) => number, string[]]>([
  ["verifies nothing", () => () => 200, ["forged_signature", "stale_timestamp", "cut_body"]],
  ["rejects everything", () => () => 401, ["valid", "repeated", "unusual_body"]],
  ["verifies the body alone, which covers no time", () => verifyAs({ scheme: "body" }), ["stale_timestamp"]],
  ["tolerates a timestamp of a day", () => verifyAs({ toleranceSeconds: 86_400 }), ["stale_timestamp"]],
  ["has another secret", () => verifyAs({ secret: `whsec_${"0".repeat(64)}` }), ["valid", "repeated", "unusual_body"]],
  [
    "parses and serializes the body before it verifies",
    () => verifyAs({}, (body) => JSON.stringify(JSON.parse(body))),
    ["unusual_body"],
  ],
  ["reads the body as Latin-1", () => verifyAs({}, (body) => Buffer.from(body).toString("latin1")), ["unusual_body"]],
  ["trims the body", () => verifyAs({}, (body) => body.trim()), ["unusual_body"]],
  [
    "parses the body first, and fails with 500 when it cannot",
    () => (request) => JSON.parse(request.body) && verifyAs()(request),
    ["cut_body"],
  ],
  [
    "returns 409 for an id that it has seen",
    () => {
      const ids = new Set();
      const isNew = (id: unknown) => ids.size < ids.add(id).size;
      return (request) => {
        const status = verifyAs()(request);
        return status === 401 || isNew(request.headers["webhook-id"]) ? status : 409;
      };
    },
    ["repeated"],
  ],
  ["verifies any of the two signatures", () => verifiesAny, ["stale_timestamp"]],
])("a receiver that %s fails the checks that show it, each with a hint", async (_, behaviour, expected) => {
  respondAs(behaviour());
  const report = await certified();
  expect({ passed: report.passed, failed: failedChecks(report) }).toEqual({ passed: false, failed: expected });
  for (const { passed, hint } of report.checks)
    expect(hint).toEqual(passed ? null : expect.stringMatching(/\w{3}.*\.$/));
});

function verifiesAny(request: Received): number {
  return verifyAs()(request) === 204 ? 204 : verifyAs({ scheme: "body" })(request);
}

test("a receiver that is down fails every check with the hint of a delivery", async () => {
  await receiver.close();
  const { passed, checks } = await certified();
  expect(passed).toBe(false);
  const refused = { passed: false, status_code: null, error_code: "connection_refused" };
  const hint = expect.stringContaining("check that the receiver is running");
  for (const each of checks) {
    if (each.check === "repeated") expect(each.hint).toContain("Not sent");
    else expect(each).toMatchObject({ ...refused, hint });
  }
});

test("the probes are marked in header and body, and appear in no list", async () => {
  const { id } = await certified();
  expect(receiver.received).toHaveLength(6);
  for (const { headers, body } of receiver.received) {
    expect(headers).toMatchObject({ "x-service-probe": id, "x-service-event": "deploy.failed" });
    expect(headers["webhook-id"]).toBe(headers["x-service-delivery"]);
    expect(body.replace(/\s/g, "")).toContain('"event":"deploy.failed"');
  }
  const complete = receiver.received.filter(({ body }) => body.trim().endsWith("}"));
  expect(complete).toHaveLength(5);
  for (const { body } of complete) {
    expect(JSON.parse(body)).toMatchObject({
      project_id: scenario.projectId,
      data: { test: true, certification_id: id },
    });
  }
  expect((await scenario.api.get(`${scenario.path}/deliveries`)).body.data).toEqual([]);
  expect(await rowsOf(scenario.webhook)).toEqual([]);
});

test("only the repeated delivery has the id and the body of another one", async () => {
  await certified();
  const ids = receiver.received.map(({ headers }) => headers["webhook-id"]);
  expect(new Set(ids).size).toBe(5);
  const repeated = receiver.received.filter(
    ({ headers }) => ids.filter((id) => id === headers["webhook-id"]).length > 1,
  );
  expect(new Set(repeated.map(({ body, headers }) => body + headers["webhook-signature"])).size).toBe(1);
  expect(repeated).toHaveLength(2);
});

test.each([410, 500])(
  "a certification changes only the last certification of a webhook whose receiver returns %d",
  async (status) => {
    const before = await find(scenario.projectId, scenario.webhook.id);
    receiver.respondWith(status);
    const { id, finished_at, passed } = await certified();
    expect(passed).toBe(false);
    const last_certification = { id, finished_at, passed };
    expect(await find(scenario.projectId, scenario.webhook.id)).toEqual({ ...before, last_certification });
  },
);

test("a webhook shows its last certification, alone and in the list, until it gets another URL", async () => {
  const { api, path, projectId, webhook } = scenario;
  const shown = async () => {
    const [one, all] = [await api.get(path), await api.get(`/v1/projects/${projectId}/webhooks`)];
    const listed = all.body.data.find(({ id }: { id: string }) => id === webhook.id);
    return [one.body.data, listed].map(({ last_certification }) => last_certification);
  };
  expect(await shown()).toEqual([undefined, undefined]);
  await certified();
  respondAs(verifyAs());
  const { id, finished_at } = await certified();
  const last = { id, finished_at, passed: true };
  expect(await shown()).toEqual([last, last]);
  await api.patch(path, { url: webhook.url, events: ["deploy.failed"] });
  expect(await shown()).toEqual([last, last]);
  await api.patch(path, { url: `${webhook.url}other` });
  expect(await shown()).toEqual([undefined, undefined]);
});

test("a receiver that returns 429 to what is not authentic does not pass", async () => {
  respondAs((request) => (verifyAs()(request) === 204 ? 204 : 429));
  expect(failedChecks(await certified())).toEqual(["forged_signature", "stale_timestamp", "cut_body"]);
});

test("a disabled or failing webhook is certified too", async () => {
  respondAs(verifyAs());
  const longAgo = new Date(Date.now() - 600_000).toISOString();
  await changeWebhook(scenario.webhook, {
    disabled_at: longAgo,
    disabled_reason: "failing",
    failing_since: longAgo,
    probe_at: new Date(Date.now() + 600_000).toISOString(),
  });
  expect((await certified()).passed).toBe(true);
});

test("a certification is stored before its message is sent, and an error if that is not accepted", async () => {
  const done: string[] = [];
  interceptDynamo((call, send) => {
    if (isCall(call, "PutItem", "deliveries")) done.push("stored");
    return send();
  });
  interceptSqs(async ({ command }, send) => {
    if (command !== "SendMessageBatchCommand") return send();
    done.push("sent");
    throw new Error("SQS is unavailable");
  });
  expect(errorOf(await certify())).toEqual({ status: 503, code: "service_unavailable" });
  expect(done).toEqual(["stored", "sent"]);
});

const read = (id: string) => scenario.api.get(`${scenario.path}/certifications/${id}`);

test("a certification that finished stays finished", async () => {
  const certification = createCertification(scenario.webhook.id, new Date(Date.now() - 86_400_000), randomBytes(16));
  await certifications.insert(certification);
  const at = new Date().toISOString();
  await certifications.finish(certification, {
    results: { valid: { duration_ms: 5, status_code: 200 } },
    finished_at: at,
  });
  expect((await read(certification.id)).body.data).toMatchObject({
    status: "finished",
    finished_at: at,
    passed: false,
  });
});

test("a certification is no delivery", async () => {
  const { id } = (await certify()).body.data;
  expect(errorOf(await scenario.api.get(`${scenario.path}/deliveries/${id}`))).toEqual({
    status: 404,
    code: "not_found",
  });
});
