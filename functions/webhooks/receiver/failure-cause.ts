import type { ClientRequest } from "node:http";
import { type FailureCode, NO_IPV4, NOT_CONNECTED, PORT_BLOCKED } from "../../foundation/events/failure-code.ts";
import { formatOfUrl, type ProductFormat } from "../formats/format-of-url.ts";

/*
 * The cause of a failed request to a receiver: its code, and the `detail` of which failure-hints.ts makes a sentence. The
 * command line imports both, so that it reports about a receiver on a developer's machine what the service would report.
 */

/** How far a request was when it failed. */
export type Phase = "connecting" | "handshake" | "connected";

/** The fields of an error of Node's that its cause depends on. */
interface RequestError {
  name?: string;
  code?: string;
  syscall?: string;
  message?: string;
  /** Why the HTTP parser failed. */
  reason?: string;
  /** The address of a connection that failed, or of several that did. */
  address?: string;
  errors?: readonly { address?: string }[];
}

/** Why no complete response arrived, as failure-hints.ts takes it. */
export interface Cause {
  errorCode: FailureCode;
  detail?: string | undefined;
}

/** The response announced another protocol than HTTP. It is an error of `causeOf` too. */
export const SWITCHED = "SWITCHED_PROTOCOL";
/** The receiver closed the connection before the TLS handshake was complete. */
export const IN_HANDSHAKE = "IN_HANDSHAKE";

const UNREACHABLE = /^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT)$/;
const RESET = /^(ECONNRESET|EPIPE|ECONNABORTED)$/;
const TLS = /^(EPROTO|ERR_TLS_\w+|ERR_SSL_\w+|CERT_\w+|\w*SELF_SIGNED\w*|UNABLE_TO_\w+)$/;

/** Classifies an error of a request that has no complete response. */
export function causeOf(error: RequestError, phase: Phase): Cause {
  const { name, code = "", syscall, reason } = error;
  if (name === "NameNotResolvedError" || syscall === "getaddrinfo") return { errorCode: "dns_error", detail: code };
  if (code === PORT_BLOCKED) return { errorCode: "address_blocked", detail: code };
  if (code === "ADDRESS_BLOCKED") return { errorCode: "address_blocked" };
  if (code === "ETIMEDOUT") return { errorCode: "timeout", detail: phase === "connected" ? undefined : NOT_CONNECTED };
  if (RESET.test(code)) {
    return { errorCode: "connection_reset", detail: phase === "handshake" ? IN_HANDSHAKE : undefined };
  }
  // Verification of a certificate ends before the handshake does, with one of a hundred codes.
  if (TLS.test(code) || phase === "handshake") return { errorCode: "tls_error", detail: tlsDetail(error) };
  if (code === "ECONNREFUSED" || UNREACHABLE.test(code) || (phase === "connecting" && /^E[A-Z]+$/.test(code))) {
    const needsIpv6 = UNREACHABLE.test(code) && isIpv6Only(error);
    return { errorCode: "connection_refused", detail: needsIpv6 ? NO_IPV4 : undefined };
  }
  if (code === SWITCHED) return { errorCode: "invalid_response", detail: code };
  // The parser's reasons are constants: none has text of the response.
  return { errorCode: "invalid_response", detail: reason === undefined ? undefined : plain(reason) };
}

/** Some codes cover many causes, which only the message names: `…:SSL routines:<function>:<reason>:…`, or the reason alone. */
function tlsDetail({ code = "", message = "" }: RequestError): string {
  const reason = code === "EPROTO" ? /:SSL routines:[^:]*:([^:]+)/.exec(message)?.[1] : undefined;
  return plain(reason ?? (code === "UNSPECIFIED" ? message : code)) || "no reason given";
}

function isIpv6Only({ address, errors = [{ address: address ?? "" }] }: RequestError): boolean {
  return errors.every((each) => each.address?.includes(":"));
}

const MAX_DETAIL_CHARACTERS = 80;

