import { isIP } from "node:net";
import { isMaskedUrl } from "../../foundation/http/masked.ts";
import { type Cidr, isAllowedAddress, isPublicAddress, isServicePort } from "./receiver-address.ts";

const MAX_URL_CHARACTERS = 2048;

/** Names of local hosts (`localhost`, RFC 6762, RFC 8375, ICANN's `internal`), and names in common private use. */
const RESERVED_NAME = /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa)$/;

const isLabel = ({ length }: string): boolean => length >= 1 && length <= 63;

/** Returns the host of a URL as a name or an address: IPv6 without brackets, a name without its root dot. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

/**
 * Returns a URL as it is requested: host in lower case and without its root dot, which is not part of a name in TLS (RFC
 * 6066, section 3), addresses in decimal, without default port and dot segments. If
 * only the slash of an empty path is missing, the URL remains as it is: `https://example.com` and `https://example.com/`
 * are the same (RFC 3986, section 6.2.3). `https://EXAMPLE.com` and `https://example.com?a` get the slash.
 * @param text an absolute URL
 */
export function normalizedUrl(text: string): string {
  const url = new URL(text);
  url.hostname = url.hostname.replace(/\.$/, "");
  return url.href === `${text}/` ? text : url.href;
}

/**
 * Validates the URL of a receiver. Names are not resolved: a name that does not resolve today may do so tomorrow, and
 * the address is checked at every delivery.
 * @param allowed ranges that the operator allowed for local use; they also allow plain http and `localhost`
 * @returns the broken rule as text for the user; undefined when the URL is valid
 */
export function validateReceiverUrl(text: string, allowed: Cidr[]): string | undefined {
  if (text.length > MAX_URL_CHARACTERS) return `must be at most ${MAX_URL_CHARACTERS} characters long`;
  // The URL parser would silently drop these characters, and convert non-ASCII ones. The URL that the user sees must be
  // the URL that is requested.
  if (!/^[\x21-\x7e]+$/.test(text)) return "must not contain spaces, control characters or unencoded Unicode";
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && url.href.length > MAX_URL_CHARACTERS) {
    return `must be at most ${MAX_URL_CHARACTERS} characters long with its special characters encoded`;
  }
  const scheme = allowed.length > 0 ? "https://, or http:// and an address that the operator allows" : "https://";
  if (!url || !/^https?:\/\//i.test(text)) return `must be an absolute URL that starts with ${scheme}`;
  if (isMaskedUrl(url)) return "is masked: pass the whole URL, which admins with webhooks:write can read";
  if (url.username !== "" || url.password !== "") return "must not contain a user name or password";
  if (url.hash !== "") return "must not contain a fragment (#…), which is never sent";
  if (url.port === "0") return "must not use port 0";
  if (isServicePort(Number(url.port))) {
    return `must not use port ${url.port}, which is that of a service other than a web server; use 443, for example`;
  }
  const host = hostOf(url);
  const isAllowed = isAllowedAddress(host, allowed) || (host === "localhost" && allowed.length > 0);
  if (isAllowed) return undefined;
  if (url.protocol !== "https:") return `must start with ${scheme}`;
  if (isIP(host) !== 0) return isPublicAddress(host) ? undefined : "must not point to a private or reserved address";
  if (host.length > 253 || !host.split(".").every(isLabel)) {
    return "must have a host name of at most 253 characters, with 1 to 63 between its dots";
  }
  if (!host.includes(".") || RESERVED_NAME.test(host)) return "must have a public host name";
  return undefined;
}
