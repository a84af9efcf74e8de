import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as receiver from "../../docs/receivers/node/verify-webhook.mjs";
import { parseDeploymentEvent } from "../../functions/foundation/events/parse-deployment-event.ts";
import { signatureHeaders } from "../../functions/webhooks/receiver/signature.ts";
import * as client from "../../packages/client/src/verify-webhook.ts";
import { needs } from "../support/optional-program.ts";
import { receiverLanguages } from "../support/receiver-languages.ts";
import type { Vector } from "../support/vectors.ts";
import { foreignBodies, messages, sentData } from "./bodies.ts";

/* What the service accepts, all verifiers of docs/receivers accept. */

const message = {
  event: "deploy.started",
  project_id: "01930000-0000-7000-8000-00000000d301",
  deployment_id: "0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11",
  timestamp: "2026-01-02T03:04:05Z",
  data: {},
};
const text = JSON.stringify(message);
const withData = (data: string) => text.replace("{}", () => data);

const work = mkdtempSync(join(tmpdir(), "bodies-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

const secret = `whsec_${"a1".repeat(32)}`;
const at = new Date("2026-11-21T04:04:29Z");
const now = at.getTime() / 1000;
const vectorOf = (name: string, body: string): Vector => {
  const headers = { ...signatureHeaders({ deliveryId: "1", at, body }, secret) };
  return { name, scheme: "standard", secrets: [secret], body, headers, now, valid: true };
};

const bodyOf = (data: string): string => {
  const result = parseDeploymentEvent(withData(data));
  return result.ok ? result.event.body : "";
};
const delivered = sentData.map(([what, , data]) => vectorOf(what, bodyOf(data)));
const foreign = foreignBodies.map(([what, , body]) => vectorOf(what, body));

/** Returns the first word that each verifier says: `verified`, or the code of the error. */
async function resultOf({ verifyWebhook }: typeof receiver | typeof client, { body, headers }: Vector) {
  try {
    await verifyWebhook({ body, headers, secret, now: at });
    return "verified";
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

test.each(sentData)("delivers %s (%s)", (...[, , data, becomes]) => {
  const body = bodyOf(data);
  if (becomes === undefined) expect(body).toBe(withData(data));
  else expect(JSON.parse(body).data).toEqual(becomes);
});

test.each(messages)(
  "a message with %s is delivered, or a dead letter with the reason (%s)",
  (...[, , change, reason]) => {
    const result = parseDeploymentEvent(change(text));
    const expected = reason === undefined ? { ok: true } : { ok: false, reason: expect.stringContaining(reason) };
    expect(result).toMatchObject(expected);
  },
);

test.each([
  ["Node", receiver],
  ["TypeScript", client],
])("the verifier for %s accepts what is delivered, and calls no signature invalid", async (_, verifier) => {
  for (const vector of delivered)
    expect([vector.name, await resultOf(verifier, vector)]).toEqual([vector.name, "verified"]);
  for (const vector of foreign) expect(["verified", "invalid_payload"]).toContain(await resultOf(verifier, vector));
});

for (const { name, program, run } of receiverLanguages(work)) {
  needs(program).test(`the verifier for ${name} accepts what is delivered, and calls no signature invalid`, () => {
    const results = run([...delivered, ...foreign]).map((line) => line.split(" ")[0]);
    expect(results.slice(0, delivered.length)).toEqual(delivered.map(() => "verified"));
    expect(results).toHaveLength(delivered.length + foreign.length);
    for (const result of results) expect(["verified", "invalid_payload"]).toContain(result);
  });
}
