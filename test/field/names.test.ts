import { failureHint } from "../../functions/webhooks/receiver/failure-hints.ts";
import { resolveHost } from "../../functions/webhooks/receiver/resolver.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { names } from "./names.ts";

/* What name servers answer about real receivers. */

const hostOf = (index: number): string => `n${index}.hooks.example`;

let server: DnsServer;
beforeAll(async () => {
  server = await startDnsServer(Object.fromEntries(names.map(({ answer }, index) => [hostOf(index), answer])));
});
afterAll(() => server.close());

test.each(names.map((row, index) => ({ ...row, host: hostOf(index) })))(
  "$name: $expected ($source)",
  async ({ host, expected, hint }) => {
    const found = await resolveHost(host, { timeoutMs: 900, servers: [server.address] }).then(
      (all) => all.map(({ address }) => address),
      ({ code }: { code: string }) => code,
    );
    expect(found).toEqual(expected);
    if (typeof found !== "string") return expect(hint).toBeUndefined();
    expect(failureHint({ error_code: "dns_error", detail: found })).toContain(hint);
  },
);
