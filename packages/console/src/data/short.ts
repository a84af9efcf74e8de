/** The last characters of an id, which `svc` shows and accepts too. */
export const shortId = (id: string): string => id.slice(-12);

/** Says how many deliveries were sent again. */
export const resentText = (count: number): string =>
  count === 0 ? "There was nothing to resend." : `${count === 1 ? "1 delivery" : `${count} deliveries`} resent.`;

/** Cuts the middle out of a long text: the ends of URLs differ most. @param max most characters of the result */
export function cutMiddle(text: string, max = 48): string {
  if (text.length <= max) return text;
  const end = Math.floor(max / 3);
  return `${text.slice(0, max - end - 1)}…${text.slice(-end)}`;
}
