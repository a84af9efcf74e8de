/* The usual response times of webhooks, as far as this process has seen them. */

/** Weight of the newest response in the moving average. */
const WEIGHT = 0.2;
const MAX_WEBHOOKS = 10_000;

const averages = new Map<string, number>();

/** Returns the usual response time of a webhook in milliseconds; undefined before its first response. */
export const usualMs = (webhookId: string): number | undefined => averages.get(webhookId);

/** Adds a response time in milliseconds. */
export function noteResponseTime(webhookId: string, durationMs: number): void {
  const average = averages.get(webhookId) ?? durationMs;
  // Delete first, so that the map is in order of use, and its first key is the longest unused.
  averages.delete(webhookId);
  const [longestUnused] = averages.size >= MAX_WEBHOOKS ? averages.keys() : [];
  if (longestUnused !== undefined) averages.delete(longestUnused);
  averages.set(webhookId, average + WEIGHT * (durationMs - average));
}
