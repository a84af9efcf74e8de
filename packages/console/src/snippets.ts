/* What a receiver runs to know that a delivery is from us, in a form to paste. The tests run them. */

/** Stands where the secret belongs, when nobody has just seen it. */
export const SECRET_PLACEHOLDER = "whsec_…";

export const snippetLanguages = ["node", "python", "shell"] as const;
export type SnippetLanguage = (typeof snippetLanguages)[number];

export const snippets: Record<SnippetLanguage, (secret: string) => string> = {
  node: (secret) => `import { createHmac, timingSafeEqual } from "node:crypto";

const secret = "${secret}"; // keep it in your secret store

/** rawBody: the body as it came, before any JSON parser. signature: the header X-Service-Signature. */
export function isFromPlatform(rawBody, signature) {
  const expected = Buffer.from(\`sha256=\${createHmac("sha256", secret).update(rawBody).digest("hex")}\`);
  const actual = Buffer.from(signature ?? "");
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
`,
  python: (secret) => `import hashlib
import hmac

SECRET = "${secret}"  # keep it in your secret store

def is_from_platform(raw_body: bytes, signature: str) -> bool:
    """raw_body: the body as it came. signature: the header X-Service-Signature."""
    expected = "sha256=" + hmac.new(SECRET.encode(), raw_body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), (signature or "").encode())
`,
  shell: (secret) => `# body.json: the body as it came, byte for byte. SIGNATURE: the header X-Service-Signature.
WEBHOOK_SECRET='${secret}' # keep it in your secret store

expected="sha256=$(openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" < body.json | sed 's/^.* //')"
[ "$expected" = "$SIGNATURE" ] && echo verified
`,
};
