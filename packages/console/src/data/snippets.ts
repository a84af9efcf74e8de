/* Code to paste into a receiver. It calls a file of docs/receivers, which verifies that a delivery is authentic. The tests run it. */

/** Shown in place of a secret that was not revealed since the page was loaded. */
export const SECRET_PLACEHOLDER = "whsec_…";

export const snippetLanguages = ["node", "python", "go", "ruby", "php", "shell"] as const;
export type SnippetLanguage = (typeof snippetLanguages)[number];

export interface Snippet {
  label: string;
  /** The file that the code needs beside it, below `docs/receivers`. */
  file: string;
  code(secret: string): string;
}

/** Not a line of the template, where it would look like an import of this file. */
const goImport = 'import "net/http"';

export const snippets: Record<SnippetLanguage, Snippet> = {
  node: {
    label: "Node",
    file: "node/verify-webhook.mjs",
    code: (secret) => `import { verifyWebhook } from "./verify-webhook.mjs";

const secret = "${secret}"; // move it to your secret store

/** rawBody: the body as received, before any JSON parser. Throws if the delivery is not from the platform. */
export function receive(rawBody, headers) {
  return verifyWebhook({ body: rawBody, headers, secret }); // { id, payload }
}
`,
  },
  python: {
    label: "Python",
    file: "python/verify_webhook.py",
    code: (secret) => `from verify_webhook import verify_webhook

SECRET = "${secret}"  # move it to your secret store

def receive(raw_body: bytes, headers):
    """raw_body: the body as received. Raises if the delivery is not from the platform."""
    delivery_id, payload = verify_webhook(raw_body, headers, SECRET)
    return delivery_id, payload
`,
  },
  go: {
    label: "Go",
    file: "go/verify_webhook.go",
    code: (secret) => `package webhook

${goImport}

const secret = "${secret}" // move it to your secret store

// Receive returns an error if the delivery is not from the platform. rawBody is the body as received.
func Receive(rawBody []byte, headers http.Header) (*Delivery, error) {
	return Verifier{Secrets: []string{secret}}.Verify(rawBody, headers)
}
`,
  },
  ruby: {
    label: "Ruby",
    file: "ruby/verify_webhook.rb",
    code: (secret) => `require_relative "verify_webhook"

SECRET = "${secret}" # move it to your secret store

# raw_body: the body as received. Raises if the delivery is not from the platform.
def receive(raw_body, headers)
  id, payload = PlatformWebhook.verify(body: raw_body, headers: headers, secrets: SECRET)
  [id, payload]
end
`,
  },
  php: {
    label: "PHP",
    file: "php/verify-webhook.php",
    code: (secret) => `<?php
require __DIR__ . '/verify-webhook.php';

const SECRET = '${secret}'; // move it to your secret store

/** $rawBody: the body as received. Throws if the delivery is not from the platform. */
function receive(string $rawBody, array $headers): array
{
    return verify_webhook($rawBody, $headers, SECRET); // ['id' => …, 'payload' => …]
}
`,
  },
  shell: {
    label: "Shell",
    file: "shell/verify-webhook.sh",
    code: (
      secret,
    ) => `# body.json: the body as received, byte for byte. ID, TIMESTAMP, SIGNATURE: the headers webhook-id, -timestamp, -signature.
WEBHOOK_SECRET='${secret}' # move it to your secret store
export WEBHOOK_SECRET

sh verify-webhook.sh standard body.json "$ID" "$TIMESTAMP" "$SIGNATURE"
`,
  },
};

/** Returns the files of a language: first the one that the code needs. @param files by path below docs/receivers */
export function filesOf(language: SnippetLanguage, files: Record<string, string>): [path: string, text: string][] {
  const { file } = snippets[language];
  const isMain = ([path]: [string, string]) => path === file;
  const own = Object.entries(files).filter(([path]) => path.startsWith(`${language}/`));
  return [...own.filter(isMain), ...own.filter((each) => !isMain(each))];
}
