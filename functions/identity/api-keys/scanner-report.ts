import { verify } from "node:crypto";
import type { Actor } from "../../foundation/access/actor.ts";
import type { ForeignRequest } from "../../foundation/http/define-endpoint.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { parseJson } from "../../foundation/platform/parse-json.ts";
import type { LeakPlace } from "../../foundation/records/notification.ts";
import { shownText } from "../../foundation/schema/input.ts";
import * as apiKeys from "./api-key-store.ts";
import { importedKeyKinds } from "./imported-keys.ts";
import { formsOf, keysIn } from "./key-format.ts";
import { scannerKey } from "./scanner-keys.ts";
import { storedHashOf } from "./stored-hash.ts";

/*
 * The request of a scanner of secrets, in the form of GitHub's partner program:
 * https://docs.github.com/en/code-security/secret-scanning/secret-scanning-partnership-program/secret-scanning-partner-program
 */

const MAX_BODY_BYTES = 1024 * 1024;
/**
 * Of matches, and of keys in them. What fits into the time of a request: ten owners at a time, whose keys end one after
 * the other.
 */
const MAX_MATCHES = 2_000;

interface Match {
  token: string;
  type: string;
  keys: string[];
  hashes: string[];
  place: LeakPlace;
}

/** What the scanner learns from the answer. https://docs.github.com, "Provide feedback for false positives" */
interface Label {
  token_raw: string;
  token_type: string;
  label: "true_positive" | "false_positive";
}

/**
 * Revokes the keys that a scanner has found, and says for each token whether it is a key. A repetition gets the same
 * answer.
 * @returns undefined for a request without its headers, which is none of a scanner
 * @throws ApiError `forbidden` when the scanner has not signed it, `service_unavailable` when that cannot be decided; `validation_error`
 * and `payload_too_large`
 */
export async function answerScanner({ text, header, actor, now }: ForeignRequest): Promise<Label[] | undefined> {
  const id = header("github-public-key-identifier");
  const signature = header("github-public-key-signature");
  if (id === undefined || signature === undefined) return undefined;
  const bytes = Buffer.from(text);
  if (bytes.length > MAX_BODY_BYTES) {
    throw new ApiError("payload_too_large", `The report is larger than the limit of ${MAX_BODY_BYTES / 1024} KB.`);
  }
  const key = await scannerKey(id, now);
  if (!key || !verify("sha256", bytes, key, Buffer.from(signature, "base64"))) {
    throw new ApiError("forbidden", "The report is not signed with a key of the list of the scanner.");
  }
  const matches = await allEnded(entriesOf(text).map(readMatch));
  const { size } = new Set(matches.flatMap(({ keys }) => keys));
  if (size > MAX_MATCHES) throw invalid(`must have at most ${MAX_MATCHES} API keys, not ${size}`);
  const revoked = await revoke(matches, actor, now);
  return matches.map(({ token, type, hashes }) => {
    const isKey = hashes.some((hash) => revoked.has(hash));
    return { token_raw: token, token_type: type, label: isKey ? "true_positive" : "false_positive" };
  });
}

const invalid = (message: string) =>
  new ApiError("validation_error", "The report is not valid.", { details: [{ path: "", message }] });

function entriesOf(text: string): unknown[] {
  const entries = parseJson(text);
  if (!Array.isArray(entries)) throw invalid("must be a JSON array of matches");
  if (entries.length > MAX_MATCHES) throw invalid(`must have at most ${MAX_MATCHES} matches`);
  return entries;
}

async function readMatch(entry: unknown): Promise<Match> {
  const { token, type, url, source }: Record<string, unknown> = Object(entry);
  if (typeof token !== "string" || typeof type !== "string") throw invalid("must have token and type in each match");
  const prefixes = importedKeyKinds().map(({ prefix }) => prefix);
  const keys = keysIn(token, prefixes);
  const hashes = await allEnded(keys.flatMap(formsOf).map(storedHashOf));
  const page = typeof url === "string" ? webUrl(url) : "";
  // Neither the audit log nor a mail has a key, which may be the name of the file.
  const isSafe = (text: string) => !keys.some((key) => text.includes(key)) && keysIn(text, prefixes).length === 0;
  const place = {
    ...(page !== "" && isSafe(page) && { url: page }),
    ...(typeof source === "string" && isSafe(source) && { source: shownText(source, 100) }),
  };
  return { token, type, keys, hashes: hashes.filter((hash) => hash !== undefined), place };
}

const MAX_URL_CHARACTERS = 2_000;

/**
 * Returns a URL of a report in its normal form, in which a mail can show it: strangers choose a part of it, such as the
 * name of a file. Empty for what is no web page, or too long.
 */
function webUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return "";
  url.username = url.password = "";
  return url.href.length <= MAX_URL_CHARACTERS ? url.href : "";
}

/** @returns the hashes that were keys, or had leaked before */
async function revoke(matches: Match[], actor: Actor, now: Date): Promise<ReadonlySet<string>> {
  // Of several places the first one with a URL.
  const byUrl = matches.toSorted((one, other) => Number("url" in other.place) - Number("url" in one.place));
  const places = new Map(byUrl.toReversed().flatMap(({ hashes, place }) => hashes.map((hash) => [hash, place])));
  const hashes = [...places.keys()];
  if (hashes.length === 0) return new Set();
  const revoked = await apiKeys.removeByHash(hashes, "leaked", now, actor, places);
  // After it: another report of the same key may have ended it meanwhile.
  const leaked = await apiKeys.leakedBefore(hashes);
  log.info("keys of a scanner revoked", { matches: matches.length, revoked: revoked.size });
  return new Set([...revoked, ...leaked]);
}
