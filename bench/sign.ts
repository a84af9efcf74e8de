import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { signatureHeaders } from "../functions/receivers/signature.ts";
import { generateSecret } from "../functions/webhooks/webhook.ts";
import { type Bench, compareCpu, type Result, type Rounds } from "./harness.ts";

/*
 * Measures the CPU time to sign a delivery. Ours computes two signatures, the library one of the two. Each call
 * starts from the stored secret, as in a sender for many webhooks.
 */

const ROUNDS: Rounds = { forMs: 2_000 };
const BODY_BYTES = [300, 4 * 1024, 64 * 1024];
const MAX_OF_LIBRARY = 1.0;

interface Sample {
  secret: string;
  id: string;
  at: Date;
  body: string;
}

/** Returns a sample whose body looks like that of a delivery and has `bytes` bytes in UTF-8. */
function sampleOf(bytes: number): Sample {
  const event = { event: "deploy.failed", project_id: randomUUID(), deployment_id: randomUUID(), data: { log: "" } };
  const room = bytes - JSON.stringify(event).length;
  const body = JSON.stringify({ ...event, data: { log: randomBytes(room).toString("base64").slice(0, room) } });
  assert.equal(Buffer.byteLength(body), bytes);
  return { secret: generateSecret(randomBytes(32)), id: randomUUID(), at: new Date(), body };
}

const ours = ({ secret, id, at, body }: Sample) => signatureHeaders({ deliveryId: id, at, body }, secret);

/** Checks that the library accepts our signature, and rejects it for another body. */
function checkAgreement(sample: Sample): void {
  const webhook = new Webhook(sample.secret);
  assert.doesNotThrow(() => webhook.verify(sample.body, ours(sample)));
  assert.throws(() => webhook.verify(`${sample.body} `, ours(sample)), /signature/i);
}

/** Duration of a sample, the same for all body sizes. */
const SAMPLE_MS = 40;

export async function sign(rounds: Rounds, sampleMs: number): Promise<Result> {
  const result: Result = { tables: [], targets: [] };
  for (const bytes of BODY_BYTES) {
    const sample = sampleOf(bytes);
    const { secret, id, at, body } = sample;
    checkAgreement(sample);
    const variants = {
      "both headers": () => ours(sample),
      standardwebhooks: () => new Webhook(secret).sign(id, at, body),
    };
    const { table, ratios } = await compareCpu(`${bytes} bytes`, variants, "standardwebhooks", rounds, sampleMs);
    result.tables.push(table);
    const name = `sign ${bytes} bytes / standardwebhooks`;
    result.targets.push({ name, value: ratios["both headers"], bound: MAX_OF_LIBRARY });
  }
  return result;
}

export const bench: Bench = {
  name: "sign",
  about: "both signatures of a delivery, compared with one of standardwebhooks",
  run: () => sign(ROUNDS, SAMPLE_MS),
};
