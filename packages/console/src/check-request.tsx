import { useId, useState } from "preact/hooks";
import { diagnose, TOLERANCE_SECONDS, type Verdict } from "../../client/src/verify/diagnose.ts";
import { parseHeaders } from "../../client/src/verify/headers.ts";
import { Badge } from "./components.tsx";

/** Checks the signatures of a pasted request, with the diagnosis of `svc verify`. @param secret known from this session */
export function CheckRequest({ secret: known = "" }: { secret: string | undefined }) {
  const id = useId();
  const [headers, setHeaders] = useState("");
  const [body, setBody] = useState("");
  const [secret, setSecret] = useState(known);
  const [checksAge, setChecksAge] = useState(false);
  const [result, setResult] = useState<Verdict[] | string>();
  const isReady = headers.trim() !== "" && secret !== "";

  async function check(event: Event): Promise<void> {
    event.preventDefault();
    if (!isReady) return;
    setResult(await verdictsOf({ headers, body, secret, checksAge }));
  }
  /** A result is that of the text on the screen. */
  const withoutResult = (set: (text: string) => void) => (event: { currentTarget: { value: string } }) => {
    setResult(undefined);
    set(event.currentTarget.value);
  };

  return (
    <form class="check" onSubmit={check}>
      <h2>Check a request that you received</h2>
      <p class="fine">
        The check runs in this page. Headers, body and secret stay in the browser: nothing is sent or stored.
      </p>
      <div class="field">
        <label for={`${id}-headers`}>Headers</label>
        <textarea
          id={`${id}-headers`}
          value={headers}
          rows={5}
          autoComplete="off"
          spellcheck={false}
          placeholder={"webhook-id: …\nwebhook-timestamp: …\nwebhook-signature: v1,…"}
          aria-describedby={`${id}-headers-hint`}
          onInput={withoutResult(setHeaders)}
        />
        <p class="fine" id={`${id}-headers-hint`}>
          One per line, or a JSON object.
        </p>
      </div>
      <div class="field">
        <label for={`${id}-body`}>Body</label>
        <textarea
          id={`${id}-body`}
          value={body}
          rows={5}
          autoComplete="off"
          spellcheck={false}
          aria-describedby={`${id}-body-hint`}
          onInput={withoutResult(setBody)}
        />
        <p class="fine" id={`${id}-body-hint`}>
          The raw body, exactly as received. For a body with CR LF or other bytes that a text box changes, use svc
          verify.
        </p>
      </div>
      <div class="field">
        <label for={`${id}-secret`}>Secret</label>
        <input
          id={`${id}-secret`}
          type="password"
          value={secret}
          autoComplete="off"
          spellcheck={false}
          placeholder="whsec_…"
          onInput={withoutResult(setSecret)}
        />
      </div>
      <label class="option">
        <input
          type="checkbox"
          checked={checksAge}
          onChange={({ currentTarget }) => {
            setResult(undefined);
            setChecksAge(currentTarget.checked);
          }}
        />
        Reject it if it is older than {TOLERANCE_SECONDS / 60} minutes, as a receiver does
      </label>
      <div class="buttons">
        <button type="submit" class="primary" disabled={!isReady}>
          Check
        </button>
      </div>
      <div role="status" class="verdicts">
        {typeof result === "string" && <p class="note bad">{result}</p>}
        {Array.isArray(result) && result.map((verdict) => <VerdictItem key={verdict.header} verdict={verdict} />)}
      </div>
    </form>
  );
}

interface PastedRequest {
  headers: string;
  body: string;
  secret: string;
  checksAge: boolean;
}

/** @returns why there are no verdicts, as a text */
async function verdictsOf({ headers, body, secret, checksAge }: PastedRequest): Promise<Verdict[] | string> {
  // Browsers have Web Crypto only on https and on localhost.
  if (!isSecureContext) return "This browser can check signatures only on https or on localhost. Use svc verify.";
  const entries = parseHeaders(headers);
  if (!entries || entries.length === 0) return "These are not headers. Paste one per line, or a JSON object.";
  const named = new Map(entries.map(([name, value]) => [name.trim().toLowerCase(), value.trim()]));
  const request = { headers: named, body: new TextEncoder().encode(body) };
  const toleranceSeconds = checksAge ? TOLERANCE_SECONDS : Number.POSITIVE_INFINITY;
  return diagnose(request, [secret], { now: new Date(), toleranceSeconds });
}

const VerdictItem = ({ verdict: { header, isValid, findings } }: { verdict: Verdict }) => (
  <div class={isValid ? "note good" : "note bad"}>
    <p class="line">
      <code>{header}</code>
      <Badge tone={isValid ? "good" : "bad"}>{isValid ? "valid" : "invalid"}</Badge>
    </p>
    {findings.map(({ code, message, fix }) => (
      <p key={code + message}>
        {message} <span class="fine">{fix}</span>
      </p>
    ))}
  </div>
);
