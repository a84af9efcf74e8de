import type { LookupAddress, LookupAllOptions } from "node:dns";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { jest } from "@jest/globals";
import { parseCidrs } from "../../../functions/receivers/receiver-address.ts";

/** What the names of this test resolve to, one answer per lookup; the last one stays. Other names resolve as ever. */
const answers = new Map<string, LookupAddress[][]>();
const lookups: string[] = [];

type Lookup = (hostname: string, options: LookupAllOptions, callback: LookupCallback) => void;
type LookupCallback = (error: Error | null, addresses: LookupAddress[]) => void;

const dns = await import("node:dns");
const lookup: Lookup = (hostname, options, callback) => {
  lookups.push(hostname);
  const queued = answers.get(hostname);
  if (!queued) return dns.lookup(hostname, options, callback);
  const addresses = (queued.length > 1 ? queued.shift() : queued[0]) ?? [];
  setImmediate(() => callback(null, addresses));
};
jest.unstable_mockModule("node:dns", () => ({ ...dns, lookup }));
const { guardedAgents } = await import("../../../functions/receivers/guarded-connect.ts");

const v4 = (address: string): LookupAddress => ({ address, family: 4 });
const v6 = (address: string): LookupAddress => ({ address, family: 6 });

/** Servers on two addresses of this machine, with the same port. They note whom they see. */
let port: number;
let seenBy: string[];
const servers: net.Server[] = [];
beforeAll(async () => {
  const listen = async (host: string, at: number) => {
    const server = net.createServer((socket) => {
      seenBy.push(host);
      // Without reading, the server would never see the end of the connection and keep the socket open.
      socket
        .on("error", () => {})
        .resume()
        .end();
    });
    server.listen(at, host);
    await once(server, "listening");
    servers.push(server);
    return (server.address() as net.AddressInfo).port;
  };
  port = await listen("127.0.0.1", 0);
  await listen("127.0.0.2", port);
});
afterAll(() => {
  for (const server of servers) server.close();
});
beforeEach(() => {
  seenBy = [];
  lookups.length = 0;
  answers.clear();
});

/** Dials and tells the address that the connection reached, or the code of the error. */
function dial(host: string, { allowed = [] as string[], protocol = "http:" } = {}): Promise<string> {
  const agent = guardedAgents(parseCidrs(allowed), {})[protocol] as http.Agent;
  return new Promise((resolve) => {
    const request = http.request({ agent, protocol, host: host.replace(/^\[|\]$/g, ""), port });
    request.once("socket", (socket) => {
      // The server closes what it has seen: after that `seenBy` is complete.
      socket.once("connect", () => {
        const reached = socket.remoteAddress ?? "";
        socket.once("close", () => resolve(reached));
      });
    });
    request.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET") resolve(error.code ?? error.message);
    });
    request.end();
  });
}

describe("a literal address", () => {
  test.each([
    "127.0.0.1",
    "127.0.0.2",
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.168.1.1",
    "192.0.2.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[2001::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[3fff::1]",
  ])("%s is not dialled, neither over TLS nor plainly", async (hostname) => {
    expect(await dial(hostname, { protocol: "https:" })).toBe("ADDRESS_BLOCKED");
    expect(await dial(hostname)).toBe("ADDRESS_BLOCKED");
    expect(seenBy).toEqual([]);
    expect(lookups).toEqual([]);
  });

  test.each(["93.184.215.14", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]"])(
    "%s, though public, is not dialled over plain http",
    async (hostname) => {
      expect(await dial(hostname)).toBe("ADDRESS_BLOCKED");
      expect(await dial(hostname, { allowed: ["127.0.0.0/8"] })).toBe("ADDRESS_BLOCKED");
    },
  );

  test("that an operator opened is dialled, and only what was opened", async () => {
    expect(await dial("127.0.0.1", { allowed: ["127.0.0.1/32"] })).toBe("127.0.0.1");
    expect(await dial("127.0.0.2", { allowed: ["127.0.0.1/32"] })).toBe("ADDRESS_BLOCKED");
    expect(await dial("[::ffff:127.0.0.2]", { allowed: ["127.0.0.1/32"] })).toBe("ADDRESS_BLOCKED");
    expect(seenBy).toEqual(["127.0.0.1"]);
  });
});

describe("a name", () => {
  test("that leads to this machine is not dialled", async () => {
    expect(await dial("localhost")).toBe("ADDRESS_BLOCKED");
    expect(await dial("localhost", { protocol: "https:" })).toBe("ADDRESS_BLOCKED");
    expect(seenBy).toEqual([]);
  });

  test("that leads to an opened address is dialled", async () => {
    answers.set("hooks.example.com", [[v4("127.0.0.1")]]);
    expect(await dial("hooks.example.com", { allowed: ["127.0.0.0/8"] })).toBe("127.0.0.1");
    expect(seenBy).toEqual(["127.0.0.1"]);
  });

  test.each<[string, LookupAddress[]]>([
    ["a private address", [v4("10.0.0.1")]],
    ["the metadata service", [v4("169.254.169.254")]],
    ["loopback in IPv6", [v6("::1")]],
    ["an IPv4 address in IPv6's clothes", [v6("::ffff:127.0.0.1")]],
    ["a public address first and a private one after it", [v4("93.184.215.14"), v4("127.0.0.1")]],
    ["a private address first and a public one after it", [v4("127.0.0.1"), v4("93.184.215.14")]],
    ["a public IPv4 address and a private one in IPv6", [v4("93.184.215.14"), v6("fd00::1")]],
  ])("that leads to %s is not dialled", async (_, addresses) => {
    answers.set("hooks.example.com", [addresses]);
    expect(await dial("hooks.example.com", { protocol: "https:" })).toBe("ADDRESS_BLOCKED");
    expect(seenBy).toEqual([]);
  });

  test("that leads to a public address is not dialled over plain http", async () => {
    answers.set("hooks.example.com", [[v4("93.184.215.14")]]);
    expect(await dial("hooks.example.com", { allowed: ["127.0.0.0/8"] })).toBe("ADDRESS_BLOCKED");
  });

  test("that leads nowhere fails as such", async () => {
    answers.set("hooks.example.com", [[]]);
    expect(await dial("hooks.example.com")).toBe("hooks.example.com has no address");
    expect(await dial("nobody.invalid")).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/);
  });

  test("that changes its mind between check and connection changes nothing: it is asked once", async () => {
    const allowed = ["127.0.0.2/32"];
    answers.set("rebinding.example.com", [[v4("127.0.0.2")], [v4("127.0.0.1")]]);
    expect(await dial("rebinding.example.com", { allowed })).toBe("127.0.0.2");
    expect(lookups).toEqual(["rebinding.example.com"]);
    expect(seenBy).toEqual(["127.0.0.2"]);
    // The next dial asks anew, and judges anew.
    expect(await dial("rebinding.example.com", { allowed })).toBe("ADDRESS_BLOCKED");
    expect(seenBy).toEqual(["127.0.0.2"]);
  });

  // Resolvers take these for addresses; node:net does not, so they go through the lookup like any name.
  test.each(["2130706433", "0x7f.1", "0177.0.0.1", "127.1"])(
    "that is an address in disguise, %s, is not dialled",
    async (name) => {
      expect(await dial(name, { protocol: "https:" })).toMatch(/^(ADDRESS_BLOCKED|ENOTFOUND|EAI_AGAIN)$/);
      expect(seenBy).toEqual([]);
    },
  );
});
