import { type LookupAddress, Resolver } from "node:dns";
import { readFile } from "node:fs/promises";

/*
 * Resolves the host names of receivers without libuv's thread pool. `dns.lookup` runs on four threads, of which two
 * resolve at a time, and cannot be canceled: two names whose servers never respond would delay every other receiver.
 * Here each name has its own queries and its own deadline.
 */

export interface ResolverOptions {
  /** Deadline for one name, including all queries and retries. */
  timeoutMs: number;
  /** Addresses of DNS servers (`127.0.0.1:5353`); absent for those of the operating system. */
  servers?: readonly string[];
  /**
   * Path of a hosts file that is consulted first; absent for none. For local use: c-ares does not read it by itself.
   */
  hostsFile?: string;
}

/** The name could not be resolved. `code` is a code of `node:dns`: https://nodejs.org/api/dns.html#error-codes */
export class NameNotResolvedError extends Error {
  override readonly name = "NameNotResolvedError";
  readonly code: string;

  constructor(hostname: string, code: string) {
    super(code === "ETIMEOUT" ? `${hostname} did not resolve in time` : `${hostname} does not resolve (${code})`);
    this.code = code;
  }
}

/** Resolves a host name to its addresses. @throws NameNotResolvedError */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

const NAME_TIMEOUT_MS = 3_000;
const HOSTS_FILE = process.platform === "win32" ? "C:\\Windows\\System32\\drivers\\etc\\hosts" : "/etc/hosts";

/**
 * Creates the resolver of a receiver client. Requests for a name that is being resolved share its queries, so that a
 * webhook has one look-up in flight however many deliveries it has.
 * @param servers DNS servers; empty for those of the operating system
 * @param isLocal whether private addresses are allowed; only then the hosts file is read
 */
export function createResolver(servers: readonly string[], isLocal: boolean): Resolve {
  const options = {
    timeoutMs: NAME_TIMEOUT_MS,
    ...(servers.length > 0 && { servers }),
    ...(isLocal && { hostsFile: HOSTS_FILE }),
  };
  const inFlight = new Map<string, Promise<LookupAddress[]>>();
  return (hostname) => {
    const lookup = inFlight.get(hostname) ?? resolveHost(hostname, options).finally(() => inFlight.delete(hostname));
    inFlight.set(hostname, lookup);
    return lookup;
  };
}

/** Max wait for the IPv6 addresses once an IPv4 address has arrived (RFC 8305, section 3, Resolution Delay). */
const RESOLUTION_DELAY_MS = 50;

/**
 * Resolves a host name to its IPv4 and IPv6 addresses. IPv4 is first, because a Lambda function without IPv6 would lose
 * a connection attempt to each IPv6 address.
 * @throws NameNotResolvedError `ENOTFOUND` or `ENODATA` for a name without an address, `ETIMEOUT` after the deadline,
 * or another code for an error that the server returned
 */
export async function resolveHost(hostname: string, options: ResolverOptions): Promise<LookupAddress[]> {
  const local = isLocalhost(hostname) ? LOOPBACK : await fromHostsFile(hostname, options.hostsFile);
  return local.length > 0 ? local : queryServers(hostname, options);
}

// RFC 6761, section 6.3: names below `localhost` are the loopback interface, and are not sent to a server.
const isLocalhost = (hostname: string): boolean => /(^|\.)localhost\.?$/i.test(hostname);
const LOOPBACK: LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

async function fromHostsFile(hostname: string, path: string | undefined): Promise<LookupAddress[]> {
  if (path === undefined) return [];
  const text = await readFile(path, "utf8").catch(() => "");
  const wanted = hostname.toLowerCase().replace(/\.$/, "");
  return text.split("\n").flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (!names.some((name) => name.toLowerCase() === wanted)) return [];
    return [{ address, family: address.includes(":") ? 6 : 4 }];
  });
}

type Answer = { addresses: LookupAddress[] } | { code: string };

function queryServers(hostname: string, { timeoutMs, servers }: ResolverOptions): Promise<LookupAddress[]> {
  return new Promise((resolve, reject) => {
    // One resolver per name: `cancel` ends all queries of a resolver. Creating one takes 30 µs.
    const resolver = new Resolver({ timeout: Math.ceil(timeoutMs / 3), tries: 2 });
    if (servers) resolver.setServers(servers);
    const answers: { ipv4?: Answer; ipv6?: Answer } = {};
    let delay: NodeJS.Timeout | undefined;
    const finish = (error?: NameNotResolvedError) => {
      clearTimeout(deadline);
      clearTimeout(delay);
      const found = [answers.ipv4, answers.ipv6].flatMap((answer) =>
        answer && "addresses" in answer ? answer.addresses : [],
      );
      if (found.length > 0) resolve(found);
      else reject(error ?? new NameNotResolvedError(hostname, "ETIMEOUT"));
      resolver.cancel();
    };
    const deadline = setTimeout(finish, timeoutMs);
    const settle = (answer: Answer) => {
      const { ipv4, ipv6 } = answers;
      const both = [ipv4, ipv6].flatMap((each) => each ?? []);
      // Also after NXDOMAIN the other family may have an address: some servers answer so when only AAAA is missing.
      // https://www.rfc-editor.org/rfc/rfc4074#section-4.2
      if ("code" in answer && both.length === 2) {
        const [first] = both.flatMap((each) => ("code" in each ? each.code : []));
        return finish(new NameNotResolvedError(hostname, first ?? answer.code));
      }
      if (both.length === 2) return finish();
      // IPv6 alone does not end the wait for IPv4: a Lambda function outside of a VPC has none.
      if (ipv4 && "addresses" in ipv4) delay = setTimeout(finish, RESOLUTION_DELAY_MS);
    };
    const receive = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, addresses: string[]) => {
      // c-ares reports success without addresses for a CNAME to a name that has none of this family.
      const code = error ? (error.code ?? "ESERVFAIL") : "ENODATA";
      const found = error ? [] : addresses.map((address) => ({ address, family }));
      const answer: Answer = found.length > 0 ? { addresses: found } : { code };
      answers[family === 4 ? "ipv4" : "ipv6"] = answer;
      settle(answer);
    };
    resolver.resolve4(hostname, receive(4));
    resolver.resolve6(hostname, receive(6));
  });
}
