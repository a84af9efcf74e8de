import type { Zone } from "../support/dns-server.ts";

/* What name servers answer about real receivers, and what the service makes of it. A new report is a new row. */

export interface NameRow {
  source: string;
  name: string;
  answer: Zone[string];
  /** The addresses in the order in which they are tried, or the code of the failure. */
  expected: string[] | string;
  /** A part of the hint of a failure. */
  hint?: string;
}

const CNAME = "lb.example";
const [four, six] = ["192.0.2.1", "2001:db8::1"];

export const names: NameRow[] = [
  {
    source: "nodejs/node#21795",
    name: "a CNAME to a host with IPv4 only, which arrives late",
    answer: { CNAME, A: [four], afterMs: { A: 120 } },
    expected: [four],
  },
  {
    source: "dns-lookup-cache#56",
    name: "a CNAME to a host with IPv6 only, which arrives late",
    answer: { CNAME, AAAA: [six], afterMs: { AAAA: 120 } },
    expected: [six],
  },
  {
    source: "c-ares#303",
    name: "a CNAME to a host without any",
    answer: { CNAME },
    expected: "ENODATA",
    hint: "has no address: add an A record",
  },
  {
    source: "misskey#4871",
    name: "both families, IPv4 late",
    answer: { A: [four], AAAA: [six], afterMs: { A: 120 } },
    expected: [four, six],
  },
  {
    source: "RFC 8305, section 3",
    name: "both families, IPv6 never",
    answer: { A: [four], silent: "AAAA" },
    expected: [four],
  },
  {
    source: "sentry-python#280",
    name: "IPv6 at once, IPv4 never",
    answer: { AAAA: [six], silent: "A" },
    expected: [six],
  },
  {
    source: "btcpayserver#4648",
    name: "IPv4 with a failure for IPv6",
    answer: { A: [four], rcode: "SERVFAIL", isRcodeForAaaaOnly: true },
    expected: [four],
  },
  {
    source: "RFC 4074, section 4.2",
    name: "IPv4 with NXDOMAIN for IPv6",
    answer: { A: [four], rcode: "NXDOMAIN", isRcodeForAaaaOnly: true },
    expected: [four],
  },
  { source: "webhook.site#23", name: "IPv6 alone", answer: { AAAA: [six] }, expected: [six] },
  {
    source: "RFC 2308",
    name: "a name without an address",
    answer: {},
    expected: "ENODATA",
    hint: "has no address",
  },
  {
    source: "RFC 8020",
    name: "a name that does not exist",
    answer: { rcode: "NXDOMAIN" },
    expected: "ENOTFOUND",
    hint: "does not resolve",
  },
  {
    source: "Canonry/canonry#262",
    name: "IPv4 alone",
    answer: { A: [four] },
    expected: [four],
  },
  {
    source: "outpost#314",
    name: "a broken zone",
    answer: { rcode: "SERVFAIL" },
    expected: "ESERVFAIL",
    hint: "failed (ESERVFAIL)",
  },
  {
    source: "outpost#314",
    name: "a server that refuses",
    answer: { rcode: "REFUSED" },
    expected: "EREFUSED",
    hint: "failed (EREFUSED)",
  },
  {
    source: "outpost#314",
    name: "a server that never responds",
    answer: { silent: true },
    expected: "ETIMEOUT",
    hint: "did not resolve within 3 seconds",
  },
];
