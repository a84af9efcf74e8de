import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { Attempt, Delivery } from "../../../functions/deliveries/delivery.ts";
import { attempt } from "../../support/attempts.ts";
import { changeWebhook, givenDelivery, givenWaiting, givenWebhook } from "../../support/deliveries.ts";
import { useReceiver } from "../../support/receiver.ts";
import { errorOf, useScenario } from "../../support/scenario.ts";
import { useService } from "../../support/service.ts";

const receiver = useReceiver("test");
const service = useService();
const scenario = useScenario(service, () => ({ url: receiver.url }));

const pathOf = ({ id }: Pick<Delivery, "id">, webhook = scenario.path) => `${webhook}/deliveries/${id}`;
const shown = async (delivery: Delivery) => (await scenario.api.get(pathOf(delivery))).body.data;

/** Makes the first attempt of a new delivery and returns its representation. */
async function onlyAttempt() {
  const delivery = await givenWaiting(scenario.webhook);
  await attempt(delivery);
  const { attempts } = await shown(delivery);
  expect(attempts).toHaveLength(1);
  return attempts[0];
}

test("the delivery detail returns the delivery with its payload and no attempts before the first one", async () => {
  const delivery = await givenWaiting(scenario.webhook);
  const { status, body } = await scenario.api.get(pathOf(delivery));
  expect(status).toBe(200);
  expect(body).toEqual({
    data: {
      id: delivery.id,
      webhook_id: scenario.webhook.id,
      event: "deploy.started",
      deployment_id: delivery.deployment_id,
      status: "pending",
      test: false,
      created_at: delivery.created_at,
      waiting_for: null,
      next_attempt_at: delivery.next_attempt_at,
      attempt_count: 0,
      last_attempt: null,
      payload: JSON.parse(delivery.body),
      attempts: [],
    },
  });
});

test("the delivery detail returns the payload unchanged, including numbers beyond double precision", async () => {
  const data = '{"big":12345678901234567890,"precise":0.1000000000000000055,"one":1.0,"text":"größer \\u2028"}';
  const body = `{"event":"deploy.started","data":${data}}`;
  const delivery = await givenWaiting(scenario.webhook, { body });
  const headers = { authorization: `Bearer ${scenario.token}` };
  const text = await (await fetch(`${service.baseUrl}${pathOf(delivery)}`, { headers })).text();
  expect(text).toContain('"big":12345678901234567890,"precise":0.1000000000000000055,"one":1.0');
  expect(JSON.parse(text).data.payload).toEqual(JSON.parse(body));
});

test("the delivery detail returns the attempts with their responses, in order", async () => {
  const delivery = await givenWaiting(scenario.webhook);
  receiver.respondWith((_, response) => response.writeHead(503, { Server: "x" }).end("busy\u0000"));
  await attempt(delivery);
  receiver.respondWith((_, response) => response.writeHead(200, { Server: "x" }).end("thanks"));
  await attempt(delivery);
  const { status, attempt_count, attempts } = await shown(delivery);
  expect({ status, attempt_count }).toEqual({ status: "succeeded", attempt_count: 2 });
  const common = { at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/), duration_ms: expect.any(Number) };
  expect(attempts).toEqual([
    {
      ...common,
      number: 1,
      request_count: 1,
      status_code: 503,
      error_code: "http_status",
      response_excerpt: "busy",
      response_headers: { server: "x" },
      trigger: "schedule",
      hint: expect.stringContaining("503"),
    },
    {
      ...common,
      number: 2,
      request_count: 1,
      status_code: 200,
      error_code: null,
      response_excerpt: "thanks",
      response_headers: null,
      trigger: "schedule",
      hint: null,
    },
  ]);
});

