/* Bytes and their encodings, in Node and in browsers. The decoders accept what Node's Buffer accepts. */

export type Bytes = Uint8Array<ArrayBuffer>;

export const fromText = (text: string): Bytes => new TextEncoder().encode(text);

/** Decodes UTF-8 and keeps a byte order mark. */
export const toText = (bytes: Bytes): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

export function concat(...parts: Bytes[]): Bytes {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

export const areEqual = (one: Bytes, other: Bytes): boolean =>
  one.length === other.length && one.every((byte, index) => byte === other[index]);

export const toHex = (bytes: Bytes): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Decodes hex up to the first pair that is none. */
export function fromHex(text: string): Bytes {
  const [valid = ""] = /^([0-9a-f]{2})*/i.exec(text) ?? [];
  return Uint8Array.from({ length: valid.length / 2 }, (_, index) =>
    Number.parseInt(valid.slice(2 * index, 2 * index + 2), 16),
  );
}

/** Converts each byte to the character with its number. */
export function toLatin1(bytes: Bytes): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

/** Keeps the low byte of each UTF-16 unit. */
export const fromLatin1 = (text: string): Bytes =>
  Uint8Array.from({ length: text.length }, (_, index) => text.charCodeAt(index) & 0xff);

export const toBase64 = (bytes: Bytes): string => btoa(toLatin1(bytes));

/** A secret whose part after `whsec_` is base64, with or without padding. */
const ENCODED_SECRET = /^whsec_(?=.)((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?)$/;

/** Returns the key of `webhook-signature`: the decoded part after `whsec_`, or the bytes of a secret that has no such part. */
export function standardKey(secret: string): Bytes {
  const encoded = ENCODED_SECRET.exec(secret)?.[1];
  return encoded === undefined ? fromText(secret) : fromBase64(encoded);
}

/** Decodes base64 or base64url up to the padding, and skips other characters. */
export function fromBase64(text: string): Bytes {
  const [digits = ""] = text.replaceAll("-", "+").replaceAll("_", "/").split("=");
  const valid = digits.replaceAll(/[^\w+/]/g, "");
  return fromLatin1(atob(valid.length % 4 === 1 ? valid.slice(0, -1) : valid));
}
