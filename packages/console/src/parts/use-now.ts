import { useEffect, useState } from "preact/hooks";

/** Returns the current time and renders again at an interval. Epoch milliseconds. @param intervalMs 1000 for a countdown */
export function useNow(intervalMs = 5_000): number {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((last) => last + 1), intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs]);
  // Not the time of the last tick: what happened after it would appear to be in the future.
  return Date.now();
}
