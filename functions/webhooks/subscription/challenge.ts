import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { USER_AGENT } from "../receiver/delivery-headers.ts";
import type { Outcome } from "../receiver/receiver-client.ts";
import * as receivers from "../receiver/receiver-client-pool.ts";
import { signatureHeaders } from "../receiver/signature.ts";

/*
 * Asks a callback to confirm a subscription. Without the confirmation, a caller could make this service send to an
 * address that belongs to another party.
 */

export const SUBSCRIPTION_HEADER = "X-MCP-Subscription-Id";

/** Why a callback is not accepted. A category only: a response of an address that the caller chose is never shown. */
export type Refusal = "timeout" | "connection_refused" | "tls_error" | "http_4xx" | "http_5xx" | "challenge_failed";

/** Sends a challenge. @returns undefined when the callback has returned it */
export async function challenge(url: string, secret: string, id: string, now: Date): Promise<Refusal | undefined> {
  const nonce = randomBytes(24).toString("base64url");
  const body = JSON.stringify({ type: "verification", challenge: nonce });
  const deliveryId = `msg_verification_${randomBytes(12).toString("hex")}`;
  const headers = {
    "Content-Type": "application/json",
    "User-Agent": USER_AGENT,
    [SUBSCRIPTION_HEADER]: id,
    ...signatureHeaders({ deliveryId, at: now, body }, secret),
  };
  return refusalOf(await receivers.post(url, headers, body), nonce);
}

function refusalOf({ errorCode, statusCode = 0, excerpt = "" }: Outcome, nonce: string): Refusal | undefined {
  if (errorCode === "timeout" || errorCode === "tls_error") return errorCode;
  if (statusCode >= 500) return "http_5xx";
  if (statusCode >= 400) return "http_4xx";
  // A blocked address too: which addresses exist inside is not shown.
  if (statusCode === 0) return "connection_refused";
  const isEchoed = errorCode === undefined && isEqual(echoIn(excerpt), nonce);
  return isEchoed ? undefined : "challenge_failed";
}

function echoIn(text: string): unknown {
  try {
    return Object(JSON.parse(text)).challenge;
  } catch {
    return undefined;
  }
}

const digest = (text: string) => createHash("sha256").update(text).digest();
const isEqual = (echo: unknown, nonce: string): boolean =>
  typeof echo === "string" && timingSafeEqual(digest(echo), digest(nonce));
