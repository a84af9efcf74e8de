import { Webhook as Verifier } from "standardwebhooks";
import { bodySignature } from "../../../functions/receivers/signature.ts";
import { attempt } from "../../support/attempts.ts";
import { interceptDynamo, loseNextResponse, restoreAws } from "../../support/aws-calls.ts";
import { changeSecrets, findSecrets, givenWaiting } from "../../support/deliveries.ts";
import { type Received, useReceiver } from "../../support/receiver.ts";
import { errorOf, invalidFieldsOf, useScenario } from "../../support/scenario.ts";
import { useService } from "../../support/service.ts";

const service = useService();
const receiver = useReceiver("test");
const scenario = useScenario(service, () => ({ url: receiver.url }));
afterEach(restoreAws);

const SECRET = /^whsec_[0-9a-f]{64}$/;
const post = (body?: unknown) => scenario.api.post(`${scenario.path}/rotate-secret`, body);

async function rotate(body?: unknown): Promise<string> {
  const response = await post(body);
  expect(response.status).toBe(200);
  return response.body.data.secret;
}

async function secretsNow() {
  const secrets = await findSecrets(scenario.webhook.id);
  if (!secrets) throw new Error("the webhook has no secrets");
  return secrets;
}

/** Sends a delivery and returns the request that the receiver received. */
async function sendNow(): Promise<Received> {
  const before = receiver.received.length;
  await attempt(await givenWaiting(scenario.webhook));
  const request = (await receiver.waitFor(before + 1))[before];
  if (!request) throw new Error("nothing was sent");
  return request;
}

/** Returns whether a receiver with this secret accepts the request, for each of the two signature schemes. */
function verifies(secret: string, { headers, body }: Received): { standard: boolean; contract: boolean } {
  let standard = true;
  try {
    new Verifier(secret).verify(body, headers as Record<string, string>);
  } catch {
    standard = false;
  }
  const previous = String(headers["x-service-signature-previous"] ?? "").split(/, */);
  return { standard, contract: [headers["x-service-signature"], ...previous].includes(bodySignature(body, secret)) };
}

const accepted = { standard: true, contract: true };
const rejected = { standard: false, contract: false };

test("returns the webhook with its new secret, which no other response contains", async () => {
  const { secret, ...created } = scenario.webhook;
  const { status, body, headers } = await post();
  const state = {
    enabled: true,
    disabled_reason: null,
    disabled_at: null,
    created_by: expect.stringMatching(/^user-/),
    updated_by: null,
    secret_rotated_at: expect.stringMatching(/Z$/),
  };
  expect(status).toBe(200);
  expect(body).toEqual({ data: { ...created, ...state, secret: expect.stringMatching(SECRET) } });
  expect(body.data.secret).not.toBe(secret);
  expect(headers.get("cache-control")).toBe("no-store");
  const list = `/v1/projects/${scenario.projectId}/webhooks`;
  const others = [
    await scenario.api.get(scenario.path),
    await scenario.api.get(list),
    await scenario.api.patch(scenario.path, { enabled: true }),
  ];
  for (const { body } of others) expect(JSON.stringify(body)).not.toContain("whsec_");
});

test("needs a permission of its own, which webhooks:write does not include", async () => {
  const keyWith = async (permission: string) => {
    const { body } = await scenario.api.post("/v1/api-keys", { name: "ci", permissions: [permission] });
    return service.as(body.data.key);
  };
  const path = `${scenario.path}/rotate-secret`;
  const { status, body } = await (await keyWith("webhooks:write")).post(path);
  expect({ status, code: body.error.code }).toEqual({ status: 403, code: "insufficient_permission" });
  expect((await (await keyWith("webhook-secrets:write")).post(path)).status).toBe(200);
});

test("rotates the secret of a disabled webhook, which stays disabled", async () => {
  await scenario.api.patch(scenario.path, { enabled: false });
  const { status, body } = await post({});
  expect({ status, enabled: body.data.enabled }).toEqual({ status: 200, enabled: false });
});

