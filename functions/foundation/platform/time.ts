/** Returns the time `seconds` after `now`, in ISO 8601. */
export const addSeconds = (now: Date, seconds: number): string =>
  new Date(now.getTime() + seconds * 1000).toISOString();

/** Returns the latest of some times. */
export const laterOf = (...times: Date[]): Date => new Date(Math.max(...times.map((time) => time.getTime())));
