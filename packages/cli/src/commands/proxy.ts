import http from "node:http";
import type { NetworkError } from "../../../client/src/errors.ts";

/* Proxies and certificates of companies. */

type SetProxy = (settings: { https_proxy: string; no_proxy: string }) => void;

/** Never through a proxy, whatever NO_PROXY says. */
const THIS_MACHINE = "localhost,127.0.0.1,::1";

/** The proxy of HTTPS_PROXY. Like curl, without a scheme it is that of http. */
function proxyOf({ https_proxy, HTTPS_PROXY }: NodeJS.ProcessEnv): string | undefined {
  const text = (https_proxy || HTTPS_PROXY || "").trim();
  return text === "" || text.includes("://") ? text || undefined : `http://${text}`;
}

const isUsable = (proxy: string): boolean => /^https?:/i.test(proxy) && URL.canParse(proxy);

/** Undefined before Node 24.14: Node 24.0 and 22.21 use proxies only with NODE_USE_ENV_PROXY=1 at their start, older ones never. */
const { setGlobalProxyFromEnv: setProxy }: { setGlobalProxyFromEnv?: SetProxy } = http;

/** Sends the https requests of this process through HTTPS_PROXY, except for the hosts of NO_PROXY. */
export function useProxy(): void {
  const { no_proxy, NO_PROXY, NODE_USE_ENV_PROXY } = process.env;
  const https_proxy = proxyOf(process.env);
  if (https_proxy === undefined || !isUsable(https_proxy) || NODE_USE_ENV_PROXY === "1") return;
  setProxy?.({ https_proxy, no_proxy: [no_proxy || NO_PROXY, THIS_MACHINE].filter(Boolean).join(",") });
}

/** What to do about a service that could not be reached. */
export function networkAdvice({ cause }: NetworkError): string {
  const { code = "" } = ((cause as Error | undefined)?.cause ?? {}) as { code?: string };
  const { SSL_CERT_FILE, NODE_USE_ENV_PROXY } = process.env;
  if (/SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)/.test(String(code))) {
    const file = SSL_CERT_FILE ? '"$SSL_CERT_FILE"' : "<file.pem>";
    return `Node does not know the CA of the certificate. For a CA of your company: export NODE_EXTRA_CA_CERTS=${file}`;
  }
  const proxy = proxyOf(process.env);
  if (proxy === undefined) return "Check the base URL and your network.";
  if (!isUsable(proxy)) return "HTTPS_PROXY is not used: it must be http://host:port or https://host:port.";
  if (NODE_USE_ENV_PROXY === "1" || setProxy)
    return "HTTPS_PROXY is used for https. Check the base URL and the proxy, or add the host to NO_PROXY.";
  return `HTTPS_PROXY is not used: Node ${process.version} cannot. Use Node 24.14 or later, or set NODE_USE_ENV_PROXY=1 with Node 24 or 22.21.`;
}
