import { inBatches } from "../../functions/foundation/platform/parallel.ts";
import type { Api } from "./service.ts";

/** Returns the path of a link (RFC 8288) of a response; undefined = it has none. */
export function linkOf(headers: Headers, rel: "next" | "monitor" = "next"): string | undefined {
  const link = new RegExp(`<([^>]+)>; rel="${rel}"`).exec(headers.get("link") ?? "")?.[1];
  if (link === undefined) return undefined;
  const { pathname, search } = new URL(link);
  return pathname + search;
}

/**
 * Reads a list and all pages that follow.
 * @param field what is returned of each item
 */
export async function readPages(api: Api, first: string, field = "id"): Promise<string[][]> {
  const pages: string[][] = [];
  for (let next: string | undefined = first; next !== undefined; ) {
    expect(next.split("?")[0]).toBe(first.split("?")[0]);
    const { status, body, headers } = await api.get(next);
    expect(status).toBe(200);
    pages.push(body.data.map((item: Record<string, string>) => item[field]));
    next = linkOf(headers);
  }
  return pages;
}

/**
 * Expects a list with these items, in this order, on full pages: of one item, of one less than all, of all, and of one more. So
 * no link leads to an empty page.
 */
export async function expectPages(api: Api, path: string, items: string[], field?: string): Promise<void> {
  const query = `${path}${path.includes("?") ? "&" : "?"}limit=`;
  for (const limit of [1, items.length - 1, items.length, items.length + 1]) {
    expect(await readPages(api, `${query}${limit}`, field)).toEqual(inBatches(items, limit));
  }
}
