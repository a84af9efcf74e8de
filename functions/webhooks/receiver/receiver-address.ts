import ipaddr from "ipaddr.js";
import { SettingError } from "../../foundation/platform/errors.ts";

/*
 * The network addresses that a webhook may reach. A receiver's URL is user input, and the sender runs inside our own
 * network. Without these rules a URL could reach internal services (server-side request forgery).
 * https://www.iana.org/assignments/iana-ipv4-special-registry,
 * https://www.iana.org/assignments/iana-ipv6-special-registry
 */

/**
 * Ports of services that are not web servers: a signed POST is noise to them, or the start of an attack. First mail, shells, files
 * and directories, then databases, caches, queues and container hosts.
 * https://www.iana.org/assignments/service-names-port-numbers
 */
const SERVICE_PORTS = new Set([
  ...[
    21, 22, 23, 25, 53, 69, 79, 110, 111, 119, 135, 137, 139, 143, 161, 179, 389, 445, 465, 512, 513, 514, 515, 548,
    554,
  ],
  ...[587, 631, 636, 873, 989, 990, 993, 995, 2049, 3389, 5060, 5061, 5900, 6000, 6665, 6666, 6667, 6668, 6669, 6697],
  ...[
    1433, 1521, 2181, 2375, 2376, 2379, 2380, 3306, 5432, 5672, 5984, 6379, 9042, 9092, 9200, 9300, 10250, 11211, 27017,
  ],
]);

/** Returns whether a port is that of a well-known service other than a web server. No webhook may reach it. */
export const isServicePort = (port: number): boolean => SERVICE_PORTS.has(port);

export type Cidr = [ipaddr.IPv4 | ipaddr.IPv6, number];

/**
 * Parses the ranges of `WEBHOOK_ALLOW_CIDRS`.
 * @throws SettingError that names the invalid entry
 */
export function parseCidrs(texts: string[]): Cidr[] {
  return texts.map((text) => {
    if (!ipaddr.isValidCIDR(text)) throw new SettingError(`WEBHOOK_ALLOW_CIDRS: "${text}" is not an address range`);
    return ipaddr.parseCIDR(text);
  });
}

/**
 * Returns whether an IPv6 address is in 2000::/3, the only space that is routed globally so far. Addresses that embed an IPv4
 * address are outside of it, or in special ranges of it. The check compares bits because parsing the range would slow down a
 * cold start.
 */
const isGlobalIpv6 = ({ parts: [first = 0] }: ipaddr.IPv6): boolean => first >> 13 === 0b001;

/**
 * Returns whether an address is globally routable. `unicast` excludes every special range: private, loopback,
 * link-local (which includes cloud metadata), shared, multicast, reserved, v4-mapped, NAT64, 6to4, Teredo and so on.
 * @returns false for a text that is not an address
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== "unicast") return false;
  return !(address instanceof ipaddr.IPv6) || isGlobalIpv6(address);
}

/**
 * Returns whether an address is in one of the ranges that the operator allowed.
 * @returns false for a text that is not an address
 */
export function isAllowedAddress(text: string, allowed: Cidr[]): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  return allowed.some((range) => isIn(address, range));
}

function isIn(address: ipaddr.IPv4 | ipaddr.IPv6, [network, bits]: Cidr): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}
