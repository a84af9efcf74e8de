import type { EndpointRow } from "../../functions/foundation/manifest/endpoints.ts";

/** Takes a token for a request to an endpoint. Returns false if there is none: the request gets 429. */
export type TakeToken = (row: EndpointRow) => boolean;

/**
 * Creates the token buckets of the endpoints with a throttle in their row, as API Gateway has one for each method of a
 * stage. Endpoints without a throttle always have tokens.
 * @param now returns the time in milliseconds
 */
export function createThrottle(now: () => number = () => performance.now()): TakeToken {
  const buckets = new Map<string, { tokens: number; at: number }>();
  return ({ id, throttle }) => {
    if (!throttle) return true;
    const at = now();
    const before = buckets.get(id) ?? { tokens: throttle.burst, at };
    const added = ((at - before.at) / 1000) * throttle.requestsPerSecond;
    const tokens = Math.min(throttle.burst, before.tokens + added);
    const hasToken = tokens >= 1;
    buckets.set(id, { tokens: hasToken ? tokens - 1 : tokens, at });
    return hasToken;
  };
}
