/* The session of this tab: one credential, stored until the tab is closed or the user signs out. */

const CREDENTIAL = "credential";
const ROTATIONS = "rotations";

export interface Session {
  token: string;
  kind: "jwt" | "key";
  /** The subject that the token claims. For display only: the API verifies it. */
  user: string | undefined;
  /** Epoch milliseconds; undefined for an API key. */
  expiresAt: number | undefined;
}

/** Reads a pasted credential. A leading `Bearer` and surrounding spaces are removed. */
export function sessionOf(pasted: string): Session {
  const token = pasted.trim().replace(/^bearer\s+/i, "");
  // An API key of an earlier service may begin otherwise than with `svc_`.
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return { token, kind: "key", user: undefined, expiresAt: undefined };
  const claims = claimsOf(token);
  const user = typeof claims.sub === "string" ? claims.sub : undefined;
  return { token, kind: "jwt", user, expiresAt: typeof claims.exp === "number" ? claims.exp * 1000 : undefined };
}

function claimsOf(jwt: string): { sub?: unknown; exp?: unknown } {
  try {
    const base64 = (jwt.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return Object(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return {};
  }
}

export function storedSession(): Session | undefined {
  const token = sessionStorage.getItem(CREDENTIAL);
  return token === null ? undefined : sessionOf(token);
}

export function storeSession({ token }: Session): void {
  sessionStorage.setItem(CREDENTIAL, token);
}

/** Removes the credential and every signing secret from the tab. */
export function clearSession(): void {
  sessionStorage.clear();
  revealedSecrets.clear();
}

/** What was typed in the form that is open, and in the one that was open when the session expired. Never stored. */
export const drafts = { open: new Map<string, unknown>(), kept: new Map<string, unknown>() };

/**
 * Returns the credential that the local start page puts behind `#token=`, which browsers do not send to servers. Removes it
 * from the address and from the tab's history. The browser's own list of visited pages may still contain it: it is a token
 * of a local run and expires after an hour.
 */
export function takeTokenFromAddress(): string | undefined {
  const token = /^#token=([\w.-]+)$/.exec(location.hash)?.[1];
  if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.pathname);
  return token;
}

/** Deliveries that the user has sent, and whose outcome is announced where they are shown. */
export const awaitedDeliveries = new Set<string>();

/** Signing secrets shown since the page was loaded, by webhook id. For the code to paste; never stored. */
export const revealedSecrets = new Map<string, string>();

/** When the previous secret of a webhook expires, if it was rotated in this session. The API does not return it. Epoch ms. */
export function previousSecretExpiresAt(webhookId: string): number | undefined {
  return readRotations()[webhookId];
}

export function recordRotation(webhookId: string, expiresAt: number): void {
  sessionStorage.setItem(ROTATIONS, JSON.stringify({ ...readRotations(), [webhookId]: expiresAt }));
}

function readRotations(): Record<string, number> {
  return JSON.parse(sessionStorage.getItem(ROTATIONS) ?? "{}");
}
