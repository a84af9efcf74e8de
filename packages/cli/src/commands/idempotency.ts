import type { CreateOptions } from "../../../client/src/client.ts";

/* The option of the commands that create something. */

export interface OnceOptions {
  idempotencyKey?: string;
}

export const onceOption = [
  "--idempotency-key <key>",
  "makes it safe to repeat the command: with the same key, nothing is created again within 24 hours",
] as const;

/** Converts the option to that of the client. */
export const onceOf = ({ idempotencyKey }: OnceOptions): CreateOptions =>
  idempotencyKey === undefined ? {} : { idempotencyKey };
