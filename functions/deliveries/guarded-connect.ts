import { type LookupAddress, lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { type Cidr, isAllowedAddress, isPublicAddress } from "../webhooks/receiver-address.ts";

/** The receiver's address is one we do not send to. */
export class AddressBlocked extends Error {
  override readonly name = "AddressBlocked";
  readonly code = "ADDRESS_BLOCKED";
}

/**
 * Dials only addresses that a webhook may reach. The judgement is made on the very addresses that the socket gets, so a name
 * cannot show one address to the check and another to the connection (DNS rebinding). One bad address among several blocks
 * the name: which of them is dialled would be chance.
 *
 * Node calls a `lookup` for names only, so literal addresses are judged first.
 * @param timeoutMs for the dial alone; the caller holds the deadline of the whole request
 */
export function guardedConnect(allowed: Cidr[], timeoutMs: number): buildConnector.connector {
  const overTls = vetted((address) => isPublicAddress(address) || isAllowedAddress(address, allowed), timeoutMs);
  // Plain http exists for the ranges that an operator opened, and only there.
  const plain = vetted((address) => isAllowedAddress(address, allowed), timeoutMs);
  return (options, callback) => (options.protocol === "https:" ? overTls : plain)(options, callback);
}

function vetted(isReachable: (address: string) => boolean, timeoutMs: number): buildConnector.connector {
  const vettedLookup: LookupFunction = (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error: Error | null, addresses: LookupAddress[]) => {
      const [first] = addresses ?? [];
      if (error || !first) return callback(error ?? new Error(`${hostname} has no address`), []);
      const isBlocked = !addresses.every(({ address }) => isReachable(address));
      if (isBlocked) return callback(new AddressBlocked(`${hostname} resolves to an address that is not public`), []);
      if (options.all) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
  const connect = buildConnector({ timeout: timeoutMs, lookup: vettedLookup });
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !isReachable(host)) return callback(new AddressBlocked(`${host} is not public`), null);
    return connect(options, callback);
  };
}
