/** Two URLs with the same key are requested in the same way: without a root dot, a default port and dot segments. */
export function matchKey(text: string): string {
  const url = new URL(text);
  url.hostname = url.hostname.replace(/\.$/, "");
  return url.href;
}
