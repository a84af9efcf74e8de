import { type LookupAddress, lookup } from "node:dns";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { type Cidr, isAllowedAddress, isPublicAddress } from "./receiver-address.ts";

/** The receiver's address is one we do not send to. */
export class AddressBlocked extends Error {
  override readonly name = "AddressBlocked";
  readonly code = "ADDRESS_BLOCKED";
}

/** By the protocol of a URL. */
export type Agents = Record<string, http.Agent>;

/**
 * Agents that dial only addresses that a webhook may reach. The judgement is made on the very addresses that the socket gets,
 * so a name cannot show one address to the check and another to the connection (DNS rebinding). One bad address among
 * several blocks the name: which of them is dialled would be chance.
 *
 * Node calls a `lookup` for names only, so literal addresses are judged first.
 */
export function guardedAgents(allowed: Cidr[], options: http.AgentOptions): Agents {
  const isReachable = (address: string) => isPublicAddress(address) || isAllowedAddress(address, allowed);
  // Plain http exists for the ranges that an operator opened, and only there.
  const isOpened = (address: string) => isAllowedAddress(address, allowed);
  return {
    "https:": vetted(new https.Agent({ ...options, lookup: vettedLookup(isReachable) }), isReachable),
    "http:": vetted(new http.Agent({ ...options, lookup: vettedLookup(isOpened) }), isOpened),
  };
}

type IsReachable = (address: string) => boolean;

function vetted(agent: http.Agent, isReachable: IsReachable): http.Agent {
  const dial = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const host = options.host ?? "";
    if (isIP(host) === 0 || isReachable(host)) return dial(options, callback);
    callback?.(new AddressBlocked(`${host} is not public`), undefined as never);
    return undefined;
  };
  return agent;
}

function vettedLookup(isReachable: IsReachable): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error: Error | null, addresses: LookupAddress[]) => {
      const [first] = addresses ?? [];
      if (error || !first) return callback(error ?? new Error(`${hostname} has no address`), []);
      const isBlocked = !addresses.every(({ address }) => isReachable(address));
      if (isBlocked) return callback(new AddressBlocked(`${hostname} resolves to an address that is not public`), []);
      if (options.all) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}
