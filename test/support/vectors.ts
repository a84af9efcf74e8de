import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A delivery of docs/vectors.json, whose fields docs/receivers/README.md explains. */
export interface Vector {
  name: string;
  scheme: "standard" | "body";
  secrets: string[];
  body: string;
  headers: Record<string, string>;
  now: number;
  valid: boolean;
  test?: true;
  error?: "missing_header" | "timestamp_too_old" | "timestamp_too_new" | "invalid_timestamp" | "no_matching_signature";
  why?: string;
}

interface Keys {
  secret: string;
  body_key_hex: string;
  standard_key_hex: string;
}

/** The published test vectors, and the keys of each of their secrets. */
export const { vectors, keys }: { vectors: Vector[]; keys: Keys[] } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../docs/vectors.json"), "utf8"),
);
