import assert from "node:assert/strict";
import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { bodySignature, signatureHeaders } from "../functions/receivers/signature.ts";
import { generateSecret } from "../functions/webhooks/webhook.ts";
import {
  type Bench,
  cpuPerCall,
  figure,
  interleave,
  KB,
  median,
  type Result,
  type Rounds,
  ratios,
  spread,
} from "./harness.ts";

/*
 * Measures the CPU time to sign a delivery. Ours computes two signatures, the libraries one of the two. Each call
 * starts from the stored secret, as in a sender for many webhooks.
 */

const ROUNDS: Rounds = { forMs: 2_000 };
const BODY_BYTES = [300, 4 * KB, 64 * KB];
const MAX_OF_ONE_LIBRARY = 1.0;

interface Sample {
  secret: string;
  id: string;
  at: Date;
  body: string;
  timestamp: string;
}

/** Returns a sample whose body looks like that of a delivery and has `bytes` bytes in UTF-8. */
function sampleOf(bytes: number): Sample {
  const event = { event: "deploy.failed", project_id: randomUUID(), deployment_id: randomUUID(), data: { log: "" } };
  const room = bytes - JSON.stringify(event).length;
  const body = JSON.stringify({ ...event, data: { log: randomBytes(room).toString("base64").slice(0, room) } });
  assert.equal(Buffer.byteLength(body), bytes);
  const at = new Date();
  const timestamp = String(Math.floor(at.getTime() / 1000));
  return { secret: generateSecret(randomBytes(32)), id: randomUUID(), at, body, timestamp };
}

/** Verifies `X-Service-Signature` as the documentation for receivers does. */
function isFromPlatform(rawBody: string, signature: string, secret: string): boolean {
  const expected = Buffer.from(`sha256=${createHmac("sha256", secret).update(rawBody).digest("hex")}`);
  const actual = Buffer.from(signature);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

const ours = ({ secret, id, at, body }: Sample) => signatureHeaders({ deliveryId: id, at, body }, secret);

const libraries = { standardwebhooks: StandardWebhook, svix: SvixWebhook };

/** Checks that all variants compute the same signature, accept it, and reject it for another body. */
function checkAgreement(sample: Sample): void {
  const { secret, id, at, body } = sample;
  const headers = ours(sample);
  const signature = headers["webhook-signature"] ?? "";
  assert.equal(headers["X-Service-Signature"], bodySignature(body, secret));
  assert.ok(isFromPlatform(body, headers["X-Service-Signature"] ?? "", secret));
  assert.ok(!isFromPlatform(`${body} `, headers["X-Service-Signature"] ?? "", secret));
  for (const Library of Object.values(libraries)) {
    const webhook = new Library(secret);
    assert.equal(webhook.sign(id, at, body), signature);
    assert.doesNotThrow(() => webhook.verify(body, headers));
    assert.throws(() => webhook.verify(`${body} `, headers), /signature/i);
  }
}

/** Duration of a sample, the same for all body sizes. */
const SAMPLE_MS = 40;

export async function sign(rounds: Rounds, sampleMs: number): Promise<Result> {
  const rows: (string | number)[][] = [];
  const targets = [];
  const data: Record<string, unknown> = {};
  for (const bytes of BODY_BYTES) {
    const sample = sampleOf(bytes);
    const { secret, id, at, body } = sample;
    checkAgreement(sample);
    const previous = generateSecret(randomBytes(32));
    const samples = await interleave(
      {
        "ours, both headers": cpuPerCall(() => ours(sample), sampleMs),
        "ours in a rotation, four signatures": cpuPerCall(
          () => signatureHeaders({ deliveryId: id, at, body }, secret, [previous]),
          sampleMs,
        ),
        standardwebhooks: cpuPerCall(() => new StandardWebhook(secret).sign(id, at, body), sampleMs),
        svix: cpuPerCall(() => new SvixWebhook(secret).sign(id, at, body), sampleMs),
      },
      rounds,
    );
    const size = bytes < KB ? `${bytes} B` : `${bytes / KB} KB`;
    for (const [variant, each] of Object.entries(samples)) {
      const micros = each.map((ms) => ms * 1000);
      rows.push([size, variant, spread(micros), spread(ratios(each, samples.standardwebhooks))]);
    }
    for (const library of ["standardwebhooks", "svix"] as const) {
      const value = median(ratios(samples["ours, both headers"], samples[library]));
      targets.push({ name: `sign ${size} / ${library}`, value, bound: MAX_OF_ONE_LIBRARY });
    }
    data[size] = samples;
  }
  const title = `CPU per call; median (range) of samples of ${figure(sampleMs)} ms`;
  return { tables: [{ title, columns: ["body", "variant", "CPU µs", "/ standardwebhooks"], rows }], targets, data };
}

export const bench: Bench = {
  name: "sign",
  about: "both signatures of a delivery, compared with one of standardwebhooks or svix",
  run: () => sign(ROUNDS, SAMPLE_MS),
};
