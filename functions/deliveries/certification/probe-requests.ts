import { sampleFields } from "../../foundation/events/sample-event.ts";
import type { LegacySignatureHeader } from "../../foundation/manifest/legacy-signature-header.ts";
import { deliveryHeaders } from "../../webhooks/receiver/delivery-headers.ts";
import { projectKey } from "../../webhooks/receiver/project-key.ts";
import type { Signing } from "../../webhooks/receiver/signing.ts";
import { subscribedNames } from "../../webhooks/webhook/subscribed-names.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import { contentOf } from "../sending/delivery-content.ts";
import type { Probe } from "./certification.ts";

/*
 * The requests of a certification. Each looks like a test delivery, and has the id of the certification: in the header
 * `X-Service-Probe` and in `data`. The marks are the same on all of them, so that a receiver cannot use them to choose
 * the one to reject.
 */

export interface ProbeRequest {
  headers: Record<string, string>;
  body: string;
}

interface ProbeInputs {
  certificationId: string;
  webhook: Pick<Webhook, "project_id" | "events" | "format">;
  /** The current secret, and the unexpired previous ones, newest first. */
  secrets: readonly [string, ...string[]];
  /** A secret of the same form that no one else knows. */
  foreignSecret: string;
  now: Date;
  /** As of deliveries; absent = none. */
  legacy?: LegacySignatureHeader | undefined;
  signing?: Signing | undefined;
  /** Returns a random UUID. */
  randomId(): string;
}

/** Age of the stale timestamp: far beyond the tolerance of 5 minutes, and beyond any that a receiver may have chosen. */
const STALE_MS = 3_600_000;

/**
 * Creates the requests of all probes. `repeated` is `valid`: the same bytes under the same id.
 *
 * - `forged_signature`: both signatures are made with a foreign secret.
 * - `stale_timestamp`: both signatures are correct, and the time is an hour old. Only `webhook-signature` covers the time.
 * - `cut_body`: both signatures are those of the complete body, of which the first half is sent.
 * - `unusual_body`: both signatures are correct. The body has spacing that parsing and serializing removes, an é,
 *   and the depth and the longest integer that a delivery may have.
 */
export function probeRequests(inputs: ProbeInputs): Record<Probe, ProbeRequest> {
  const { secrets, foreignSecret, now } = inputs;
  const valid = signed(inputs, plainBody(inputs), secrets, now);
  const complete = signed(inputs, plainBody(inputs), secrets, now);
  return {
    valid,
    repeated: valid,
    unusual_body: signed(inputs, unusualBody(inputs), secrets, now),
    forged_signature: signed(inputs, plainBody(inputs), [foreignSecret], now, forged(inputs)),
    stale_timestamp: signed(inputs, plainBody(inputs), secrets, new Date(now.getTime() - STALE_MS)),
    cut_body: { ...complete, body: complete.body.slice(0, complete.body.length / 2) },
  };
}

/** With the id of the right key: a receiver that compares ids alone must not pass. */
const forged = ({ webhook, foreignSecret, signing }: ProbeInputs): Signing | undefined => {
  if (!signing) return undefined;
  const { privateKey } = projectKey(foreignSecret, webhook.project_id);
  return { ...signing, key: { ...signing.key, privateKey } };
};

function signed(
  { certificationId, webhook, legacy, signing: usual, randomId }: ProbeInputs,
  body: string,
  secrets: readonly [string, ...string[]],
  at: Date,
  signing = usual,
): ProbeRequest {
  const request = { id: randomId(), event: eventOf(webhook), body, test: true };
  const content = contentOf(request, webhook);
  const headers = deliveryHeaders({ ...request, ...content }, secrets, at, { legacy, signing });
  return { headers: { ...headers, "X-Service-Probe": certificationId }, body: content.body };
}

/** A receiver may reject events that its webhook does not subscribe to. */
const eventOf = ({ events }: Pick<Webhook, "events">): string => subscribedNames(events)[0] ?? "deploy.succeeded";

function payloadOf({ certificationId, webhook, now, randomId }: ProbeInputs) {
  const sample = sampleFields(eventOf(webhook), { projectId: webhook.project_id, id: randomId(), now });
  return { ...sample, data: { ...sample.data, test: true, certification_id: certificationId } };
}

const plainBody = (inputs: ProbeInputs): string => JSON.stringify(payloadOf(inputs));

/** As deep as a body may be: data is the second level. See parse-deployment-event.ts. */
const DEEPEST = Array.from({ length: 61 }).reduce<unknown[]>((inner) => [inner], []);

/** JSON with indentation, line ends of both kinds, an é as a character and as an escape sequence, 64 levels and a long integer. */
function unusualBody(inputs: ProbeInputs): string {
  const payload = payloadOf(inputs);
  const message = "déployé";
  const limits = { deepest: DEEPEST, integer: JSON.rawJSON("9".repeat(308)) };
  const data = { ...payload.data, message, escaped: "#", ...limits };
  const text = JSON.stringify({ ...payload, data }, undefined, "\t ");
  return ` ${text.replace('"#"', String.raw`"d\u00e9ploy\u00e9"`).replace("\n", "\r\n")}\n`;
}
