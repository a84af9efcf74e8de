import { Webhook as Verifier } from "standardwebhooks";
import { bodySignature } from "../../../../functions/webhooks/receiver/signature.ts";
import { attempt } from "../../../support/attempts.ts";
import { interceptDynamo, loseNextResponse, restoreAws } from "../../../support/aws-calls.ts";
import { changeSecrets, findSecrets, givenWaiting } from "../../../support/deliveries.ts";
import { type Received, useReceiver } from "../../../support/receiver.ts";
import { errorOf, useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

const service = useService();
const receiver = useReceiver("test");
const scenario = useScenario(service, () => ({ url: receiver.url }));

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

describe("the overlap", () => {
  test.each([1, 604_800])("of %i s keeps the replaced secret for this time", async (overlap_seconds) => {
    const before = Date.now();
    await rotate({ overlap_seconds });
    const { previous } = await secretsNow();
    expect(previous).toEqual([{ secret: scenario.webhook.secret, expiresAt: expect.stringMatching(/Z$/) }]);
    const seconds = (Date.parse(previous[0]?.expiresAt ?? "") - before) / 1000;
    expect(Math.abs(seconds - overlap_seconds)).toBeLessThan(10);
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

  test("running concurrently, some without overlap, leave a current secret that a response contains", async () => {
    const overlaps = [0, 60, 0, 60, 0];
    const returned = await Promise.all(overlaps.map((overlap_seconds) => rotate({ overlap_seconds })));
    const { current } = await secretsNow();
    expect(returned).toContain(current);
    expect(verifies(current, await sendNow())).toEqual(accepted);
  });
});

describe("when the response of the table is lost and the SDK sends the write again,", () => {
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
});
