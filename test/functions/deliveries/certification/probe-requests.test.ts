import { createHmac, randomUUID } from "node:crypto";
import { webhookPayloadSchemas } from "../../../../contract/responses/payload.ts";
import { verifyWebhook, WebhookVerificationError } from "../../../../docs/receivers/node/verify-webhook.mjs";
import { type Probe, probeExpectations, probes } from "../../../../functions/deliveries/certification/certification.ts";
import { probeRequests } from "../../../../functions/deliveries/certification/probe-requests.ts";
import { parseDeploymentEvent } from "../../../../functions/foundation/events/parse-deployment-event.ts";
import { webhookEventNames } from "../../../../functions/foundation/manifest/events.ts";

const secret = `whsec_${"a1".repeat(32)}`;
const now = new Date("2026-11-21T04:04:29.027Z");
let ids = 0;
const inputs: Parameters<typeof probeRequests>[0] = {
  certificationId: "certification",
  webhook: { project_id: "project", events: ["deploy.succeeded"] },
  secrets: [secret],
  foreignSecret: `whsec_${"b2".repeat(32)}`,
  now,
  randomId: () => `id-${++ids}`,
};
const requests = probeRequests(inputs);

function resultOf(probe: Probe, scheme: "standard" | "body", toleranceSeconds = 300): string {
  try {
    verifyWebhook({ ...requests[probe], secret, scheme, toleranceSeconds, now });
    return "verified";
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.code;
    throw error;
  }
}

test.each<[Probe, standard: string, body: string]>([
  ["valid", "verified", "verified"],
  ["repeated", "verified", "verified"],
  ["unusual_body", "verified", "verified"],
  ["forged_signature", "no_matching_signature", "no_matching_signature"],
  // The second scheme covers no time.
  ["stale_timestamp", "timestamp_too_old", "verified"],
  ["cut_body", "no_matching_signature", "no_matching_signature"],
])("the probe %s is, with the schemes standard and body: %s, %s", (probe, standard, body) => {
  expect([resultOf(probe, "standard"), resultOf(probe, "body")]).toEqual([standard, body]);
});

test("the stale probe is stale for any usual tolerance, and its signature covers its timestamp", () => {
  expect(resultOf("stale_timestamp", "standard", 1_800)).toBe("timestamp_too_old");
  expect(resultOf("stale_timestamp", "standard", 3_601)).toBe("verified");
});

test("the cut probe has the signature of a body of which it is the beginning", () => {
  const { headers, body } = requests.cut_body;
  expect(() => JSON.parse(body)).toThrow(SyntaxError);
  const complete = requests.valid.body.replace(
    /"deployment_id":"[^"]+"/,
    /"deployment_id":"[^"]+"/.exec(body)?.[0] ?? "",
  );
  const signature = `sha256=${createHmac("sha256", secret).update(complete).digest("hex")}`;
  expect([complete.startsWith(body), signature]).toEqual([true, headers["X-Service-Signature"]]);
});

test("the unusual body changes when it is parsed and serialized, trimmed, or read in another encoding", () => {
  const { body } = requests.unusual_body;
  const { data } = JSON.parse(body);
  expect(data).toMatchObject({ url: expect.any(String), status: "running", message: "déployé", escaped: "déployé" });
  expect(body).toContain('"déployé"');
  expect(body).toContain(String.raw`"d\u00e9ploy\u00e9"`);
  for (const indent of [undefined, 1, 2, 4, "\t"])
    expect(JSON.stringify(JSON.parse(body), undefined, indent)).not.toBe(body);
  expect(body.trim()).not.toBe(body);
  expect(body.replaceAll("\r\n", "\n")).not.toBe(body);
});

test("the unusual body is as deep, and has an integer as long, as an event that is delivered unchanged", () => {
  const { body } = requests.unusual_body;
  const ids = { project_id: randomUUID(), deployment_id: randomUUID() };
  const changedBy = (data: object) => {
    const result = parseDeploymentEvent(JSON.stringify({ ...JSON.parse(body), ...ids, data }));
    return result.ok ? result.changed : result.reason;
  };
  const { test, ...data } = JSON.parse(body).data;
  expect(test).toBe(true);
  expect(body).toMatch(/[ :]9{308},?[\r\n]/);
  expect(changedBy(data)).toBeUndefined();
  expect(changedBy({ ...data, deepest: [data.deepest] })).toContain("64 levels");
});

test("the marks are the same on all probes", () => {
  for (const probe of probes) {
    expect(requests[probe].headers).toMatchObject({ "X-Service-Probe": "certification", "X-Service-Test": "true" });
  }
  for (const probe of ["valid", "unusual_body"] as const) {
    expect(JSON.parse(requests[probe].body).data).toMatchObject({ test: true, certification_id: "certification" });
  }
  for (const probe of probes) {
    const { headers, body } = requests[probe];
    expect(Object.keys(headers)).toEqual(Object.keys(requests.valid.headers));
    for (const name of probes.filter((each) => each.includes("_")))
      expect(JSON.stringify([headers, body])).not.toContain(name);
  }
});

test("every probe has an expectation", () => {
  expect(probeExpectations).toEqual({
    valid: "2xx",
    repeated: "2xx",
    unusual_body: "2xx",
    forged_signature: "4xx",
    stale_timestamp: "4xx",
    cut_body: "4xx",
  });
});

test.each(webhookEventNames)(
  "authentic probes with %s match the payload schema, for receivers that validate",
  (event) => {
    const webhook = { project_id: randomUUID(), events: [event] };
    const { valid, unusual_body } = probeRequests({ ...inputs, webhook, randomId: randomUUID });
    for (const { body, headers } of [valid, unusual_body]) {
      const payload: unknown = JSON.parse(body);
      expect(headers["X-Service-Event"]).toBe(event);
      expect(webhookPayloadSchemas[event]?.parse(payload)).toEqual(payload);
    }
  },
);
