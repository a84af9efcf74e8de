import { useEffect, useState } from "preact/hooks";

/** Returns the current time and renders again at an interval. Epoch milliseconds. @param intervalMs 1000 for a countdown */
export function useNow(intervalMs = 5_000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs]);
  return now;
}
