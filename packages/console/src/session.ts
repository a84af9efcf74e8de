/* Who is signed in: one credential, kept by this tab and gone with it. Nothing else that is secret is stored. */

const CREDENTIAL = "credential";
const ROTATIONS = "rotations";

export interface Session {
  token: string;
  kind: "jwt" | "key";
  /** What the token says of itself, for display. Whether it is true, the API judges. */
  user: string | undefined;
  /** Epoch milliseconds; undefined for an API key, which does not expire. */
  expiresAt: number | undefined;
}

/** What somebody pasted, as a session. `Bearer` before it and blanks around it come with copying. */
export function sessionOf(pasted: string): Session {
  const token = pasted.trim().replace(/^bearer\s+/i, "");
  if (token.startsWith("svc_")) return { token, kind: "key", user: undefined, expiresAt: undefined };
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

export function keptSession(): Session | undefined {
  const token = sessionStorage.getItem(CREDENTIAL);
  return token === null ? undefined : sessionOf(token);
}

export function keepSession({ token }: Session): void {
  sessionStorage.setItem(CREDENTIAL, token);
}

export function forgetSession(): void {
  sessionStorage.clear();
  shownSecrets.clear();
}

/**
 * The credential that the local start page puts behind `#token=`, which a browser sends to nobody. It is taken out of the
 * address and of this tab's history before anything else happens. The list of visited pages that the browser keeps on disk
 * may still hold it: it is a token of a local run, good for an hour.
 */
export function takeTokenFromAddress(): string | undefined {
  const token = /^#token=([\w.-]+)$/.exec(location.hash)?.[1];
  if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.pathname);
  return token;
}

/** Signing secrets that were shown since the page was loaded, by webhook: for the snippets, and in memory only. */
export const shownSecrets = new Map<string, string>();

/** When the old secrets of webhooks end that were rotated in this session: the API does not tell. Epoch milliseconds. */
export function rotationEnd(webhookId: string): number | undefined {
  return readRotations()[webhookId];
}

export function noteRotation(webhookId: string, endsAt: number): void {
  sessionStorage.setItem(ROTATIONS, JSON.stringify({ ...readRotations(), [webhookId]: endsAt }));
}

function readRotations(): Record<string, number> {
  return JSON.parse(sessionStorage.getItem(ROTATIONS) ?? "{}");
}
