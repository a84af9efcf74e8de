import { randomBytes, randomUUID } from "node:crypto";
import { log } from "../../foundation/platform/log.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { credentialsIn, ownHeaders } from "../../webhooks/receiver/delivery-headers.ts";
import { legacySignatureHeader } from "../../webhooks/receiver/legacy-signature-header.ts";
import { signingOf } from "../../webhooks/receiver/project-keys.ts";
import * as receivers from "../../webhooks/receiver/receiver-client-pool.ts";
import { unexpiredSecrets } from "../../webhooks/receiver/signature.ts";
import { withoutSent } from "../../webhooks/receiver/without-sent.ts";
import type { OwnHeader } from "../../webhooks/webhook/own-headers.ts";
import { clearFailing, recordCertification } from "../../webhooks/webhook/receiver-state-store.ts";
import { catchUp } from "../../webhooks/webhook/worker-call.ts";
import { type CertifyCall, enqueue } from "../line/delivery-queue.ts";
import { allPassed, type Probe, type ProbeResult, type ProbeResults, probesOf, statusOf } from "./certification.ts";
import * as certifications from "./certification-store.ts";
import { type ProbeRequest, probeRequests } from "./probe-requests.ts";

/**
 * The time that a certification can need when DynamoDB is slow: two requests in sequence 30 s, and 9 s each for the reads
 * and the results.
 */
const MIN_CERTIFY_MS = 48_000;

/**
 * Sends the probes of a certification and stores the results. A message that is received again after a crash sends all
 * probes again. Does nothing for a certification that has its results or is too old, and for a deleted webhook. A sender
 * does this and not the endpoint, which would need to read secrets. Probes are no deliveries, so that no list, budget or
 * retry has to know them.
 * @throws Error when the message must be received again
 */
export async function certify(call: CertifyCall, remainingMs: () => number): Promise<void> {
  const { project_id, webhook_id, certification_id } = call;
  log.tag({ project_id, webhook_id, certification_id });
  if (remainingMs() < MIN_CERTIFY_MS) return enqueueAgain(call);
  const { row: certification, webhook, secrets } = await certifications.readForProbes(call);
  if (!certification || !webhook || !secrets) return;
  const now = new Date();
  if (statusOf(certification, now) !== "running") return;
  const { format } = webhook;
  if (webhook.suspended_at !== undefined) {
    return certifications.finish(certification, { results: {}, finished_at: now.toISOString(), format });
  }
  const legacy = legacySignatureHeader();
  const signers: [string, ...string[]] = [secrets.current, ...unexpiredSecrets(secrets.previous, now)];
  const requests = probeRequests({
    certificationId: certification_id,
    webhook,
    secrets: signers,
    foreignSecret: `whsec_${randomBytes(32).toString("hex")}`,
    now,
    legacy,
    signing: await signingOf(webhook, now),
    randomId: randomUUID,
  });
  const own = ownHeaders(secrets.headers, legacy);
  const send = (probe: Probe) => sendProbe(webhook.url, requests[probe], own, signers);
  const results = probesOf(format).length === 1 ? { valid: await send("valid") } : await sendAll(send);
  const [finished_at, passed] = [new Date().toISOString(), allPassed(results, format)];
  // Before the results: a message that is received again after a crash between the two does both.
  await recordCertification(webhook, { id: certification_id, finished_at, passed });
  await certifications.finish(certification, { results, finished_at, format });
  if (results.valid && results.valid.error_code === undefined) {
    if (webhook.failing_since !== undefined) await clearFailing(webhook);
    await catchUp(webhook, new Date());
  }
  log.info("certification", { passed });
}

async function enqueueAgain(call: CertifyCall): Promise<void> {
  const refused = await enqueue([call]);
  if (refused.length > 0) throw new Error("The certification could not be enqueued.");
}

async function sendAll(send: (probe: Probe) => Promise<ProbeResult>): Promise<ProbeResults> {
  const [[valid, repeated], unusual_body, forged_signature, stale_timestamp, cut_body] = await allEnded([
    sendTwice(
      () => send("valid"),
      () => send("repeated"),
    ),
    send("unusual_body"),
    send("forged_signature"),
    send("stale_timestamp"),
    send("cut_body"),
  ]);
  const results = { valid, unusual_body, forged_signature, stale_timestamp, cut_body };
  return repeated ? { ...results, repeated } : results;
}

/** Sends a delivery again after it was accepted: a receiver that failed has not stored it, so a repeat shows nothing. */
async function sendTwice(
  first: () => Promise<ProbeResult>,
  again: () => Promise<ProbeResult>,
): Promise<[ProbeResult, ProbeResult?]> {
  const result = await first();
  return result.error_code === undefined ? [result, await again()] : [result];
}

async function sendProbe(
  url: string,
  { headers, body }: ProbeRequest,
  own: readonly OwnHeader[],
  signers: readonly string[],
): Promise<ProbeResult> {
  const returned = await receivers.post(url, { ...Object.fromEntries(own), ...headers }, body);
  const outcome = withoutSent(returned, url, headers, [...signers, ...credentialsIn(own)]);
  const { durationMs, statusCode, errorCode, detail } = outcome;
  return { duration_ms: durationMs, status_code: statusCode, error_code: errorCode, detail };
}
