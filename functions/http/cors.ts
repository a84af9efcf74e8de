import { cors } from "../manifest/response-headers.ts";

/** What lets a page of an allowed origin read an answer. Caches keep the answers to different origins apart. */
export function corsHeaders(origin: string | undefined, allowed: string[]): Record<string, string> {
  if (allowed.length === 0) return {};
  if (origin === undefined || !allowed.includes(origin)) return { Vary: "Origin" };
  return {
    Vary: "Origin",
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Expose-Headers": cors.exposedHeaders.join(", "),
  };
}

/** What tells a browser, before it sends a page's request, that it may. */
export function preflightHeaders(origin: string | undefined, allowed: string[]): Record<string, string> {
  return {
    ...corsHeaders(origin, allowed),
    "Access-Control-Allow-Methods": cors.allowedMethods.join(","),
    "Access-Control-Allow-Headers": cors.allowedHeaders.join(","),
    "Access-Control-Max-Age": String(cors.maxAgeSeconds),
  };
}
