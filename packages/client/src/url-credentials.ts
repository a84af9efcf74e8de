/**
 * Returns a URL without its user name and password, and these as the value of `Authorization`; undefined = it has none.
 */
export function credentialsIn(text: string): { url: string; authorization: string } | undefined {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (!url || (url.username === "" && url.password === "")) return undefined;
  const bytes = new TextEncoder().encode(`${decoded(url.username)}:${decoded(url.password)}`);
  [url.username, url.password] = ["", ""];
  return { url: url.href, authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

/** A % that encodes nothing stands for itself. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
