import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Delivery, WebhookEventName, WebhookInList } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { isOutage } from "../data/outage.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { countdown, relative } from "../data/time.ts";
import { type DisabledReason, disabledReasons, statusTones, type Tone } from "../data/vocabulary.ts";
import type { Action } from "./use-action.ts";
import { useNow } from "./use-now.ts";

/* Components that several screens share. */

/** A time, by default relative to now. The exact time is its tooltip. */
export function Time({ at, format = relative }: { at: string; format?: typeof relative }) {
  const now = useNow();
  const time = new Date(at);
  const exact = time.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
  return (
    <time dateTime={at} title={exact}>
      {format(time.getTime(), now)}
    </time>
  );
}

export function Countdown({ endsAt }: { endsAt: number }) {
  const now = useNow(1000);
  return <span class="number">{countdown(endsAt, now)}</span>;
}

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** The status of a delivery. One that failed and waits is failing, unlike one that was never tried. */
export const StatusBadge = ({ delivery }: { delivery: Pick<Delivery, "status" | "last_attempt"> }) =>
  isFailing(delivery) ? (
    <Badge tone="bad">failing</Badge>
  ) : (
    <Badge tone={statusTones[delivery.status]}>{delivery.status}</Badge>
  );

export const isFailing = ({ status, last_attempt }: Pick<Delivery, "status" | "last_attempt">): boolean =>
  status === "pending" && last_attempt !== null && last_attempt.error_code !== null;

/** Completes the sentence "Disabled …". A reason that this version does not know is shown as it is. */
export function causeOfDisabling(reason: DisabledReason | null): string {
  return reason === null ? "" : (disabledReasons[reason]?.cause ?? `(${reason})`);
}

type WebhookState = Pick<WebhookInList, "enabled" | "disabled_reason" | "suspended_at">;

export function WebhookBadge({ webhook: { enabled, disabled_reason, suspended_at } }: { webhook: WebhookState }) {
  if (suspended_at !== undefined) return <Badge tone="bad">project suspended</Badge>;
  if (enabled) return <Badge tone="good">enabled</Badge>;
  if (disabled_reason === null) return <Badge tone="bad">disabled</Badge>;
  const { badge, tone } = disabledReasons[disabled_reason] ?? { badge: `disabled: ${disabled_reason}`, tone: "bad" };
  return <Badge tone={tone}>{badge}</Badge>;
}

/** @param max the rest is a number with a tooltip; default: all are shown */
export function Events({ names, max = names.length }: { names: WebhookEventName[]; max?: number }) {
  const hidden = names.slice(max);
  return (
    <span class="events">
      {names.slice(0, max).map((name) => (
        <code class="chip" key={name}>
          {name}
        </code>
      ))}
      {hidden.length > 0 && (
        <span class="chip" title={hidden.join(", ")}>
          +{hidden.length}
          <span class="visually-hidden">: {hidden.join(", ")}</span>
        </span>
      )}
    </span>
  );
}

/** A heading that receives the focus when its screen opens, so that the keyboard and screen readers start there. */
export function Heading({ level = 1, children }: { level?: 1 | 2; children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (hasNavigated) heading.current?.focus();
  }, []);
  useEffect(updateTitle);
  const Tag = `h${level}` as "h1" | "h2";
  return (
    <Tag tabIndex={-1} ref={heading} data-title>
      {children}
    </Tag>
  );
}

const PRODUCT = "Deployment webhooks";

/** Sets the title of the document from the headings, the innermost first: `deploy.failed · https://… · Deployment webhooks`. */
export function updateTitle(): void {
  const headings = [...document.querySelectorAll("main [data-title]")].reverse();
  document.title = [...headings.map(({ textContent }) => textContent.trim()), PRODUCT].join(" · ");
}

/** Whether the user has left the first screen, on which the browser sets the focus. */
let hasNavigated = false;
addEventListener("hashchange", () => {
  hasNavigated = true;
});

interface ErrorMessageProps {
  error: Error | undefined;
  /** Shown below the error, such as a button. */
  children?: ComponentChildren;
}

