import { MASK } from "../../foundation/http/masked.ts";
import type { Outcome } from "./receiver-client.ts";

/* What a receiver returns, without what was sent to it. */

/** Secrets, and signatures of any body: a receiver may return the one that it expected. */
const SIGNING = /(sha256|v1a?)[=,:](?:[\w+/=-]{12,}|[\da-f]{2}(?:[ :-]?[\da-f]{2}){5,})|whsec_[\w+/=-]{8,}/gi;

/**
 * Returns an outcome without the signatures and secrets of the request, and without path and query of its URL: error pages often
 * have what was sent, and viewers read them. `detail` keeps the URL of a redirect.
 */
export function withoutSent(outcome: Outcome, url: string, headers: object, secrets: readonly string[]): Outcome {
  const { excerpt, headers: returned = {}, detail } = outcome;
  if ((excerpt ?? outcome.headers ?? detail) === undefined) return outcome;
  const macs = Object.values(headers).flatMap(
    (value: string) => value.match(/[0-9a-f]{64}|[\w+/]{86}==|[\w+/]{43}=/g) ?? [],
  );
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

/**
 * What may be between the characters of a value, and is not compared: spaces, quotes, commas, escapes of HTML, URLs and JSON, the
 * prefix of a byte. Punctuation of values is not compared either, because each of these may stand for it.
 */
const SEPARATOR =
  /&#?\w{1,8};|%[\da-f]{2}|\\u[\da-f]{4}|\\x(?:2[bf]|3d|)|\\[nrt]|\b0x(?=[\da-f]{2}\b)|[^\p{L}\p{N}]/giu;
/** A shorter part of a value, with its separators, is not recognized: where the text is cut, or inside of something encoded. */
const MIN_PART = 12;
/** Nor is one with fewer characters that are no separators. */
const MIN_CHARACTERS = 8;
/** Every third part of 6 characters is looked up: each part of 8 has one of them. */
const [SAMPLE, STRIDE] = [6, 3];

/** Masks values in a text, in linear time: long ones in any form, short ones as they are, and anything that signs. */
function without(values: readonly string[], text: string): string {
  const short = values.filter(({ length }) => length > 3 && length < MIN_PART);
  const patterns = short.map((value) => new RegExp(value.replaceAll(/\W/g, "\\$&"), "gi"));
  return [...patterns, SIGNING].reduce((rest, value) => rest.replaceAll(value, MASK), withoutParts(values, text));
}

/**
 * Masks values and parts of them, in any case and with any separators, also in hexadecimal, base64, base64url or URL encoding,
 * and as a list of bytes.
 */
function withoutParts(values: readonly string[], text: string): string {
  const blanked = lowerCase(text).replaceAll(SEPARATOR, ({ length }) => "\n".repeat(length));
  const plain = blanked.replaceAll("\n", "");
  const indexes = Array.from({ length: text.length }, (_, index) => index).filter((index) => blanked[index] !== "\n");
  const starts = Array.from({ length: Math.max(0, plain.length - SAMPLE + 1) }, (_, at) => at);
  const samples = Map.groupBy(starts, (at) => plain.slice(at, at + SAMPLE));
  const known = knownForms(values, samples);
  const isMasked = new Uint8Array(text.length);
  for (let from = 0; from < known.length; from += STRIDE) {
    const sample = known.slice(from, from + SAMPLE);
    for (const at of samples.get(sample) ?? []) {
      if (isMasked[indexes[at] ?? 0]) continue;
      const { before, after } = commonPart(plain, at, known, from);
      let [start = 0, last = 0] = [indexes[at - before], indexes[at + after - 1]];
      while (text[last + 1] === "=") last++;
      if (before + after >= MIN_CHARACTERS && last - start >= MIN_PART - 1) isMasked.fill(1, start, last + 1);
    }
    samples.delete(sample);
  }
  let shown = "";
  for (const [at, hidden] of isMasked.entries()) shown += hidden ? (isMasked[at - 1] ? "" : MASK) : text[at];
  return shown;
}

/** Returns all forms of the values, each ended by a line break, which no plain text has; empty if a short text has none. */
function knownForms(values: readonly string[], samples: ReadonlyMap<string, number[]>): string {
  if (samples.size === 0) return "";
  const forms = lowerCase(values.flatMap(formsOf).join("\n"));
  // Most successes have a short text, which is compared faster like this.
  const isNone = samples.size < 100 && ![...samples.keys()].some((sample) => forms.includes(sample));
  return isNone ? "" : forms;
}

/** Returns how far two texts that have a sample at these places are the same before it, and from its start. */
function commonPart(plain: string, at: number, known: string, from: number): { before: number; after: number } {
  let [before, after] = [0, SAMPLE];
  while (at > before && from > before && plain[at - before - 1] === known[from - before - 1]) before++;
  while (at + after < plain.length && plain[at + after] === known[from + after]) after++;
  return { before, after };
}

/** In lower case, with the same length: only one letter has a longer lower case. */
const lowerCase = (text: string): string => text.replaceAll("İ", "I").toLowerCase();

/** Returns a value and its encodings, without separators. In base64, it may begin at each of the three bytes of a group. */
function formsOf(value: string): string[] {
  const inGroup = ["", "?", "??"].map((before) => Buffer.from(before + value).toString("base64"));
  const bytes = [Buffer.from(value), Buffer.from(value, "hex"), Buffer.from(value, "base64")];
  const encoded = bytes.flatMap((each) => [each.toString("hex"), each.toString("base64"), each.join("")]);
  return [
    ...[value, encodeURIComponent(value)].map((form) => form.replaceAll(SEPARATOR, "")),
    ...[...inGroup, ...encoded].map((form) => form.replaceAll(/[+/=]/g, "")),
  ];
}
