import { createHash } from "node:crypto";

/** Returns the SHA-256 of a text in UTF-8, as 64 hexadecimal digits. */
export const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");
