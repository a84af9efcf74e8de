import * as z from "zod/mini";
import { uuid } from "./input.ts";

/* The query parameters of lists that are returned in pages. */

export const MAX_PAGE = 100;
const DEFAULT_PAGE = 20;
const limitRule = `must be a whole number from 1 to ${MAX_PAGE}`;

/** The query parameters of every such list: the size of a page, and the id after which it begins. */
export const pageFields = {
  limit: z.optional(
    z
      .string()
      .check(
        z.regex(/^([1-9]\d?|100)$/, limitRule),
        z.meta({ type: "integer", pattern: undefined, minimum: 1, maximum: MAX_PAGE }),
      ),
  ),
  cursor: z.optional(uuid),
};

/** A part of a list. */
export interface Page {
  limit: number;
  /** The id after which the page begins; absent = the first page. */
  cursor?: string | undefined;
}

interface GivenPage {
  limit?: string | undefined;
  cursor?: string | undefined;
}

/**
 * Completes the query parameters of a list.
 * @param query a schema with `pageFields`
 * @param defaultLimit size of a page without `limit`
 * @returns a schema whose output has the page, and `given`: the parameters unchanged, for the link to the next page
 */
export const page = <Given extends GivenPage>(query: z.ZodMiniType<Given>, defaultLimit = DEFAULT_PAGE) =>
  z.pipe(
    query,
    z.transform((given: Given) => ({ ...given, limit: Number(given.limit ?? defaultLimit), given: { ...given } })),
  );
