import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

interface MenuProps {
  label: string;
  /** Whether it stays open after a click in it, as fields need. Default: a button in it closes it. */
  stays?: boolean;
  children: ComponentChildren;
}

/** A button that shows further buttons or fields. Escape, or a focus elsewhere, closes it. */
export function Menu({ label, stays = false, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  const button = useRef<HTMLElement>(null);
  const close = () => menu.current?.removeAttribute("open");
  function closeByChoice(): void {
    // Before the choice opens a dialog, which returns the focus to the element that had it.
    button.current?.focus();
    close();
  }
  return (
    <details
      class="menu"
      ref={menu}
      onFocusOut={({ currentTarget, relatedTarget }) => {
        if (!(relatedTarget instanceof Element && currentTarget.contains(relatedTarget))) close();
      }}
      onKeyDown={({ key }) => key === "Escape" && closeByChoice()}
    >
      <summary class="button plain" ref={button}>
        {label}
      </summary>
      {/* It can have the focus, because a click on a button does not give it one in every browser. */}
      <div
        class={stays ? "fields" : "choices-of-menu"}
        tabIndex={-1}
        onClickCapture={stays ? undefined : closeByChoice}
      >
        {children}
      </div>
    </details>
  );
}
