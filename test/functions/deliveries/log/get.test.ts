import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { attempt } from "../../../support/attempts.ts";
import { givenDelivery, givenWaiting } from "../../../support/deliveries.ts";
import { useReceiver } from "../../../support/receiver.ts";
import { useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

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

test("the delivery detail has no attempts before the first one", async () => {
  expect(await shown(await givenWaiting(scenario.webhook))).toMatchObject({ attempts: [], last_attempt: null });
});

test("the delivery detail of a shadowed delivery has what would have been sent", async () => {
  const shadow = { at: "2026-03-01T00:00:00.000Z", headers: { "webhook-id": "d" } };
  const delivery = await givenDelivery(scenario.webhook, { status: "shadowed", shadow });
  expect(await shown(delivery)).toMatchObject({ status: "shadowed", shadow });
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

test("the delivery detail shows the headers of a row that an earlier version wrote", async () => {
  const response_headers = { server: "nginx" };
  const made = {
    number: 1,
    at: "2026-03-01T00:00:00.000Z",
    duration_ms: 5,
    status_code: 500,
    trigger: "schedule",
  } as const;
  const attempts = [{ ...made, error_code: "http_status" as const, response_headers }];
  const delivery = await givenDelivery(scenario.webhook, { status: "failed", attempt_count: 1, attempts });
  expect((await shown(delivery)).attempts).toMatchObject([{ response_headers }]);
});

describe("a hint", () => {
  test("for a 401 names the credentials that it asks for, in the list and the webhook's health too", async () => {
    receiver.respondWith((_, response) => response.writeHead(401, { "WWW-Authenticate": 'basic realm="a"' }).end());
    const { hint } = await onlyAttempt();
    expect(hint).toContain("Basic credentials");
    const [listed] = (await scenario.api.get(`${scenario.path}/deliveries`)).body.data;
    expect(listed.last_attempt).toMatchObject({ status_code: 401, hint });
    expect((await scenario.api.get(scenario.path)).body.data.health.last_error.hint).toBe(hint);
  });

  test("for a 401 after a rotation of the secret names it, in the list and the webhook's health too", async () => {
    receiver.respondWith((_, response) => response.writeHead(401).end());
    const rotated = (await scenario.api.post(`${scenario.path}/rotate-secret`, {})).body.data;
    const { hint } = await onlyAttempt();
    expect(hint).toContain(`the secret was rotated at ${rotated.secret_rotated_at}: store the new secret`);
    const [listed] = (await scenario.api.get(`${scenario.path}/deliveries`)).body.data;
    expect(listed.last_attempt).toMatchObject({ status_code: 401, hint });
    expect((await scenario.api.get(scenario.path)).body.data.health.last_error.hint).toBe(hint);
  });
});
