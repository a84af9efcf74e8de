/* What stands for what a caller may not see. */

/** ASCII, so that a masked URL is a valid one. */
export const MASK = "***";

/** The path and query of a URL, also in JSON with escaped slashes. */
const URL_REST = /(https?:(?:\\?\/){2}[^\s/?#"'<>\\]+)\\?[/?#][^\s"'<>]+/gi;

/** Masks the path and query of each URL in a text. A text that is a relative URL is masked as a whole. */
export const withMaskedUrls = (text: string): string =>
  /^\/\S*$/.test(text) ? `/${MASK}` : text.replaceAll(URL_REST, `$1/${MASK}`);

export const isMaskedUrl = ({ pathname }: URL): boolean => pathname === `/${MASK}`;
