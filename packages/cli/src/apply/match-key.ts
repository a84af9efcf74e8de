/** Two URLs with the same key are requested in the same way: host in lower case, without a default port and dot segments. */
export const matchKey = (url: string): string => new URL(url).href;
