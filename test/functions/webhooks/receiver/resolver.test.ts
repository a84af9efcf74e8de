import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jest } from "@jest/globals";
import { createResolver, NameNotResolvedError, resolveHost } from "../../../../functions/webhooks/receiver/resolver.ts";
import { type DnsServer, startDnsServer } from "../../../support/dns-server.ts";

const TIMEOUT_MS = 600;
let server: DnsServer;

beforeAll(async () => {
  const hanging = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`hanging${n}.example`, { silent: true }]));
  server = await startDnsServer({
    ...hanging,
    "both.example": { A: ["192.0.2.1", "192.0.2.2"], AAAA: ["2001:db8::1"] },
    "four.example": { A: ["192.0.2.4"] },
    "six.example": { AAAA: ["2001:db8::6"] },
    "empty.example": {},
    "broken.example": { rcode: "SERVFAIL" },
    // A broken server (RFC 4074, section 4.2).
    "no-six.example": { A: ["192.0.2.9"], rcode: "NXDOMAIN", isRcodeForAaaaOnly: true, afterMs: { A: 40 } },
    "shared.example": { A: ["192.0.2.10"], afterMs: { A: 20 } },
    "slow-six.example": { A: ["192.0.2.7"], AAAA: ["2001:db8::7"], afterMs: { AAAA: 20 } },
    "stuck-six.example": { A: ["192.0.2.8"], AAAA: ["2001:db8::8"], afterMs: { AAAA: 60_000 } },
  });
});
afterAll(() => server.close());

const resolve = (name: string, more = {}) =>
  resolveHost(name, { timeoutMs: TIMEOUT_MS, servers: [server.address], ...more });
const textOf = async (name: string) => (await resolve(name)).map(({ address, family }) => `${family} ${address}`);
const codeOf = (name: string, more = {}) =>
  resolve(name, more).then(
    () => "resolved",
    (error) => (error instanceof NameNotResolvedError ? error.code : error),
  );

describe("resolveHost", () => {
  test("returns the addresses of both families, IPv4 first", async () => {
    expect(await textOf("both.example")).toEqual(["4 192.0.2.1", "4 192.0.2.2", "6 2001:db8::1"]);
  });

  test.each([
    ["an IPv4 address only", "four.example", ["4 192.0.2.4"]],
    ["an IPv6 address only", "six.example", ["6 2001:db8::6"]],
    ["an IPv4 address that arrives after NXDOMAIN for IPv6", "no-six.example", ["4 192.0.2.9"]],
    ["an IPv6 address that arrives 20 ms late", "slow-six.example", ["4 192.0.2.7", "6 2001:db8::7"]],
  ])("resolves a name with %s", async (_, name, expected) => {
    expect(await textOf(name)).toEqual(expected);
  });

  test("does not wait for the deadline when the addresses of one family are missing", async () => {
    const timers = jest.spyOn(globalThis, "setTimeout");
    const addresses = await resolve("stuck-six.example", { timeoutMs: 60_000 });
    const delays = timers.mock.calls.map(([, delayMs]) => delayMs);
    timers.mockRestore();
    expect(addresses).toEqual([{ address: "192.0.2.8", family: 4 }]);
    // The wait for the other family starts when the addresses of one family arrive.
    expect(delays).toContain(50);
  });

  test.each([
    ["that does not exist", "unknown.example", "ENOTFOUND"],
    ["without an address", "empty.example", "ENODATA"],
    ["whose server fails", "broken.example", "ESERVFAIL"],
    ["whose server never responds", "hanging0.example", "ETIMEOUT"],
  ])("rejects a name %s", async (_, name, code) => {
    expect(await codeOf(name)).toBe(code);
  });

  test("rejects at the deadline when the server never responds", async () => {
    const startedAt = performance.now();
    expect(await codeOf("hanging1.example")).toBe("ETIMEOUT");
    const passedMs = performance.now() - startedAt;
    expect(passedMs).toBeGreaterThanOrEqual(TIMEOUT_MS - 2);
    expect(passedMs).toBeLessThan(TIMEOUT_MS * 15);
  });

  test("resolves a healthy name at once while the queries of fifty others get no response", async () => {
    let ended = 0;
    const hanging = Array.from({ length: 50 }, async (_, n) => {
      const code = await codeOf(`hanging${n}.example`, { timeoutMs: 2_000 });
      ended += 1;
      return code;
    });
    expect(await textOf("four.example")).toEqual(["4 192.0.2.4"]);
    expect(ended).toBe(0);
    expect(new Set(await Promise.all(hanging))).toEqual(new Set(["ETIMEOUT"]));
  });

  test("keeps no query and no timer after the name is resolved", async () => {
    const [started, ended] = [jest.spyOn(globalThis, "setTimeout"), jest.spyOn(globalThis, "clearTimeout")];
    await resolve("stuck-six.example");
    const deadline = started.mock.calls.findIndex(([, ms]) => ms === TIMEOUT_MS);
    const timer = started.mock.results[deadline]?.value;
    expect(ended.mock.calls.some(([cleared]) => cleared !== undefined && cleared === timer)).toBe(true);
    jest.restoreAllMocks();
    const before = server.questions.length;
    await new Promise((done) => setTimeout(done, TIMEOUT_MS));
    expect(server.questions.length).toBe(before);
  });
});

describe("createResolver", () => {
  test("shares the queries of a name that is being resolved, and resolves it again afterwards", async () => {
    const questionsFor = (name: string) => server.questions.filter((question) => question.endsWith(` ${name}`)).sort();
    const shared = createResolver([server.address], false);
    const found = await Promise.all(Array.from({ length: 10 }, () => shared("shared.example")));
    expect(new Set(found.map((addresses) => JSON.stringify(addresses)))).toEqual(
      new Set([JSON.stringify([{ address: "192.0.2.10", family: 4 }])]),
    );
    expect(questionsFor("shared.example")).toEqual(["A shared.example", "AAAA shared.example"]);
    await shared("shared.example");
    expect(questionsFor("shared.example")).toHaveLength(4);
  });

  test("passes a failure to all requests, and does not keep it", async () => {
    const shared = createResolver([server.address], false);
    const results = await Promise.allSettled([shared("unknown.example"), shared("unknown.example")]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect(shared("unknown.example")).rejects.toThrow(NameNotResolvedError);
  });
});

describe("resolveHost, local names", () => {
  test.each(["localhost", "LOCALHOST.", "app.localhost"])("resolves %s to loopback without a query", async (name) => {
    const before = server.questions.length;
    expect(await textOf(name)).toEqual(["4 127.0.0.1", "6 ::1"]);
    expect(server.questions.length).toBe(before);
  });

  test("reads the hosts file first, with aliases, comments and any case", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hosts-"));
    const hostsFile = join(folder, "hosts");
    writeFileSync(hostsFile, "# local\n10.1.2.3\tapp.test  www.App.Test # both\n::5 app.test\n\n");
    try {
      const found = await resolve("WWW.app.test", { hostsFile });
      expect(found).toEqual([{ address: "10.1.2.3", family: 4 }]);
      expect(await resolve("app.test", { hostsFile })).toEqual([
        { address: "10.1.2.3", family: 4 },
        { address: "::5", family: 6 },
      ]);
      expect((await resolve("four.example", { hostsFile })).length).toBe(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("ignores a hosts file that does not exist", async () => {
    expect((await resolve("four.example", { hostsFile: "no/such/file" })).length).toBe(1);
  });
});
