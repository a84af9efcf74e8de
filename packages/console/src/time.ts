const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A length of time in its largest unit: `42 s`, `5 min`, `3 h`, `2 d`. @param seconds zero or more */
export function roughly(seconds: number): string {
  if (seconds < MINUTE) return `${Math.floor(seconds)} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h`;
  return `${Math.floor(seconds / DAY)} d`;
}

/** A time as seen from now. Clocks differ a little: what is to come by less than a second is now. */
export function relative(at: number, now: number): string {
  const seconds = (at - now) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `in ${roughly(seconds)}` : `${roughly(-seconds)} ago`;
}

/** What is left until a time, to the second: `1 d 03:07:42`, `07:42`. */
export function countdown(endsAt: number, now: number): string {
  const seconds = Math.max(0, Math.ceil((endsAt - now) / 1000));
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const clock = `${two((seconds % HOUR) / MINUTE)}:${two(seconds % MINUTE)}`;
  if (seconds < HOUR) return clock;
  const hours = `${two((seconds % DAY) / HOUR)}:${clock}`;
  return seconds < DAY ? hours : `${Math.floor(seconds / DAY)} d ${hours}`;
}

/** How long an attempt took: `42 ms`, `1.3 s`. */
export function duration(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}
