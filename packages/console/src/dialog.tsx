import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { CopyButton, Failure } from "./parts.tsx";
import type { Action } from "./signed-in.ts";

interface DialogProps {
  title: string;
  onClose(): void;
  /** @returns whether it may close now; absent = it may */
  mayClose?: () => boolean;
  children: ComponentChildren;
}

/** Where the focus was before a window opened. */
let opener: HTMLElement | undefined;

function giveFocusBack(): void {
  if (document.querySelector("dialog[open]")) return;
  (opener?.isConnected ? opener : document.getElementById("main"))?.focus();
}

/** A window over the page. Escape closes it, and the focus goes back to where it was. */
export function Dialog({ title, onClose, mayClose = () => true, children }: DialogProps) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = element.current;
    const { activeElement } = document;
    // A window that follows another gives the focus back to where the first was opened.
    const isInPage = activeElement !== document.body && !activeElement?.closest("dialog");
    if (isInPage && activeElement instanceof HTMLElement) opener = activeElement;
    if (dialog && !dialog.open) dialog.showModal();
    // Taken out of the page, a window does not give the focus back by itself.
    return () => queueMicrotask(giveFocusBack);
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onCancel={(event) => {
        // Closed by the page, in the moment of the key: the browser tells of its own closing only later, when another window
        // may be open.
        event.preventDefault();
        if (mayClose()) onClose();
      }}
      // What is not asked about any more: a second Escape after one that was refused.
      onClose={onClose}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface FormDialogProps {
  title: string;
  action: Action;
  /** What the button says that does it. */
  verb: string;
  look?: "primary" | "danger";
  isReady?: boolean;
  onClose(): void;
  children: ComponentChildren;
}

/** Asks for what an action needs, or only whether it is meant. Stays open when the API refuses, and says why. */
export function FormDialog({
  title,
  action,
  verb,
  look = "primary",
  isReady = true,
  onClose,
  children,
}: FormDialogProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) action.run();
        }}
      >
        {children}
        <Failure error={action.failure} />
        <div class="buttons">
          <button type="button" class="plain" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={look} disabled={!isReady} aria-disabled={action.isBusy}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface SecretDialogProps {
  title: string;
  label: string;
  secret: string;
  onClose(): void;
  children: ComponentChildren;
}

/** Shows a secret this once. Escape before it is copied asks again: what is closed here cannot be had back. */
export function SecretDialog({ title, label, secret, onClose, children }: SecretDialogProps) {
  const id = useId();
  const [isCopied, setCopied] = useState(false);
  const [isWarned, setWarned] = useState(false);
  function mayClose(): boolean {
    setWarned(true);
    return isCopied || isWarned;
  }
  return (
    <Dialog title={title} onClose={onClose} mayClose={mayClose}>
      <div class="field">
        <label for={id}>{label}</label>
        <div class="secret">
          <textarea
            id={id}
            readOnly
            value={secret}
            autoComplete="off"
            spellcheck={false}
            onFocus={(event) => event.currentTarget.select()}
            onCopy={() => setCopied(true)}
          />
          <CopyButton text={secret} onCopy={() => setCopied(true)} />
        </div>
        <p class="fine">Shown this once: it cannot be had back later.</p>
      </div>
      {children}
      <div role="alert">
        {isWarned && !isCopied && <p class="note wait">It is not copied yet. Once more closes this for good.</p>}
      </div>
      <div class="buttons">
        <button type="button" class={isCopied ? "primary" : "plain"} onClick={() => mayClose() && onClose()}>
          {isCopied ? "Done" : "Close"}
        </button>
      </div>
    </Dialog>
  );
}
