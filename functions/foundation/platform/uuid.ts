import { v7 } from "uuid";

/**
 * Creates a time-ordered UUID (RFC 9562, version 7).
 * @param millis time since the epoch
 * @param random at least 16 random bytes, or bytes of a hash for a reproducible id
 */
export function timeOrderedUuid(millis: number, random: Uint8Array): string {
  return v7({ msecs: millis, random });
}

/** Returns the smallest time-ordered UUID of a millisecond. @param millis a time before the epoch stands for the epoch */
export const firstIdAt = (millis: number): string => timeOrderedUuid(Math.max(0, millis), new Uint8Array(16));

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Returns a UUID in lower case, or undefined for any other value. Accepts all versions: some ids are set by the
 * platform.
 */
export function canonicalUuid(text: unknown): string | undefined {
  return typeof text === "string" && UUID.test(text) ? text.toLowerCase() : undefined;
}

/** Returns the UUID with these 32 hex digits. */
export const uuidOfHex = (hex: string): string => hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");

/** Returns the next UUID in the order of the ids. */
export const idAfter = (id: string): string =>
  uuidOfHex((BigInt(`0x${id.replaceAll("-", "")}`) + 1n).toString(16).padStart(32, "0"));

/** Returns the time of a time-ordered UUID (RFC 9562, version 7): its first 48 bits, in milliseconds. */
export const timeOfUuid = (id: string): Date => new Date(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16));
