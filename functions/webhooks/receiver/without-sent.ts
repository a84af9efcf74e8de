import { MASK } from "../../foundation/http/masked.ts";
import type { Outcome } from "./receiver-client.ts";

/* What a receiver returns, without what was sent to it. */

/** Secrets, and signatures of any body: a receiver may return the one that it expected. */
const SIGNING = /(sha256|v1)[=,:][\w+/=-]{12,}|whsec_[\w+/=-]{8,}/gi;

/**
 * Returns an outcome without the signatures and secrets of the request, and without path and query of its URL: error pages often
 * have what was sent, and viewers read them. `detail` keeps the URL of a redirect.
 */
export function withoutSent(outcome: Outcome, url: string, headers: object, secrets: readonly string[]): Outcome {
  const { excerpt, headers: returned = {}, detail } = outcome;
  if ((excerpt ?? outcome.headers ?? detail) === undefined) return outcome;
  const macs = Object.values(headers).flatMap((value: string) => value.match(/[0-9a-f]{64}|[\w+/]{43}=/g) ?? []);
  const signing = [...macs, ...secrets];
  const { pathname, search, searchParams } = new URL(url);
  // Words of the path explain an error, and are kept.
  const isToken = (text: string) => text.length > 5 && (/[^a-z]/.test(text) || text.length > 15);
  const tokens = [...pathname.split("/"), ...searchParams.values()].filter(isToken);
  const all = [...signing, pathname + search, ...tokens];
  const kept = Object.entries(returned).map(([name, value]) => [name, without(all, value)]);
  return {
    ...outcome,
    ...(excerpt !== undefined && { excerpt: without(all, excerpt) }),
    ...(kept.length > 0 && { headers: Object.fromEntries(kept) }),
    ...(detail !== undefined && { detail: without(signing, detail) }),
  };
}

/** Text that is long enough to have a part of a value, if no value has spaces or quotes. Most successes have none. */
const DENSE = /[^\s"'<>{}]{12,}/g;
/** A part of a value that is shorter than this is not recognized: where the text is cut, or inside of something encoded. */
const MIN_PART = 12;
/** Every fifth part of 8 characters is looked up: each part of 12 has one of them. */
const [SAMPLE, STRIDE] = [8, 5];

/** Masks values in a text, in any case, and also in hexadecimal, base64, base64url or URL encoding. In linear time. */
function without(values: readonly string[], text: string): string {
  const plain = normalized(text);
  const places = new Map<string, number[]>();
  for (const { 0: dense, index } of text.matchAll(
    values.some((value) => /[\s"'<>{}]/.test(value)) ? /.{12,}/gs : DENSE,
  )) {
    for (let at = index; at + SAMPLE <= index + dense.length; at++) {
      const sample = plain.slice(at, at + SAMPLE);
      places
        .set(sample, places.get(sample) ?? [])
        .get(sample)
        ?.push(at);
    }
  }
  const isMasked = new Uint8Array(text.length);
  const known = places.size === 0 ? "" : normalized(values.flatMap(formsOf).join("\n"));
  for (let from = 0; from < known.length; from += STRIDE) {
    const sample = known.slice(from, from + SAMPLE);
    for (const at of places.get(sample) ?? []) {
      if (isMasked[at]) continue;
      let [before, after] = [0, SAMPLE];
      while (at > before && from > before && plain[at - before - 1] === known[from - before - 1]) before++;
      while (at + after < text.length && plain[at + after] === known[from + after]) after++;
      if (before + after >= MIN_PART) isMasked.fill(1, at - before, at + after);
    }
    places.delete(sample);
  }
  let shown = "";
  for (const [at, hidden] of isMasked.entries()) shown += hidden ? (isMasked[at - 1] ? "" : MASK) : text[at];
  const short = values.filter(({ length }) => length > 3 && length < MIN_PART);
  const escaped = short.map((value) => new RegExp(value.replaceAll(/\W/g, "\\$&"), "gi"));
  return [...escaped, SIGNING].reduce((rest, value) => rest.replaceAll(value, MASK), shown);
}

/** Without differences of case, and of base64 and base64url. */
function normalized(text: string): string {
  const lower = text.toLowerCase();
  // A few characters have a longer lower case.
  return (lower.length === text.length ? lower : text).replaceAll("-", "+").replaceAll("_", "/");
}

/** Returns a value and its encodings. In base64, it may begin at each of the three bytes of a group. */
function formsOf(value: string): string[] {
  const inGroup = ["", "?", "??"].map((before) => Buffer.from(before + value).toString("base64"));
  const decoded = [Buffer.from(value, "base64").toString("hex"), Buffer.from(value, "hex").toString("base64")];
  return [value, encodeURIComponent(value), Buffer.from(value).toString("hex"), ...inGroup, ...decoded];
}
