import type { Permission } from "../manifest/permissions.ts";
import { MASK, withMaskedUrls } from "./masked.ts";

/*
 * What a caller does not see in the responses about a project. Without `webhooks:write` the URLs of webhooks are masked: for many
 * receivers the path is the credential. Without `webhook-secrets:write`, what signs a delivery: a viewer could send it to the
 * receiver as an event. Every response passes through here, so that a new endpoint shows neither.
 */

/** Fields that have a URL, or text with one. */
const WITH_URLS = new Set(["url", "hint", "response_excerpt", "response_headers"]);
/** Fields about deployments. Receivers get them as they are. */
const AS_SENT = new Set(["payload", "filter"]);
/** Headers of a delivery that sign nothing. The header of an earlier service, which signs, may have any other name. */
const UNSIGNED = /^(content-type|user-agent|x-service-(event|delivery|sequence|test)|webhook-(id|timestamp))$/i;

/**
 * Returns the data of a response as a caller may see it.
 * @param may whether the caller is an admin of the project and has a permission
 */
export function maskedFor(may: (permission: Permission) => boolean, data: unknown): unknown {
  const [seesUrls, seesSignatures] = [may("webhooks:write"), may("webhook-secrets:write")];
  if (seesUrls && seesSignatures) return data;
  const copyOf = (value: unknown, hasUrl: boolean): unknown => {
    if (typeof value === "string") return hasUrl ? withMaskedUrls(value) : value;
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => copyOf(item, hasUrl));
    const entries = Object.entries(value).map(([name, field]) => {
      if (AS_SENT.has(name)) return [name, field];
      if (name === "shadow" && !seesSignatures) return [name, withoutSignatures(field)];
      return [name, copyOf(field, hasUrl || (!seesUrls && WITH_URLS.has(name)))];
    });
    return Object.fromEntries(entries);
  };
  return copyOf(data, false);
}

const withoutSignatures = (shadow: { headers: Record<string, string> }) => {
  const shown = Object.entries(shadow.headers).map(([name, value]) => [name, UNSIGNED.test(name) ? value : MASK]);
  return { ...shadow, headers: Object.fromEntries(shown) };
};