describe("the overlap", () => {
  test.each<[string, unknown, number]>([
    ["is a day without a body", undefined, 86_400],
    ["is a day for an empty object", {}, 86_400],
    ["may be a minute", { overlap_seconds: 60 }, 60],
    ["may be a second", { overlap_seconds: 1 }, 1],
    ["may be a week", { overlap_seconds: 604_800 }, 604_800],
  ])("%s", async (_, body, seconds) => {
    const before = Date.now();
    const secret = await rotate(body);
    const { current, previous } = await secretsNow();
    expect(current).toBe(secret);
    expect(previous).toEqual([{ secret: scenario.webhook.secret, expiresAt: expect.stringMatching(/Z$/) }]);
    const expiresAt = Date.parse(previous[0]?.expiresAt ?? "");
    expect(expiresAt).toBeGreaterThanOrEqual(before + seconds * 1000);
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + seconds * 1000);
  });

  test("of zero expires the old secret at once", async () => {
    const secret = await rotate({ overlap_seconds: 0 });
    const request = await sendNow();
    expect(verifies(secret, request)).toEqual(accepted);
    expect(verifies(scenario.webhook.secret, request)).toEqual(rejected);
    expect(request.headers).not.toHaveProperty("x-service-signature-previous");
    expect(await secretsNow()).toEqual({ current: secret, previous: [] });
  });

  test("of zero expires all older secrets at once, and the next rotation keeps one previous secret", async () => {
    const older = [scenario.webhook.secret, await rotate(), await rotate(), await rotate()];
    const secret = await rotate({ overlap_seconds: 0 });
    const request = await sendNow();
    expect(verifies(secret, request)).toEqual(accepted);
    for (const each of older) expect(verifies(each, request)).toEqual(rejected);
    await rotate();
    expect((await secretsNow()).previous.map(({ secret }) => secret)).toEqual([secret]);
  });

  test("of a later rotation does not shorten an earlier overlap", async () => {
    await rotate({ overlap_seconds: 604_800 });
    const [first] = (await secretsNow()).previous;
    await rotate({ overlap_seconds: 60 });
    expect((await secretsNow()).previous[1]).toEqual(first);
  });

  test.each<[string, unknown, string]>([
    ["that is negative", { overlap_seconds: -1 }, "overlap_seconds"],
    ["longer than a week", { overlap_seconds: 604_801 }, "overlap_seconds"],
    ["of half a second", { overlap_seconds: 0.5 }, "overlap_seconds"],
    ["that is a string", { overlap_seconds: "60" }, "overlap_seconds"],
    ["that is null", { overlap_seconds: null }, "overlap_seconds"],
    ["of centuries", { overlap_seconds: 9_007_199_254_740_991 }, "overlap_seconds"],
    ["in an unknown field", { overlap: 60 }, "overlap"],
    ["replaced by a secret of the caller", { secret: "whsec_00" }, "secret"],
    ["in an array", [60], ""],
  ])("%s returns 400 and keeps the secret", async (_, body, field) => {
    expect(invalidFieldsOf(await post(body))).toEqual([field]);
    expect(await secretsNow()).toEqual({ current: scenario.webhook.secret, previous: [] });
  });
});

describe("several rotations inside one overlap", () => {
  test("let receivers with any of the secrets verify, with both schemes", async () => {
    const secrets = [scenario.webhook.secret, await rotate(), await rotate({ overlap_seconds: 600 }), await rotate()];
    const request = await sendNow();
    for (const secret of secrets) expect(verifies(secret, request)).toEqual(accepted);
    const [current, ...previous] = secrets.toReversed().map((secret) => bodySignature(request.body, secret));
    expect(request.headers["x-service-signature"]).toBe(current);
    expect(request.headers["x-service-signature-previous"]).toBe(previous.join(", "));
    expect(String(request.headers["webhook-signature"]).split(" ")).toHaveLength(4);
  });

  test("keep three previous secrets", async () => {
    const secrets = [scenario.webhook.secret];
    for (let round = 0; round < 5; round++) secrets.push(await rotate());
    const request = await sendNow();
    const results = secrets.map((secret) => verifies(secret, request));
    expect(results).toEqual([rejected, rejected, accepted, accepted, accepted, accepted]);
  });

  test("running concurrently leave a current secret that a response contains", async () => {
    const returned = await Promise.all(Array.from({ length: 8 }, () => rotate()));
    expect(new Set(returned).size).toBe(8);
    const { current, previous } = await secretsNow();
    expect(returned).toContain(current);
    expect(previous).toHaveLength(3);
    for (const { secret } of previous) expect(returned).toContain(secret);
    expect(verifies(current, await sendNow())).toEqual(accepted);
  });

  test("running concurrently, some without overlap, leave a current secret that a response contains", async () => {
    const overlaps = [0, 60, 0, 60, 0];
    const returned = await Promise.all(overlaps.map((overlap_seconds) => rotate({ overlap_seconds })));
    const { current } = await secretsNow();
    expect(returned).toContain(current);
    expect(verifies(current, await sendNow())).toEqual(accepted);
  });
});