const plain = (text: string): string => text.replaceAll(/[^\w .,'/-]/g, "").slice(0, MAX_DETAIL_CHARACTERS);

/** The headers of a response, as Node has them: names in lower case, each byte of a value as one character. */
type Headers = Record<string, string | string[] | undefined>;

const textOf = (headers: Headers, name: string): string => String(headers[name] ?? "");

/** Schemes that a hint may name; it has no text of the receiver. */
const SCHEMES = ["ApiKey", "Basic", "Bearer", "Digest", "DPoP", "Hawk", "Negotiate", "NTLM", "OAuth", "Token"];

/** What answered in place of the receiver's own code. */
export const CSRF = "CSRF";
export const SIGN_IN = "SIGN_IN";
export const BOT_CHECK = "BOT_CHECK";

const CSRF_TEXT = /[cx]srf|cross.site request forgery|authenticity.?token|the change you wanted was rejected/i;
const SIGN_IN_TEXT = /<title>[^<]{0,80}(sign.?in|log.?in|single sign|authentication required)|type=["']?password/i;

/** Codes in the responses of products, by which they say why they refuse a request. A `detail` has no other text of theirs. */
const PRODUCT_CODES: Record<ProductFormat, RegExp> = {
  slack:
    /^\s*(no_text|missing_text_or_fallback_or_attachments|invalid_payload|invalid_blocks(?:_format)?|channel_not_found|channel_is_archived|no_service(?:_id)?|no_team|no_active_hooks|team_disabled|invalid_token|action_prohibited|posting_to_general_channel_denied|user_not_found|too_many_attachments)\b/,
  discord: /"code"\s*:\s*(50006|50035|50027|10015)\b/,
  teams: /HTTP error (\d{3})/,
  "google-chat": /"status"\s*:\s*"([A-Z_]{1,40})"/,
  "github-dispatch": /^$/,
};

/** Returns the product behind a URL and its code, such as `slack:no_text`; undefined = another receiver. */
function productDetail(text: string, from: URL): string | undefined {
  const product = formatOfUrl(from.href);
  return product && `${product}:${PRODUCT_CODES[product].exec(text)?.[1] ?? ""}`;
}

/**
 * Returns whether a 2xx says that nothing was delivered, as the connectors of Teams do. https://github.com/MicrosoftDocs/msteams-docs
 */
export const isRefusal = (text: string, from: URL): boolean =>
  formatOfUrl(from.href) === "teams" && /delivery failed/i.test(text) && PRODUCT_CODES.teams.test(text);

/** Returns the seconds that a 429 asks to wait for in its JSON body, as Discord's does; undefined = it does not. */
export function retryAfterIn(text: string): string | undefined {
  const seconds = Number(/"retry_after"\s*:\s*(\d{1,6}(?:\.\d{1,9})?)/.exec(text)?.[1]);
  return Number.isNaN(seconds) ? undefined : String(Math.ceil(seconds));
}

/**
 * Returns the `detail` of a complete response: the target of a redirect, the scheme of the credentials that it asks for, or
 * what answered in place of the receiver; undefined for most.
 * @param from the URL of the request
 */
export function answerDetail(status: number, headers: Headers, text: string, from: URL): string | undefined {
  if (status >= 300 && status < 400) return redirectTarget(headers, from);
  if (status < 400) return isRefusal(text, from) ? productDetail(text, from) : undefined;
  if (status >= 500) return undefined;
  const product = productDetail(text, from);
  if (product !== undefined && status !== 429) return product;
  const [asked = ""] = /^[\w-]*/.exec(textOf(headers, "www-authenticate")) ?? [];
  if (asked !== "") return SCHEMES.find((scheme) => scheme.toLowerCase() === asked.toLowerCase()) ?? "other";
  if (textOf(headers, "cf-mitigated") === "challenge") return BOT_CHECK;
  // Laravel returns 419, Rails 422, Django 403, Flask 400.
  if (status === 419 || ([400, 403, 422].includes(status) && CSRF_TEXT.test(text))) return CSRF;
  const isPage = textOf(headers, "content-type").includes("html");
  return isPage && [401, 403].includes(status) && SIGN_IN_TEXT.test(text) ? SIGN_IN : undefined;
}

const MAX_TARGET_CHARACTERS = 300;

/** Returns the absolute target of a redirect, without fragment; undefined when there is none that could be shown. */
function redirectTarget(headers: Headers, from: URL): string | undefined {
  const bytes = Buffer.from(textOf(headers, "location"), "latin1");
  const text = bytes.toString("utf8");
  const location = text.includes("\ufffd") ? bytes.toString("latin1") : text;
  if (location === "" || !URL.canParse(location, from.href)) return undefined;
  const target = new URL(location, from);
  target.hash = "";
  return /^https?:$/.test(target.protocol) && target.href.length <= MAX_TARGET_CHARACTERS ? target.href : undefined;
}

const CODINGS = /^(x-)?(gzip|compress)$|^(deflate|br|zstd)$/i;

/**
 * Returns the start of a body as text. A compressed one is named instead of decompressed, so that a zip bomb has no effect:
 * the request asks for none.
 * @param bytes the start of the body
 * @param length number of its bytes that arrived
 */
export function excerptOf(bytes: Uint8Array, length: number, headers: Headers, maxBytes: number): string {
  const coding = textOf(headers, "content-encoding").trim();
  if (length > 0 && CODINGS.test(coding)) return `(compressed with ${coding.toLowerCase()}, ${length} bytes)`;
  const charset = /charset\s*=\s*["']?([\w:-]{1,40})/i.exec(textOf(headers, "content-type"))?.[1];
  return safeText(bytes, maxBytes, charset);
}

/** Decodes bytes, without control characters, to at most `maxBytes` of UTF-8. Invalid bytes become U+FFFD. */
export function safeText(bytes: Uint8Array, maxBytes: number, charset?: string): string {
  // `stream` drops an incomplete character at the end.
  const text = decoderOf(charset)
    .decode(bytes, { stream: true })
    .replace(/[^\P{C}\t\n]/gu, "");
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes), { stream: true });
}

function decoderOf(charset: string | undefined): InstanceType<typeof TextDecoder> {
  try {
    return new TextDecoder(charset);
  } catch {
    // Not a name of a charset.
    return new TextDecoder();
  }
}

/** Follows a request from its start. @returns a function that returns how far it is */
export function phaseOf(request: ClientRequest): () => Phase {
  let phase: Phase = "connecting";
  request.once("socket", (socket) => {
    if (request.reusedSocket) {
      phase = "connected";
      return;
    }
    socket.once("connect", () => {
      phase = request.protocol === "https:" ? "handshake" : "connected";
    });
    socket.once("secureConnect", () => {
      phase = "connected";
    });
  });
  return () => phase;
}
