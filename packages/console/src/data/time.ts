const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Formats a period in its largest unit: `42 s`, `5 min`, `3 h`, `2 d`.
 * @param seconds zero or more
 * @param whole how the number is rounded
 */
export function approximate(seconds: number, whole = Math.floor): string {
  if (seconds < MINUTE) return `${whole(seconds)} s`;
  if (seconds < HOUR) return `${whole(seconds / MINUTE)} min`;
  if (seconds < 2 * DAY) return `${whole(seconds / HOUR)} h`;
  return `${whole(seconds / DAY)} d`;
}

/** Formats a period in two units: `42 s`, `5 min 3 s`, `3 h 20 min`; below a second: `42 ms`. @param ms zero or more */
export function elapsed(ms: number): string {
  if (ms < 1000) return duration(ms);
  const seconds = Math.floor(ms / 1000);
  if (seconds < MINUTE) return `${seconds} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ${seconds % MINUTE} s`;
  return `${Math.floor(seconds / HOUR)} h ${Math.floor((seconds % HOUR) / MINUTE)} min`;
}

/** Formats a time relative to now. Less than a second is `now`, because clocks differ. Both in epoch milliseconds. */
export function relative(at: number, now: number): string {
  const seconds = (at - now) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  // Rounded: a key that was created a moment ago for 30 days expires in 30 d.
  return seconds > 0 ? `in ${approximate(seconds, Math.round)}` : `${approximate(-seconds)} ago`;
}

/** Formats the time left in seconds: `1 d 03:07:42`, `07:42`. Both in epoch milliseconds. */
export function countdown(endsAt: number, now: number): string {
  const seconds = Math.max(0, Math.ceil((endsAt - now) / 1000));
  const twoDigits = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const clock = `${twoDigits((seconds % HOUR) / MINUTE)}:${twoDigits(seconds % MINUTE)}`;
  if (seconds < HOUR) return clock;
  const hours = `${twoDigits((seconds % DAY) / HOUR)}:${clock}`;
  return seconds < DAY ? hours : `${Math.floor(seconds / DAY)} d ${hours}`;
}

/** Formats a time of day: `23:02`. */
export const clockTime = (instant: string): string =>
  new Date(instant).toLocaleString(undefined, { hour: "2-digit", minute: "2-digit" });

/** Formats the duration of an attempt: `42 ms`, `1.3 s`. */
export function duration(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}