/** An error with its details, its code and the id of the request for support. An outage is shown once, above the screen. */
export function ErrorMessage({ error, children }: ErrorMessageProps) {
  if (!error || (isOutage(error) && !children)) return null;
  // The API's message usually contains the details already.
  const details = error instanceof ApiError ? error.details : [];
  const otherDetails = details.filter(({ message }) => !error.message.includes(message));
  return (
    <div class="note bad" role="alert">
      <p>{error.message}</p>
      {error instanceof ApiError && (
        <>
          {otherDetails.length > 0 && (
            <ul>
              {otherDetails.map(({ path, message }) => (
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
      {children}
    </div>
  );
}

/** A placeholder of about the height of the content that is loading. */
export function Skeleton({ rows = 3 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

interface EmptyStateProps {
  title: string;
  children?: ComponentChildren;
  /** The next step as a button. */
  action?: ComponentChildren;
  /** The next step as a command. */
  command?: string;
}

export function EmptyState({ title, children, action, command }: EmptyStateProps) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
      {action}
      {command !== undefined && <code>{command}</code>}
    </div>
  );
}

interface ColumnOptions {
  title: string;
  /** Shown instead of the title, which is then for the key only. */
  head?: ComponentChildren;
  /** Whether only screen readers get the title. */
  isHidden?: boolean;
  class?: string;
}

export type Column = string | ColumnOptions;

/** The last column of rows with buttons. */
export const actionsColumn: Column = { title: "Actions", isHidden: true };

interface TableProps {
  caption?: ComponentChildren;
  columns: Column[];
  /** The rows. */
  children: ComponentChildren;
}

export function Table({ caption, columns, children }: TableProps) {
  const cells = columns.map((each): ColumnOptions => (typeof each === "string" ? { title: each } : each));
  return (
    <table>
      {caption}
      <thead>
        <tr>
          {cells.map(({ title, head, isHidden, class: name }) => (
            <th key={title} scope="col" class={name}>
              {head ?? (isHidden ? <span class="visually-hidden">{title}</span> : title)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

interface CodeProps {
  label: string;
  look?: "excerpt";
  /** Shown as text, never as markup. */
  children: string;
}

/** Preformatted text that scrolls. It can be focused, so that the keyboard can scroll it. */
export function Code({ label, look, children }: CodeProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must be able to focus it
    <section class={look ? `code ${look}` : "code"} tabIndex={0} aria-label={label}>
      <pre>{children}</pre>
    </section>
  );
}

interface ButtonProps {
  /** Started by a click. The button is busy while it runs. */
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

/** Further actions behind one button. Closes when one is chosen, on Escape, and when the focus leaves it. */
export function Menu({ label, children }: { label: string; children: ComponentChildren }) {
  const details = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (details.current) details.current.open = false;
  };
  return (
    <details
      class="menu"
      ref={details}
      onKeyDown={({ key }) => key === "Escape" && close()}
      onFocusOut={({ relatedTarget }) => details.current?.contains(relatedTarget as Node | null) === false && close()}
    >
      <summary class="button plain">{label}</summary>
      <div
        // A dialog that an item opens returns the focus to what has it now.
        onClickCapture={() => {
          details.current?.querySelector("summary")?.focus();
          close();
        }}
      >
        {children}
      </div>
    </details>
  );
}

/** A URL on one line: its end often tells it from others. */
export const Url = ({ of: url, max = 56 }: { of: string; max?: number }) => (
  <span class="url" title={url}>
    {url.length <= max ? url : `${url.slice(0, max - 17)}…${url.slice(-16)}`}
  </span>
);

/** The last part of an id, which commands accept too. The whole id is its tooltip. */
export const ShortId = ({ of: id }: { of: string }) => (
  <code class="fine" title={id}>
    {id.slice(-12)}
  </code>
);

/** Below a list that has older items. */
export const LoadMore = ({ action }: { action: Action }) => (
  <div class="more">
    <ActionButton action={action}>Load more</ActionButton>
    <ErrorMessage error={action.error} />
  </div>
);

/** A button in a row. Screen readers hear the row's name too. */
export const RowButton = ({ verb, name, onClick }: { verb: string; name: string; onClick(): void }) => (
  <button type="button" class="plain small" aria-label={`${verb} ${name}`} onClick={onClick}>
    {verb}
  </button>
);

const COPIED_MS = 2_500;

export function CopyButton({ text, label = "Copy", onCopy }: { text: string; label?: string; onCopy?: () => void }) {
  const { announce } = useSignedIn();
  const [isCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), COPIED_MS);
      announce("Copied.");
      onCopy?.();
    } catch {
      announce("The browser blocked the copy. Select the text and copy it manually.");
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
  /** The field's name in the API, which the details of an error contain. */
  path: string;
  error: Error | undefined;
  value: string;
  onInput(value: string): void;
  type?: "text" | "url" | "datetime-local";
  maxLength?: number;
  isOptional?: boolean;
  /** Absent = one line. */
  rows?: number;
}

export function Field(props: FieldProps) {
  const { label, hint, path, error, value, onInput, type = "text", maxLength, isOptional, rows } = props;
  const id = useId();
  const problem = problemAt(error, path);
  // Preact's types have one set of attributes for each type of input.
  const typeAttribute = { type } as { type: "text" };
  const descriptions = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ");
  const attributes = {
    id,
    value,
    required: !isOptional,
    maxLength,
    autoComplete: "off" as const,
    spellcheck: false,
    "aria-invalid": problem !== undefined,
    "aria-describedby": descriptions || undefined,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
  };
  return (
    <div class="field">
      <label for={id}>
        {label} {isOptional && <span class="fine">optional</span>}
      </label>
      {rows === undefined ? <input {...typeAttribute} {...attributes} /> : <textarea {...attributes} rows={rows} />}
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

/** The API's message about one field. */
function problemAt(error: Error | undefined, path: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  return error.details.find((detail) => isAbout(detail.path, path))?.message;
}

/** Returns whether the path of a detail is that of a field, or of a part of it. */
export const isAbout = (path: string, field: string): boolean => path === field || path.startsWith(`${field}.`);

interface RadioGroupProps<Value extends string> {
  legend: string;
  values: readonly Value[];
  chosen: Value;
  onChange(value: NoInfer<Value>): void;
  labelOf?: (value: NoInfer<Value>) => string;
}

/** @param labelOf absent = the value itself, as code */
export function RadioGroup<Value extends string>({
  legend,
  values,
  chosen,
  onChange,
  labelOf,
}: RadioGroupProps<Value>) {
  const name = useId();
  return (
    <fieldset class="field">
      <legend>{legend}</legend>
      {values.map((value) => (
        <label class="option" key={value}>
          <input type="radio" name={name} checked={value === chosen} onChange={() => onChange(value)} />
          {labelOf ? labelOf(value) : <code>{value}</code>}
        </label>
      ))}
    </fieldset>
  );
}
