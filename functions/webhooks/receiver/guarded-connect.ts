import type { LookupAddress } from "node:dns";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { createSecureContext } from "node:tls";
import { PORT_BLOCKED } from "../../foundation/events/failure-code.ts";
import { type Cidr, isAllowedAddress, isPublicAddress, isServicePort } from "./receiver-address.ts";
import { NameNotResolvedError, type Resolve } from "./resolver.ts";

/** The receiver's address is not one that webhooks may reach. */
export class AddressBlockedError extends Error {
  override readonly name = "AddressBlockedError";
  readonly code = "ADDRESS_BLOCKED";
}

/** The URL has the port of a service that webhooks may not reach. */
export class PortBlockedError extends Error {
  override readonly name = "PortBlockedError";
  readonly code = PORT_BLOCKED;
}

/**
 * Max wait for a connection to one of several addresses before the next address is tried. Node's default of 250 ms
 * fails every receiver whose TCP handshake takes longer. The last address has the rest of the deadline.
 * https://nodejs.org/api/net.html#socketconnectoptions-connectlistener
 */
const CONNECT_ATTEMPT_MS = 3_000;

/** Agents by the protocol of a URL: `https:` and `http:`. */
export type Agents = Record<string, http.Agent>;

/**
 * Creates agents that connect only to addresses that a webhook may reach. The check and the socket use the same
 * resolved addresses, so a name cannot resolve to one address for the check and to another for the connection (DNS
 * rebinding). One blocked address among several blocks the name, because any of them could be used to connect.
 *
 * Node calls `lookup` for names only, so `createConnection` checks literal addresses. It also checks the port: a webhook may
 * be older than the rule for its URL.
 * @param allowed ranges that may be reached besides the public ones
 */
export function guardedAgents(allowed: Cidr[], resolve: Resolve, agentOptions: http.AgentOptions): Agents {
  const options = { ...agentOptions, autoSelectFamilyAttemptTimeout: CONNECT_ATTEMPT_MS };
  const isReachable = (address: string) => isPublicAddress(address) || isAllowedAddress(address, allowed);
  // Plain http is accepted only for the ranges that the operator allowed.
  const isAllowed = (address: string) => isAllowedAddress(address, allowed);
  // One TLS context for all connections: Node would create one for each, which is four fifths of the CPU time of a new connection.
  const overTls = { secureContext: createSecureContext(), lookup: guardedLookup(resolve, isReachable) };
  return {
    "https:": guard(new https.Agent({ ...options, ...overTls }), isReachable),
    "http:": guard(new http.Agent({ ...options, lookup: guardedLookup(resolve, isAllowed) }), isAllowed),
  };
}

type IsReachable = (address: string) => boolean;

function guard(agent: http.Agent, isReachable: IsReachable): http.Agent {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const host = options.host ?? "";
    if (isServicePort(Number(options.port))) {
      callback?.(new PortBlockedError(`port ${options.port} is that of another service`), undefined as never);
      return undefined;
    }
    if (isIP(host) === 0 || isReachable(host)) return connect(options, callback);
    callback?.(new AddressBlockedError(`${host} is not public`), undefined as never);
    return undefined;
  };
  return agent;
}

/** Upper bound on the addresses of a name. Each is checked, which takes 5 µs. */
const MAX_ADDRESSES = 500;

/** Addresses of a family that are tried. All of a name, hundreds of them, would make the senders a port scanner. */
const MAX_PER_FAMILY = 2;

/** Returns the addresses to connect to, in the order of the resolver. */
const dialled = (addresses: LookupAddress[]): LookupAddress[] =>
  [4, 6].flatMap((wanted) => addresses.filter(({ family }) => family === wanted).slice(0, MAX_PER_FAMILY));

function guardedLookup(resolve: Resolve, isReachable: IsReachable): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (!first) return callback(new NameNotResolvedError(hostname, "ENODATA"), []);
        if (addresses.length > MAX_ADDRESSES) return callback(new NameNotResolvedError(hostname, "EBADRESP"), []);
        if (!addresses.every(({ address }) => isReachable(address))) {
          return callback(new AddressBlockedError(`${hostname} resolves to an address that is not public`), []);
        }
        if (options.all) return callback(null, dialled(addresses));
        return callback(null, first.address, first.family);
      },
      (error) => callback(error, []),
    );
  };
}
