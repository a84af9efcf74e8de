import data from "./prices.json" with { type: "json" };

/*
 * List prices of AWS in us-east-1, from prices.json: `dollars` for `per` units. Free tiers, discounts, taxes and support plans are
 * not included. Prices are those of the first volume tier, the most expensive one. AWS bills gigabytes as powers of two.
 *
 * `evidence` is `page`: the page of the vendor, read on the day below; `others`: a page of another author that quotes it; `not
 * verified`: commonly cited, but no page with it was found.
 */

/** The day on which the prices were looked up. They change without notice. */
export const PRICES_SEEN = data.seen;

export const { prices } = data;

export type PriceKey = keyof typeof prices;

/** Returns the price of a number of units, in dollars. */
export const dollarsFor = (key: PriceKey, units: number): number => (units * prices[key].dollars) / prices[key].per;
