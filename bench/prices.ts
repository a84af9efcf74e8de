import data from "./prices.json" with { type: "json" };

/*
 * List prices of AWS in us-east-1 and of hosted services, from prices.json. Free tiers, discounts, taxes and support plans are not
 * included. Prices are those of the first volume tier, the most expensive one. AWS bills gigabytes as powers of two.
 */

/** The day on which the prices were looked up. They change without notice. */
export const PRICES_SEEN = data.seen;

export interface Price {
  dollars: number;
  /** The number of units that `dollars` pays for. */
  per: number;
  unit: string;
  source: string;
  /**
   * `page`: the page of the vendor, read on the day above. `others`: a page of another author that quotes it. `not verified`:
   * commonly cited, but no page with it was found.
   */
  evidence: string;
  /** Details from the source. */
  note?: string;
}

export type PriceKey = keyof typeof data.prices;

export const prices: Record<PriceKey, Price> = data.prices;

/** Returns the price of a number of units, in dollars. */
export const dollarsFor = (key: PriceKey, units: number): number => (units * prices[key].dollars) / prices[key].per;

export interface HostedPlan {
  name: string;
  /** The part of this service that it covers. */
  does: string;
  monthlyDollars?: number;
  /** Units that the monthly price includes. */
  included?: number;
  /** Dollars per further million units; absent when no price was found. */
  perMillion?: number;
  /** The billed unit. */
  counts: string;
  source: string;
  evidence: string;
}

/** Public prices of hosted services for webhooks and API keys. */
export const hosted: readonly HostedPlan[] = data.hosted;
