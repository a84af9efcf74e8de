import type { Attempt, DeliveryWithAttempts } from "../../../client/src/client.ts";
import { type AttemptHeaders, bodyOf, headersOf, responseOf } from "../data/attempt-request.ts";
import { duration } from "../data/time.ts";
import { Code } from "./components.tsx";

interface AsSentProps {
  attempt: Attempt;
  delivery: DeliveryWithAttempts;
  /** The present URL of the webhook. */
  url: string;
}

/** The request of an attempt and its response. */
export function AsSent({ attempt, delivery, url }: AsSentProps) {
  const body = bodyOf(delivery);
  const bytes = new TextEncoder().encode(body).length;
  return (
    <>
      <h4>Request</h4>
      <Code label={`Request of attempt ${attempt.number}`} look="excerpt">
        {`POST ${url}\n${headerLines(headersOf(delivery, attempt.at))}\n\n${body}`}
      </Code>
      <p class="fine">
        The URL is the webhook's present one. Signatures are not stored: they were made with the secrets of that time.
        The body has {bytes} bytes and is the same at every attempt.
      </p>
      <h4>Response</h4>
      <dl class="ids">
        <dt>Status</dt>
        <dd>{responseOf(attempt)}</dd>
        <dt>Duration</dt>
        <dd>{duration(attempt.duration_ms)}</dd>
        <dt>Requests</dt>
        <dd>
          {attempt.request_count === 1
            ? "1"
            : `${attempt.request_count}: the first was sent on a connection that the receiver had closed`}
        </dd>
        <dt>Body</dt>
        <dd>{excerptNote(attempt, delivery)}</dd>
      </dl>
    </>
  );
}

const headerLines = (headers: AttemptHeaders): string =>
  headers.map(([name, value]) => `${name}: ${value ?? "(not stored)"}`).join("\n");

/** The service keeps the excerpts of the newest three attempts. */
function excerptNote({ number, response_excerpt }: Attempt, { attempt_count }: DeliveryWithAttempts): string {
  if (response_excerpt) return "its start is above, at most 1 KB";
  return number > attempt_count - 3 ? "empty" : "not kept: only those of the newest three attempts are";
}
