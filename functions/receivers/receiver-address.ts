import ipaddr from "ipaddr.js";
import { SettingError } from "../platform/errors.ts";

/*
 * Which network addresses a webhook may reach. A receiver's URL comes from a user, and we send from inside our own network:
 * without this rule it could name our neighbours (server-side request forgery).
 * https://www.iana.org/assignments/iana-ipv4-special-registry, https://www.iana.org/assignments/iana-ipv6-special-registry
 */

export type Cidr = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** @throws SettingError naming the entry that is no address range */
export function parseCidrs(texts: string[]): Cidr[] {
  return texts.map((text) => {
    if (!ipaddr.isValidCIDR(text)) throw new SettingError(`WEBHOOK_ALLOW_CIDRS: "${text}" is not an address range`);
    return ipaddr.parseCIDR(text);
  });
}

/**
 * Whether an IPv6 address lies in 2000::/3, the only space that is routed globally so far (all forms that wrap an IPv4 address
 * lie outside or are singled out), and not in 3fff::/20, which is for documentation (RFC 9637). By bits, not by parsing the
 * ranges, which would be 2 % of a cold start.
 */
function isGlobalIpv6({ parts: [first = 0, second = 0] }: ipaddr.IPv6): boolean {
  const isDocumentation = first === 0x3fff && second >> 12 === 0;
  return first >> 13 === 0b001 && !isDocumentation;
}

/**
 * Whether an address is globally routable. `unicast` is what remains when every special range is taken out: private,
 * loopback, link-local (cloud metadata with it), shared, multicast, reserved, v4-mapped, NAT64, 6to4, Teredo and so on.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== "unicast") return false;
  return !(address instanceof ipaddr.IPv6) || isGlobalIpv6(address);
}

/** Whether an address lies in one of the ranges that the operator opened. */
export function isAllowedAddress(text: string, allowed: Cidr[]): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  return allowed.some((range) => isIn(address, range));
}

function isIn(address: ipaddr.IPv4 | ipaddr.IPv6, [network, bits]: Cidr): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}
