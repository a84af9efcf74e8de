import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Refusal } from "./api.ts";
import { type DeliveryStatus, type EventName, eventNames, type Webhook } from "./records.ts";
import { type Action, useNow, useSignedIn } from "./signed-in.ts";
import { countdown, relative } from "./time.ts";

/* What the screens are made of. */

/** A point in time as people say it, exact when pointed at. */
export function Time({ at }: { at: string }) {
  // What happened since the last tick is not in the future.
  const now = Math.max(useNow(), Date.now());
  const time = new Date(at);
  const exact = time.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
  return (
    <time dateTime={at} title={exact}>
      {relative(time.getTime(), now)}
    </time>
  );
}

export function Countdown({ endsAt }: { endsAt: number }) {
  const now = useNow(1000);
  return <span class="number">{countdown(endsAt, now)}</span>;
}

type Tone = "good" | "bad" | "wait" | "calm";

const statusTones: Record<DeliveryStatus, Tone> = {
  pending: "wait",
  succeeded: "good",
  failed: "bad",
  held: "calm",
  cancelled: "calm",
};

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export const StatusBadge = ({ status }: { status: DeliveryStatus }) => (
  <Badge tone={statusTones[status]}>{status}</Badge>
);

const disabledReasons = {
  gone: "The receiver answered 410 Gone.",
  failing: "Nothing was delivered for days.",
  manual: "Somebody turned it off.",
};

export function whyDisabled({ disabled_reason }: Webhook): string {
  return disabled_reason === null ? "" : (disabledReasons[disabled_reason] ?? disabled_reason);
}

export function WebhookBadge({ webhook }: { webhook: Webhook }) {
  if (webhook.enabled) return <Badge tone="good">enabled</Badge>;
  return (
    <span title={whyDisabled(webhook)}>
      <Badge tone="bad">disabled: {webhook.disabled_reason}</Badge>
    </span>
  );
}

export function Events({ names }: { names: EventName[] }) {
  return (
    <span class="events">
      {names.map((name) => (
        <code class="chip" key={name}>
          {name}
        </code>
      ))}
    </span>
  );
}

/** A heading that takes the focus when its screen appears, so that keyboard and screen reader start there. */
export function Heading({ level = 1, children }: { level?: 1 | 2; children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (hasNavigated) heading.current?.focus();
  }, []);
  const Tag = `h${level}` as "h1" | "h2";
  return (
    <Tag tabIndex={-1} ref={heading}>
      {children}
    </Tag>
  );
}

/** The first screen leaves the focus where the browser has it. */
let hasNavigated = false;
addEventListener("hashchange", () => {
  hasNavigated = true;
});

/** What was refused or did not answer: the message, and what support asks for. */
export function Failure({ error }: { error: Error | undefined }) {
  if (!error) return null;
  // The message of the API holds the details as a rule.
  const details = error instanceof Refusal ? error.details : [];
  const unsaid = details.filter(({ message }) => !error.message.includes(message));
  return (
    <div class="note bad" role="alert">
      <p>{error.message}</p>
      {error instanceof Refusal && (
        <>
          {unsaid.length > 0 && (
            <ul>
              {unsaid.map(({ path, message }) => (
                <li key={path + message}>
                  {path && <code>{path}</code>} {message}
                </li>
              ))}
            </ul>
          )}
          <p class="fine">
            <code>{error.code}</code>
            {error.retryAfterSeconds !== undefined && ` · try again in ${error.retryAfterSeconds} s`}
            {error.requestId && (
              <>
                {" · request "}
                <code>{error.requestId}</code>
              </>
            )}
          </p>
        </>
      )}
    </div>
  );
}

/** A place that keeps its height until there is something to show. */
export function Waiting({ rows = 3 }: { rows?: number }) {
  return (
    <div class="waiting" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}

interface CodeProps {
  label: string;
  look?: "excerpt";
  /** Shown as it is, whoever wrote it. */
  children: string;
}

/** Text that may be larger than its place. It scrolls, and so the keyboard can get there. */
export function Code({ label, look, children }: CodeProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to take the focus
    <section class={look ? `code ${look}` : "code"} tabIndex={0} aria-label={label}>
      <pre>{children}</pre>
    </section>
  );
}

interface ButtonProps {
  /** What a click asks for. While it is asked, the button waits. */
  action: Action;
  look?: "primary" | "danger" | "plain";
  children: ComponentChildren;
}

export function ActionButton({ action, look = "plain", children }: ButtonProps) {
  return (
    <button type="button" class={look} aria-disabled={action.isBusy} onClick={action.run}>
      {children}
    </button>
  );
}

export function CopyButton({ text, label = "Copy", onCopy }: { text: string; label?: string; onCopy?: () => void }) {
  const { say } = useSignedIn();
  const [isCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2_000);
      say("Copied.");
      onCopy?.();
    } catch {
      say("The browser does not let the page copy. Select the text and copy it yourself.");
    }
  }
  return (
    <button type="button" class="plain small copy" onClick={copy}>
      {isCopied ? "Copied" : label}
    </button>
  );
}

interface FieldProps {
  label: string;
  hint?: string;
  /** Its name in the API, by which a refusal calls it. */
  path: string;
  failure: Error | undefined;
  value: string;
  onInput(value: string): void;
  type?: "text" | "url" | "datetime-local";
  maxLength?: number;
}

export function Field({ label, hint, path, failure, value, onInput, type = "text", maxLength }: FieldProps) {
  const id = useId();
  const problem = problemAt(failure, path);
  // The types of the library want one field for each kind.
  const kind = { type } as { type: "text" };
  const told = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...kind}
        id={id}
        value={value}
        required
        maxLength={maxLength}
        autoComplete="off"
        spellcheck={false}
        aria-invalid={problem !== undefined}
        aria-describedby={told || undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {hint && (
        <p class="fine" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {problem && (
        <p class="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  );
}

/** What the API found wrong with a field. */
function problemAt(failure: Error | undefined, path: string): string | undefined {
  if (!(failure instanceof Refusal)) return undefined;
  return failure.details.find((detail) => detail.path === path || detail.path.startsWith(`${path}.`))?.message;
}

interface ChoicesProps<Value extends string> {
  legend: string;
  values: readonly Value[];
  chosen: Value;
  onChoose(value: NoInfer<Value>): void;
  labelOf?: (value: NoInfer<Value>) => string;
}

/** One of a few. */
export function Choices<Value extends string>({ legend, values, chosen, onChoose, labelOf }: ChoicesProps<Value>) {
  const name = useId();
  return (
    <fieldset class="field">
      <legend>{legend}</legend>
      {values.map((value) => (
        <label class="option" key={value}>
          <input type="radio" name={name} checked={value === chosen} onChange={() => onChoose(value)} />
          {labelOf ? labelOf(value) : <code>{value}</code>}
        </label>
      ))}
    </fieldset>
  );
}

const meanings: Record<EventName, string> = {
  "deploy.started": "a build has started",
  "deploy.succeeded": "the deployment is live and healthy",
  "deploy.failed": "the build or the health check failed",
};

interface EventChecksProps {
  chosen: EventName[];
  onChoose(names: EventName[]): void;
}

export function EventChecks({ chosen, onChoose }: EventChecksProps) {
  return (
    <fieldset class="field">
      <legend>Events</legend>
      {eventNames.map((name) => (
        <label class="option" key={name}>
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={({ currentTarget: { checked } }) =>
              onChoose(eventNames.filter((each) => (each === name ? checked : chosen.includes(each))))
            }
          />
          <code>{name}</code> <span class="fine">{meanings[name]}</span>
        </label>
      ))}
    </fieldset>
  );
}
