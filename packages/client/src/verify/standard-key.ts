/* The key of `webhook-signature`: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */

/** A secret whose part after `whsec_` is base64, with or without padding. */
const ENCODED_SECRET = /^whsec_(?=.)((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?)$/;

/** Returns the decoded part after `whsec_`, or the bytes of a secret that has no such part, in UTF-8. */
export function standardKey(secret: string): Uint8Array<ArrayBuffer> {
  const encoded = ENCODED_SECRET.exec(secret)?.[1];
  return encoded === undefined ? new TextEncoder().encode(secret) : fromBase64(encoded);
}

/** @throws DOMException when the text is not base64. The padding may be missing */
export const fromBase64 = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0));
