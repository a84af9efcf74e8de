import type { ProjectKey } from "./project-key.ts";

/**
 * - `hmac`: both signatures with the secret of the webhook.
 * - `ed25519`: `v1a` in `webhook-signature`, with the key of the project.
 * - `http`: an HTTP Message Signature (RFC 9421) with the same key.
 */
export const signatureSchemes = ["hmac", "ed25519", "http"] as const;
export type SignatureScheme = (typeof signatureSchemes)[number];

/** How a webhook is signed that has chosen it. `url` is that of the request, `directory` that of the public keys. */
export interface Signing {
  schemes: readonly SignatureScheme[];
  key: ProjectKey;
  url: string;
  directory: string;
}

export interface SignedDelivery {
  deliveryId: string;
  /** Time of the attempt. */
  at: Date;
  body: string;
}
