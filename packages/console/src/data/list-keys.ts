const steps: Partial<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

/** Moves the focus with the arrow keys between the rows of a list whose rows are links. */
export function moveInList(event: KeyboardEvent): void {
  const step = steps[event.key];
  const { target } = event;
  if (step === undefined || !(target instanceof Element)) return;
  const row = target.closest("tr.linked");
  const next = step > 0 ? row?.nextElementSibling : row?.previousElementSibling;
  const link = next?.querySelector("a");
  if (!link) return;
  event.preventDefault();
  link.focus();
}
