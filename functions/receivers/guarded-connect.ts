import { type LookupAddress, lookup } from "node:dns";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { type Cidr, isAllowedAddress, isPublicAddress } from "./receiver-address.ts";

/** The receiver's address is not one that webhooks may reach. */
export class AddressBlockedError extends Error {
  override readonly name = "AddressBlockedError";
  readonly code = "ADDRESS_BLOCKED";
}

/** Agents by the protocol of a URL: `https:` and `http:`. */
export type Agents = Record<string, http.Agent>;

/**
 * Creates agents that connect only to addresses that a webhook may reach. The check and the socket use the same
 * resolved addresses, so a name cannot resolve to one address for the check and to another for the connection (DNS
 * rebinding). One blocked address among several blocks the name, because any of them could be used to connect.
 *
 * Node calls `lookup` for names only, so literal addresses are checked before.
 * @param allowed ranges beyond the public ones that may be reached
 */
export function guardedAgents(allowed: Cidr[], options: http.AgentOptions): Agents {
  const isReachable = (address: string) => isPublicAddress(address) || isAllowedAddress(address, allowed);
  // Plain http is for the ranges that the operator allowed only.
  const isAllowed = (address: string) => isAllowedAddress(address, allowed);
  return {
    "https:": guard(new https.Agent({ ...options, lookup: guardedLookup(isReachable) }), isReachable),
    "http:": guard(new http.Agent({ ...options, lookup: guardedLookup(isAllowed) }), isAllowed),
  };
}

type IsReachable = (address: string) => boolean;

function guard(agent: http.Agent, isReachable: IsReachable): http.Agent {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const host = options.host ?? "";
    if (isIP(host) === 0 || isReachable(host)) return connect(options, callback);
    callback?.(new AddressBlockedError(`${host} is not public`), undefined as never);
    return undefined;
  };
  return agent;
}

function guardedLookup(isReachable: IsReachable): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error: Error | null, addresses: LookupAddress[]) => {
      const [first] = addresses ?? [];
      if (error || !first) return callback(error ?? new Error(`${hostname} has no address`), []);
      const isBlocked = !addresses.every(({ address }) => isReachable(address));
      if (isBlocked)
        return callback(new AddressBlockedError(`${hostname} resolves to an address that is not public`), []);
      if (options.all) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}