describe("when the response of the table is lost and the SDK sends the write again,", () => {
  async function rotateWithLostResponse(body?: unknown): Promise<string> {
    const sent = loseNextResponse("TransactWriteItemsCommand");
    const secret = await rotate(body);
    expect(sent.requests).toBe(2);
    return secret;
  }
  const previousNow = async () => (await secretsNow()).previous.map(({ secret }) => secret);

  test("a rotation moves the secrets once", async () => {
    const older = [scenario.webhook.secret, await rotate(), await rotate()];
    const secret = await rotateWithLostResponse();
    expect((await secretsNow()).current).toBe(secret);
    expect(await previousNow()).toEqual(older.toReversed());
  });

  test("a rotation keeps the overlap of the replaced secret", async () => {
    const before = Date.now();
    await rotateWithLostResponse({ overlap_seconds: 600 });
    const { previous } = await secretsNow();
    expect(previous).toEqual([{ secret: scenario.webhook.secret, expiresAt: expect.any(String) }]);
    expect(Date.parse(previous[0]?.expiresAt ?? "")).toBeGreaterThanOrEqual(before + 600_000);
  });

  test("a rotation without overlap leaves only the new secret", async () => {
    const secret = await rotateWithLostResponse({ overlap_seconds: 0 });
    expect(await secretsNow()).toEqual({ current: secret, previous: [] });
  });

  test("a webhook that is deleted before the rotation is written returns 404, and stores no secret", async () => {
    interceptDynamo(async ({ command }, send) => {
      if (command !== "TransactWriteItemsCommand") return send();
      restoreAws();
      await scenario.api.delete(scenario.path);
      loseNextResponse("TransactWriteItemsCommand");
      return send();
    });
    expect(errorOf(await post())).toEqual({ status: 404, code: "not_found" });
    expect(await findSecrets(scenario.webhook.id)).toBeUndefined();
  });
});

describe("the expiry of a secret is checked when a delivery is sent", () => {
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

  test("an expired secret does not sign", async () => {
    const secret = await rotate();
    await changeSecrets(scenario.webhook, { previous_1_expires_at: ago(1) });
    const request = await sendNow();
    expect(verifies(secret, request)).toEqual(accepted);
    expect(verifies(scenario.webhook.secret, request)).toEqual(rejected);
    expect(request.headers).not.toHaveProperty("x-service-signature-previous");
  });

  test("an expired secret between two valid ones does not sign", async () => {
    const secrets = [scenario.webhook.secret, await rotate(), await rotate(), await rotate()];
    await changeSecrets(scenario.webhook, { previous_2_expires_at: ago(1) });
    const request = await sendNow();
    expect(secrets.map((secret) => verifies(secret, request))).toEqual([accepted, rejected, accepted, accepted]);
  });

  test("a short overlap ends without another rotation", async () => {
    await rotate({ overlap_seconds: 1 });
    const [replaced] = (await secretsNow()).previous;
    const endsAt = Date.parse(replaced?.expiresAt ?? "");
    await new Promise((resolve) => setTimeout(resolve, endsAt - Date.now() + 5));
    expect(verifies(scenario.webhook.secret, await sendNow())).toEqual(rejected);
  });
});

describe("rejects", () => {
  test("a deleted webhook with 404, and stores no secret", async () => {
    await scenario.api.delete(scenario.path);
    expect(errorOf(await post())).toEqual({ status: 404, code: "not_found" });
    expect(await findSecrets(scenario.webhook.id)).toBeUndefined();
  });
});
