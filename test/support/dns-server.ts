import { createSocket } from "node:dgram";
import { once } from "node:events";
import { decode, encode } from "dns-packet";

/** The response to queries for each name: addresses by family, or a response code. `afterMs` delays one family. */
export interface Zone {
  [name: string]: {
    /** Precedes the addresses in each answer, also where there are none. */
    CNAME?: string;
    A?: string[];
    AAAA?: string[];
    rcode?: "NXDOMAIN" | "SERVFAIL" | "REFUSED";
    /** Only queries for AAAA get `rcode`. */
    isRcodeForAaaaOnly?: true;
    /** The server never responds, to queries of this type if one is given. */
    silent?: boolean | "A" | "AAAA";
    afterMs?: { A?: number; AAAA?: number };
  };
}

export interface DnsServer {
  /** For `ResolverOptions.servers`. */
  address: string;
  /** The questions received so far, as `A example.com`. */
  questions: string[];
  close(): Promise<void>;
}

const RCODES = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 };

/** Starts a DNS server on a free UDP port of 127.0.0.1. It returns NXDOMAIN for names that are not in the zone. */
export async function startDnsServer(zone: Zone): Promise<DnsServer> {
  const socket = createSocket("udp4");
  const questions: string[] = [];
  const delayed = new Set<NodeJS.Timeout>();
  socket.on("message", (message, peer) => {
    const query = decode(message);
    const [question] = query.questions ?? [];
    if (!question) return;
    const { name, type } = question;
    questions.push(`${type} ${name}`);
    const entry = zone[name.toLowerCase()] ?? { rcode: "NXDOMAIN" as const };
    if (entry.silent === true || entry.silent === type) return;
    const addresses = type === "A" ? entry.A : type === "AAAA" ? entry.AAAA : undefined;
    const owner = entry.CNAME ?? name;
    const found = (addresses ?? []).map((data) => ({ name: owner, type: type as "A", ttl: 1, data }));
    const answers = [...(entry.CNAME ? [{ name, type: "CNAME" as const, ttl: 1, data: entry.CNAME }] : []), ...found];
    const hasRcode = entry.rcode !== undefined && (type === "AAAA" || !entry.isRcodeForAaaaOnly);
    const flags = (hasRcode && entry.rcode ? RCODES[entry.rcode] : 0) | 0x80; // recursion available
    const packet = encode({ type: "response", id: query.id ?? 0, flags, questions: [question], answers });
    const send = () => socket.send(packet, peer.port, peer.address);
    const waitMs = entry.afterMs?.[type as "A" | "AAAA"];
    if (waitMs === undefined) send();
    else delayed.add(setTimeout(send, waitMs));
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    async close() {
      for (const timer of delayed) clearTimeout(timer);
      socket.close();
      await once(socket, "close");
    },
  };
}
