import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Delivery, WebhookEventName } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { isOutage } from "../data/outage.ts";
import { cutMiddle, shortId } from "../data/short.ts";
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

/** A status in one word. What it does not say is its tooltip. */
export function Badge({ tone, title, children }: { tone: Tone; title?: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

/** The status of a delivery. */
export const StatusBadge = ({ delivery }: { delivery: Pick<Delivery, "status" | "last_attempt"> }) => (
  <Badge tone={isFailing(delivery) ? "bad" : statusTones[delivery.status]}>{statusOf(delivery)}</Badge>
);

/** The status in a word. A delivery that failed and waits is failing, unlike one that was never tried. */
export const statusOf = (delivery: Pick<Delivery, "status" | "last_attempt">): string =>
  isFailing(delivery) ? "failing" : delivery.status;

export const isFailing = ({ status, last_attempt }: Pick<Delivery, "status" | "last_attempt">): boolean =>
  status === "pending" && last_attempt !== null && last_attempt.error_code !== null;

/** Completes the sentence "Disabled …". A reason that this version does not know is shown as it is. */
export function causeOfDisabling(reason: DisabledReason | null): string {
  return reason === null ? "" : (disabledReasons[reason]?.cause ?? `(${reason})`);
}

/** A URL on one line, without its middle if it is long. The whole one is its tooltip. */
export const Url = ({ url }: { url: string }) => (
  <span class="fine one-line" title={url}>
    {cutMiddle(url)}
  </span>
);

/** The end of an id, which `svc` accepts. The whole one is its tooltip. */
export const ShortId = ({ id }: { id: string }) => (
  <code class="fine" title={id}>
    {shortId(id)}
  </code>
);

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

export interface EmptyStateProps {
  title: string;
  /** A button for the next step. */
  action?: ComponentChildren;
  /** A command that takes it. */
  command?: string;
  children?: ComponentChildren;
}

/** Says what a list will have, and what to do next. */
export function EmptyState({ title, action, command, children }: EmptyStateProps) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
      {action}
      {command && (
        <p class="fine">
          In a terminal: <code>{command}</code>
        </p>
      )}
    </div>
  );
}

interface ColumnOptions {
  title: string;
  class?: string;
  /** Shown in place of the title. */
  content?: ComponentChildren;
}

export type Column = string | ColumnOptions;

/** The last column of rows with buttons. */
export const actionsColumn: Column = { title: "Actions", content: <span class="visually-hidden">Actions</span> };

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
          {cells.map(({ title, class: name, content = title }) => (
            <th key={title} scope="col" class={name}>
              {content}
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

interface CopyButtonProps {
  text: string;
  label?: string;
  /** What screen readers hear. Absent = the label. */
  name?: string;
  onCopy?: () => void;
}

export function CopyButton({ text, label = "Copy", name, onCopy }: CopyButtonProps) {
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
    <button type="button" class="plain small copy" aria-label={isCopied ? undefined : name} onClick={copy}>
      {isCopied ? "Copied" : label}
    </button>
  );
}
