import { randomBytes } from "node:crypto";

/** Returns a random id of 12 characters (72 bits), without `#`. It marks a write of this process. */
export const randomId = (): string => randomBytes(9).toString("base64url");
