import data from "./prices.json" with { type: "json" };

/*
 * List prices of AWS in us-east-1, from prices.json. Free tiers, discounts, taxes and support plans are not
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