test("the delivery detail returns all attempts, with the responses of the newest three", async () => {
  const delivery = await givenWaiting(scenario.webhook);
  for (let number = 1; number <= 5; number++) {
    receiver.respondWith((_, response) => response.writeHead(503, { "x-try": number }).end(`response ${number}`));
    await attempt(delivery);
  }
  const { attempts } = await shown(delivery);
  const responses = attempts.map(({ number, response_excerpt, response_headers }: Attempt) => [
    ...[number, response_excerpt, response_headers],
  ]);
  expect(responses).toEqual([
    [1, null, null],
    [2, null, null],
    [3, "response 3", { "x-try": "3" }],
    [4, "response 4", { "x-try": "4" }],
    [5, "response 5", { "x-try": "5" }],
  ]);
});

describe("a hint", () => {
  test("for a redirect names the target to register", async () => {
    receiver.respondWith((_, response) => response.writeHead(308, { Location: "https://new.example.com/hook" }).end());
    const only = await onlyAttempt();
    expect(only).toMatchObject({ status_code: 308, error_code: "http_status" });
    expect(only.hint).toContain("https://new.example.com/hook");
    expect(only).not.toHaveProperty("detail");
  });

  test("for a redirect to a path names the whole URL", async () => {
    receiver.respondWith((_, response) => response.writeHead(301, { Location: "/v2" }).end());
    expect((await onlyAttempt()).hint).toContain(new URL("/v2", receiver.url).href);
  });

  test("for a 401 names the credentials that it asks for, in the list and the webhook's health too", async () => {
    receiver.respondWith((_, response) => response.writeHead(401, { "WWW-Authenticate": 'basic realm="a"' }).end());
    const { hint } = await onlyAttempt();
    expect(hint).toContain("Basic credentials");
    const [listed] = (await scenario.api.get(`${scenario.path}/deliveries`)).body.data;
    expect(listed.last_attempt).toMatchObject({ status_code: 401, hint });
    expect((await scenario.api.get(scenario.path)).body.data.health.last_error.hint).toBe(hint);
  });

  test("for a TLS failure names the cause", async () => {
    const fixture = (name: string) => readFileSync(new URL(`../../fixtures/${name}`, import.meta.url));
    const server = https.createServer({ cert: fixture("tls-cert.pem"), key: fixture("tls-key.pem") });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    await changeWebhook(scenario.webhook, { url: `https://localhost:${(server.address() as AddressInfo).port}/` });
    const only = await onlyAttempt();
    server.close();
    expect(only).toMatchObject({ status_code: null, error_code: "tls_error", response_excerpt: null });
    expect(only.hint).toContain("DEPTH_ZERO_SELF_SIGNED_CERT");
    expect(only.hint).toContain("certificate from a public authority");
  });

  test.each([
    ["a port on which nothing listens", "http://127.0.0.1:1/", "connection_refused"],
    ["a private address", "https://10.0.0.1/", "address_blocked"],
    ["a name that does not resolve", "https://no-such-host.invalid/", "dns_error"],
  ])("is returned with the error code for %s", async (_, url, error_code) => {
    await changeWebhook(scenario.webhook, { url });
    const only = await onlyAttempt();
    expect(only).toMatchObject({ status_code: null, error_code, hint: expect.stringMatching(/\.$/) });
  });
});

test("the delivery detail returns no secret and no internal attribute of the row", async () => {
  const delivery = await givenWaiting(scenario.webhook, { trigger: "redeliver", attempts_before_schedule: 3 });
  await attempt(delivery);
  const { body } = await scenario.api.get(pathOf(delivery));
  const text = JSON.stringify(body);
  expect(text).not.toMatch(/whsec_|"place"|"version"|expires_at|attempts_before_schedule|signature/i);
  expect(body.data).not.toHaveProperty("project_id");
  expect(body.data).not.toHaveProperty("trigger");
});

describe("the delivery detail returns 404", () => {
  test("for an unknown id, an id that is not a UUID, and the id of another webhook's delivery", async () => {
    const { webhook: sibling } = await givenWebhook({ projectId: scenario.projectId });
    const { id: foreign } = await givenDelivery(sibling);
    for (const id of [randomUUID(), "7", foreign]) {
      expect(errorOf(await scenario.api.get(pathOf({ id })))).toEqual({ status: 404, code: "not_found" });
    }
  });
});
