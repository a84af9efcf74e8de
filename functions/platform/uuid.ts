import { v7 } from "uuid";

/** A time-ordered UUID (RFC 9562, version 7): ids sort by time. `random` is 16 bytes or more of randomness or of a hash. */
export function timeOrderedUuid(millis: number, random: Uint8Array): string {
  return v7({ msecs: millis, random });
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The UUID in its canonical lower case, or undefined when the text is none. Any version: some ids are the platform's. */
export function canonicalUuid(text: unknown): string | undefined {
  return typeof text === "string" && UUID.test(text) ? text.toLowerCase() : undefined;
}
