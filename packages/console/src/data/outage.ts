import { useEffect, useState } from "preact/hooks";

/* Loads that fail for now. When the service is out of reach, every load of a screen fails: one box shows it. */

interface Outage {
  error: Error;
  retry(): void;
}

/** By the load that fails. */
const outages = new Map<object, Outage>();
const shownAsOutage = new WeakSet<Error>();
const listeners = new Set<() => void>();

export function beginOutage(load: object, error: Error, retry: () => void): void {
  shownAsOutage.add(error);
  outages.set(load, { error, retry });
  notify();
}

export function endOutage(load: object): void {
  if (outages.delete(load)) notify();
}

/** Whether the error is shown as an outage, and so not by its screen. */
export const isOutage = (error: Error): boolean => shownAsOutage.has(error);

/** Returns the oldest failure, and a function that retries all failed loads. Undefined while everything loads. */
export function useOutage(): Outage | undefined {
  const [, setRound] = useState(0);
  useEffect(() => {
    const update = () => setRound((last) => last + 1);
    listeners.add(update);
    update();
    return () => void listeners.delete(update);
  }, []);
  const [first] = outages.values();
  return first && { error: first.error, retry: retryAll };
}

function retryAll(): void {
  for (const { retry } of [...outages.values()]) retry();
}

function notify(): void {
  for (const listener of listeners) listener();
}
