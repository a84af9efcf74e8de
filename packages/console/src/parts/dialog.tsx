import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Client } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { drafts } from "../data/session.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { CopyButton, ErrorMessage, isAbout, RadioGroup } from "./components.tsx";
import { type Action, type LeadTo, useAction } from "./use-action.ts";

interface DialogProps {
  title: string;
  onClose(): void;
  /** Returns whether Escape closes the dialog now. Absent = it always does. */
  mayClose?: () => boolean;
  children: ComponentChildren;
}

/** The element that had the focus before the first dialog opened. */
let opener: HTMLElement | undefined;

function restoreFocus(): void {
  if (document.querySelector("dialog[open]")) return;
  (opener?.isConnected ? opener : document.getElementById("main"))?.focus();
}

/** A modal dialog. Escape closes it, and the focus returns to the element that opened it. */
export function Dialog({ title, onClose, mayClose = () => true, children }: DialogProps) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const { activeElement } = document;
    // A dialog that replaces another keeps the first dialog's opener.
    const isInPage = activeElement !== document.body && !activeElement?.closest("dialog");
    if (isInPage && activeElement instanceof HTMLElement) opener = activeElement;
    element.current?.showModal();
    // The browser does not restore the focus when the element is removed.
    return () => {
      drafts.open.clear();
      queueMicrotask(restoreFocus);
    };
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onCancel={(event) => {
        // Close now: the browser's own close event arrives later, when another dialog may be open.
        event.preventDefault();
        if (mayClose()) onClose();
      }}
      // Browsers do not let a page cancel a second Escape: the dialog is closed already.
      onClose={onClose}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

export interface FormDialogProps {
  title: string;
  action: Action;
  /** Label of the submit button. */
  verb: string;
  look?: "primary" | "danger";
  isReady?: boolean;
  /** The fields of the API that show the errors about them. Default: none. */
  fields?: readonly string[];
  onClose(): void;
  children: ComponentChildren;
}

/** Asks for an action's input or confirmation. Stays open and shows the error if the action fails. */
export function FormDialog({
  title,
  action,
  verb,
  look = "primary",
  isReady = true,
  fields = [],
  onClose,
  children,
}: FormDialogProps) {
  const { error } = action;
  useEffect(() => document.querySelector<HTMLElement>('dialog [aria-invalid="true"]')?.focus(), [error]);
  const problems = error instanceof ApiError ? error.details : [];
  const isShownAbove =
    problems.length > 0 && problems.every(({ path }) => fields.some((field) => isAbout(path, field)));
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) action.run();
        }}
      >
        {children}
        {isShownAbove ? (
          <p class="problem" role="alert">
            Nothing was changed. Correct the field that is marked.
          </p>
        ) : (
          <ErrorMessage error={error} />
        )}
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

interface ConfirmDialogProps extends Pick<FormDialogProps, "title" | "verb" | "look" | "onClose" | "children"> {
  act(client: Client, leadTo: LeadTo): Promise<void>;
}

/** Asks before an action. */
export function ConfirmDialog({ act, look = "danger", ...props }: ConfirmDialogProps) {
  return <FormDialog {...props} look={look} action={useAction(act)} />;
}

const overlaps = { "0": "None", "3600": "1 hour", "86400": "1 day", "604800": "7 days" };
type Overlap = keyof typeof overlaps;

interface OverlapDialogProps extends Pick<FormDialogProps, "title" | "verb" | "onClose" | "children"> {
  replaced: "key" | "secret";
  replace(client: Client, overlapSeconds: number): Promise<void>;
}

/** Asks how long a key or a secret stays valid after it is replaced. */
export function OverlapDialog({ replaced, replace, children, ...props }: OverlapDialogProps) {
  const [overlap, setOverlap] = useState<Overlap>("86400");
  const action = useAction((client) => replace(client, Number(overlap)));
  return (
    <FormDialog {...props} action={action}>
      {children}
      <RadioGroup
        legend="Overlap"
        values={Object.keys(overlaps) as Overlap[]}
        chosen={overlap}
        onChange={setOverlap}
        labelOf={(value) => (value === "0" ? `None: the previous ${replaced} expires immediately` : overlaps[value])}
      />
    </FormDialog>
  );
}

/** A dialog that changes something. */
export interface ChangeDialogProps {
  onClose(): void;
  onDone(): void;
}

/** Whether the dialog was closed, for an action that goes on. */
export function useIsClosed() {
  const isClosed = useRef(false);
  useLayoutEffect(
    () => () => {
      isClosed.current = true;
    },
    [],
  );
  return isClosed;
}

/** The open dialog of a screen. @param reload loads what the screen shows */
export function useDialog(reload: () => void) {
  const { announce } = useSignedIn();
  const [dialog, setDialog] = useState<ComponentChildren>();
  /** The number of the last dialog: one that was closed during its action must not close the next one. */
  const lastNumber = useRef(0);
  const ownNumber = lastNumber.current + 1;
  function show(next: ComponentChildren): void {
    lastNumber.current = ownNumber;
    setDialog(next);
  }
  function close(): void {
    drafts.kept.clear();
    setDialog(undefined);
  }
  return {
    dialog,
    show,
    close,
    /** Says what a dialog did, and closes it if it is still open. */
    done(message: string): void {
      announce(message);
      if (lastNumber.current <= ownNumber) close();
      reload();
    },
  };
}

interface SecretDialogProps {
  title: string;
  label: string;
  secret: string;
  onClose(): void;
  children: ComponentChildren;
}

/** Shows a secret once. The first attempt to close it before the secret is copied shows a warning instead. */
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
        <p class="fine">Copy it now. You won't be able to see it again.</p>
      </div>
      {children}
      <div role="alert">
        {isWarned && !isCopied && <p class="note warning">Not copied yet. Close again to discard the secret.</p>}
      </div>
      <div class="buttons">
        <button type="button" class={isCopied ? "primary" : "plain"} onClick={() => mayClose() && onClose()}>
          {isCopied ? "Done" : "Close"}
        </button>
      </div>
    </Dialog>
  );
}
