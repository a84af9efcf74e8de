/* Durations that users type: 90min, 6h, 3d. */

const secondsPerUnit: Record<string, number> = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400 };

/** Returns the seconds of a duration; undefined for any other text. */
export function readDuration(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,6}) ?(s|m|min|h|d)$/.exec(text) ?? [];
  const seconds = Number(amount) * (secondsPerUnit[unit] ?? Number.NaN);
  return Number.isNaN(seconds) ? undefined : seconds;
}
