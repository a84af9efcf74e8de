import { cors } from "../manifest/response-headers.ts";

/** Returns the headers that let a page of an allowed origin read a response. `Vary` separates the origins in caches. */
export function corsHeaders(origin: string | undefined, allowed: string[]): Record<string, string> {
  if (allowed.length === 0) return {};
  if (origin === undefined || !allowed.includes(origin)) return { Vary: "Origin" };
  return {
    Vary: "Origin",
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Expose-Headers": cors.exposedHeaders.join(", "),
  };
}

/** Returns the headers of a preflight response, from which a browser learns whether a page may send its request. */
export function preflightHeaders(origin: string | undefined, allowed: string[]): Record<string, string> {
  return {
    ...corsHeaders(origin, allowed),
    "Access-Control-Allow-Methods": cors.allowedMethods.join(","),
    "Access-Control-Allow-Headers": cors.allowedHeaders.join(","),
    "Access-Control-Max-Age": String(cors.maxAgeSeconds),
  };
}
