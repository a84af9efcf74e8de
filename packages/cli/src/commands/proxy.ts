import http from "node:http";
import type { NetworkError } from "../../../client/src/errors.ts";

/* Proxies and certificates of companies. */

type SetProxy = (settings: { https_proxy: string; http_proxy: string; no_proxy: string }) => void;

/** Since Node 24.14. Before, Node 24.0 and 22.21 use proxies only with NODE_USE_ENV_PROXY=1 at their start, and older ones never. */
const { setGlobalProxyFromEnv }: { setGlobalProxyFromEnv?: SetProxy } = http;

/** HTTPS_PROXY; like curl, of http if it names no scheme. */
const proxyOf = ({ https_proxy, HTTPS_PROXY = "" }: NodeJS.ProcessEnv): string =>
  (https_proxy || HTTPS_PROXY).trim().replace(/^(?=[^:/]+(:\d+)?\/?$)/, "http://");

const isUsable = (proxy: string): boolean => /^https?:/i.test(proxy) && URL.canParse(proxy);

/** Sends the https requests of this process through HTTPS_PROXY, except for the hosts of NO_PROXY and for this machine. */
export function useProxy(): void {
  const { no_proxy, NO_PROXY = "", NODE_USE_ENV_PROXY } = process.env;
  const https_proxy = proxyOf(process.env);
  if (NODE_USE_ENV_PROXY === "1" || !isUsable(https_proxy)) return;
  const settings = {
    https_proxy,
    http_proxy: https_proxy,
    no_proxy: `localhost,127.0.0.1,::1,${no_proxy || NO_PROXY}`,
  };
  // Without http_proxy, Node takes HTTP_PROXY, and fails if it names no scheme. What --forward sends by http goes directly.
  const { globalAgent } = http;
  setGlobalProxyFromEnv?.(settings);
  http.globalAgent = globalAgent;
}

/** What to do about a service that could not be reached. */
export function networkAdvice({ message, cause }: NetworkError): string {
  const { code } = Object((cause as Error | undefined)?.cause);
  if (/SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)/.test(code))
    return `Node does not know the CA of the certificate. If it is your company's: export NODE_EXTRA_CA_CERTS=${process.env.SSL_CERT_FILE ?? "<file.pem>"}`;
  const proxy = proxyOf(process.env);
  const isDirect = !/ https:\/\/(?!localhost|127\.0\.0\.1|\[::1\])/.test(message);
  if (proxy === "" || isDirect) return "Check the base URL and your network.";
  if (!isUsable(proxy)) return "HTTPS_PROXY is not used: it must be http://host:port or https://host:port.";
  return setGlobalProxyFromEnv || process.env.NODE_USE_ENV_PROXY === "1"
    ? "HTTPS_PROXY is used for https. Check the base URL and the proxy, or add the host to NO_PROXY."
    : `HTTPS_PROXY is not used: Node ${process.version} cannot. Use Node 24.14 or later.`;
}
