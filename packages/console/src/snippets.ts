/* Code to paste into a receiver, which verifies that a delivery was sent by this service. The tests run it. */

/** Shown in place of a secret that was not revealed since the page was loaded. */
export const SECRET_PLACEHOLDER = "whsec_…";

export const snippetLanguages = ["node", "python", "shell"] as const;
export type SnippetLanguage = (typeof snippetLanguages)[number];

export const snippets: Record<SnippetLanguage, (secret: string) => string> = {
  node: (secret) => `import { createHmac, timingSafeEqual } from "node:crypto";

const secret = "${secret}"; // move it to your secret store

/** rawBody: the body as received, before any JSON parser. signature: the X-Service-Signature header. */
export function isFromPlatform(rawBody, signature) {
  const expected = Buffer.from(\`sha256=\${createHmac("sha256", secret).update(rawBody).digest("hex")}\`);
  const actual = Buffer.from(signature ?? "");
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
`,
  python: (secret) => `import hashlib
import hmac

SECRET = "${secret}"  # move it to your secret store

def is_from_platform(raw_body: bytes, signature: str) -> bool:
    """raw_body: the body as received. signature: the X-Service-Signature header."""
    expected = "sha256=" + hmac.new(SECRET.encode(), raw_body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), (signature or "").encode())
`,
  shell: (secret) => `# body.json: the body as received, byte for byte. SIGNATURE: the X-Service-Signature header.
WEBHOOK_SECRET='${secret}' # move it to your secret store

expected="sha256=$(openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" < body.json | sed 's/^.* //')"
[ "$expected" = "$SIGNATURE" ] && echo verified
`,
};
