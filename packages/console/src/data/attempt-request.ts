import type { Attempt, DeliveryWithAttempts } from "../../../client/src/client.ts";

/* The request of an attempt, as the contract of deliveries defines it. The service stores no signatures. */

/** Headers of an attempt by name. `undefined`: a signature, which is not stored. */
export type AttemptHeaders = [name: string, value: string | undefined][];

/** Returns the headers with which an attempt was sent. */
export function headersOf({ id, event }: Pick<DeliveryWithAttempts, "id" | "event">, at: string): AttemptHeaders {
  return [
    ["Content-Type", "application/json"],
    ["User-Agent", "Deployment-Webhooks/1.0"],
    ["X-Service-Event", event],
    ["X-Service-Delivery", id],
    ["X-Service-Signature", undefined],
    ["webhook-id", id],
    ["webhook-timestamp", String(Math.floor(Date.parse(at) / 1000))],
    ["webhook-signature", undefined],
  ];
}

/** Returns the body with which a delivery is sent, byte for byte if the payload was parsed without rounding. */
export const bodyOf = ({ payload }: Pick<DeliveryWithAttempts, "payload">): string => JSON.stringify(payload);

/**
 * Returns a shell command that sends the request of an attempt to a URL. It signs with the secret in `$WEBHOOK_SECRET` and
 * the current time, so that a receiver which rejects old requests accepts it. The command itself contains no secret.
 */
export function curlOf(url: string, delivery: Pick<DeliveryWithAttempts, "id" | "event" | "payload">): string {
  const headers = headersOf(delivery, new Date(0).toISOString()).filter(
    ([name, value]) => value !== undefined && name !== "webhook-timestamp",
  );
  return `# Sends the body of delivery ${delivery.id}, signed now with the secret of the webhook:
#   export WEBHOOK_SECRET=whsec_…
body=${quoted(bodyOf(delivery))}
timestamp=$(date +%s)
in_hex() { od -An -v -tx1 | tr -d ' \\n'; }
part=\${WEBHOOK_SECRET#whsec_}
while [ $((\${#part} % 4)) -ne 0 ]; do part=$part=; done
# An imported secret without base64 after whsec_ is itself the key.
if printf '%s\\n' "$WEBHOOK_SECRET" | grep -Eq '^whsec_([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?$'
then key=$(printf %s "$part" | openssl base64 -d -A | in_hex)
else key=$(printf %s "$WEBHOOK_SECRET" | in_hex)
fi
body_signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" | sed 's/^.* //')
signature=$(printf %s "${delivery.id}.$timestamp.$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
printf %s "$body" | curl --include --request POST ${quoted(url)} \\
${headers.map(([name, value]) => `  --header ${quoted(`${name}: ${value}`)} \\\n`).join("")}\
  --header "webhook-timestamp: $timestamp" \\
  --header "X-Service-Signature: sha256=$body_signature" \\
  --header "webhook-signature: v1,$signature" \\
  --data-binary @-
`;
}

/** Quotes a text for a POSIX shell: nothing in it is expanded. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Describes the response to an attempt in a few words: `503`, or the error code if there was none. */
export const responseOf = ({ status_code, error_code }: Attempt): string =>
  status_code === null ? `none (${error_code})` : String(status_code);
