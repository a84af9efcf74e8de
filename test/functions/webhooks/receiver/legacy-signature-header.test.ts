import { randomUUID } from "node:crypto";
import { probes } from "../../../../functions/deliveries/certification/certification.ts";
import { probeRequests } from "../../../../functions/deliveries/certification/probe-requests.ts";
import { deliveryHeaders } from "../../../../functions/webhooks/receiver/delivery-headers.ts";
import { legacySignatureHeader } from "../../../../functions/webhooks/receiver/legacy-signature-header.ts";
import { carry, visitLine } from "../../../support/attempts.ts";
import {
  givenWaiting,
  givenWebhook,
  newDelivery,
  prepareDeliveries,
  takeMessages,
} from "../../../support/deliveries.ts";
import { startReceiver } from "../../../support/receiver.ts";

const set = (value: unknown) => {
  process.env.LEGACY_SIGNATURE_HEADER = typeof value === "string" ? value : JSON.stringify(value);
};
afterEach(() => {
  delete process.env.LEGACY_SIGNATURE_HEADER;
});

describe("the setting LEGACY_SIGNATURE_HEADER", () => {
  test("is absent by default", () => {
    expect(legacySignatureHeader()).toBeUndefined();
  });

  test.each([
    { name: "X-Acme-Signature", until: "2027-01-31" },
    { name: "X-Hub-Signature-256", until: "2027-01-31T09:30:00Z" },
    { name: "X-Acme-Signature", until: "2028-02-29T00:00+14:00" },
    { name: "signature!#$%&'*+.^_`|~", until: "2027-01-31T09:30:00.5+02:00" },
  ])("can be %j", (value) => {
    set(value);
    expect(legacySignatureHeader()).toEqual(value);
  });

  const until = "2027-01-31";
  test.each<[string, unknown]>([
    ["is not JSON", "X-Acme-Signature"],
    ["is null", "null"],
    ["has no name", { until }],
    ["has no date", { name: "X-Acme-Signature" }],
    ["has a name with a space", { name: "X Acme", until }],
    ["has a name with a line break", { name: "X-Acme\r\nX-Other", until }],
    ["has an empty name", { name: "", until }],
    ["names a header of deliveries", { name: "x-service-signature", until }],
    ["names one of Standard Webhooks", { name: "Webhook-Signature", until }],
    ["names one of HTTP", { name: "Content-Length", until }],
    ["names that of a host", { name: "HOST", until }],
    ["has a date that is none", { name: "X-Acme-Signature", until: "tomorrow" }],
    ["has a 13th month", { name: "X-Acme-Signature", until: "2027-13-01" }],
    ["has a 30th of February", { name: "X-Acme-Signature", until: "2027-02-30" }],
    ["has a time on the 29th of February of a common year", { name: "X-A", until: "2027-02-29T09:30:00+14:00" }],
    ["has a time without a zone", { name: "X-A", until: "2027-01-31T09:30:00" }],
  ])("is rejected with its rules when it %s", (_, value) => {
    set(value);
    const rules =
      /^LEGACY_SIGNATURE_HEADER must be JSON, and must have a name of a header .*, and an until that is a date or a time/;
    expect(legacySignatureHeader).toThrow(rules);
  });
});

const request = { id: randomUUID(), event: "deploy.failed", body: "{}", sequence: "1" };
const secrets = ["a secret of an earlier service", "an older secret of it"] as const;
const legacy = { name: "X-Acme-Signature", until: "2027-01-31T00:00:00Z" };
const before = new Date("2027-01-30T23:59:59.999Z");

test("until its date, the header has the value of X-Service-Signature, and nothing else changes", () => {
  const today = deliveryHeaders(request, secrets, before);
  const signature = today["X-Service-Signature"];
  expect(signature).toMatch(/^sha256=[0-9a-f]{64}$/);
  expect(deliveryHeaders(request, secrets, before, { legacy })).toEqual({ ...today, "X-Acme-Signature": signature });
});

test("from its date on, the request is as without the option", () => {
  const at = new Date(legacy.until);
  expect(deliveryHeaders(request, secrets, at, { legacy })).toEqual(deliveryHeaders(request, secrets, at));
});

test("the requests of a certification have it as deliveries do, with the signature of each", () => {
  const requests = probeRequests({
    certificationId: randomUUID(),
    webhook: { project_id: randomUUID(), events: ["deploy.failed"] },
    secrets,
    foreignSecret: "a secret of someone else",
    now: before,
    legacy,
    randomId: randomUUID,
  });
  for (const probe of probes) {
    const { headers } = requests[probe];
    expect([probe, headers["X-Acme-Signature"]]).toEqual([probe, headers["X-Service-Signature"]]);
  }
});

test("deliveries of both roads have the header until its date", async () => {
  await prepareDeliveries();
  const receiver = await startReceiver();
  const { webhook } = await givenWebhook({ url: receiver.url });
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  set({ name: "X-Acme-Signature", until: tomorrow });
  await carry(newDelivery(webhook));
  await givenWaiting(webhook);
  await visitLine(webhook);
  set({ name: "X-Acme-Signature", until: "2026-01-01" });
  await carry(newDelivery(webhook));
  const seen = receiver.received.map(({ headers }) => headers["x-acme-signature"]);
  const [first, second, third] = receiver.received.map(({ headers }) => headers["x-service-signature"]);
  expect(seen).toEqual([first, second, undefined]);
  expect(third).toBeDefined();
  await takeMessages("slowDeliveries");
  await receiver.close();
});
