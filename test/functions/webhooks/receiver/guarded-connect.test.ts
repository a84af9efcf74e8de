import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { guardedAgents } from "../../../../functions/webhooks/receiver/guarded-connect.ts";
import { parseCidrs } from "../../../../functions/webhooks/receiver/receiver-address.ts";
import { resolveHost } from "../../../../functions/webhooks/receiver/resolver.ts";

/** Addresses per name, one list per lookup; the last list is reused. Other names resolve as usual. */
const resolutions = new Map<string, LookupAddress[][]>();
const lookups: string[] = [];

const resolve = async (hostname: string): Promise<LookupAddress[]> => {
  lookups.push(hostname);
  const queued = resolutions.get(hostname);
  if (!queued) return resolveHost(hostname, { timeoutMs: 3_000 });
  return (queued.length > 1 ? queued.shift() : queued[0]) ?? [];
};

const v4 = (address: string): LookupAddress => ({ address, family: 4 });
const v6 = (address: string): LookupAddress => ({ address, family: 6 });

/** Addresses of this machine at which nothing listens. */
const loopback4 = (count: number) =>
  Array.from({ length: count }, (_, n) => v4(`127.1.${Math.floor(n / 250)}.${(n % 250) + 1}`));
const loopback6 = (count: number) => Array.from({ length: count }, (_, n) => v6(`::${n + 2}`));

/** Servers on two loopback addresses with the same port. `seenBy` lists the address of each connection. */
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
  resolutions.clear();
});

/** Connects and returns the address that was reached, or the code of the error. */
function connect(host: string, { allowed = [] as string[], protocol = "http:" } = {}): Promise<string> {
  const agent = guardedAgents(parseCidrs(allowed), resolve, {})[protocol] as http.Agent;
  return new Promise((resolve) => {
    const request = http.request({ agent, protocol, host: host.replace(/^\[|\]$/g, ""), port });
    request.once("socket", (socket) => {
      // The server closes the connection after adding it to `seenBy`.
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
  // receiver-address.test.ts has all of them.
  test.each(["127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "[fd00:ec2::254]"])(
    "%s is blocked over https and http",
    async (hostname) => {
      expect(await connect(hostname, { protocol: "https:" })).toBe("ADDRESS_BLOCKED");
      expect(await connect(hostname)).toBe("ADDRESS_BLOCKED");
      expect(seenBy).toEqual([]);
      expect(lookups).toEqual([]);
    },
  );

  test.each(["93.184.215.14", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]"])(
    "%s, a public address, is blocked over http",
    async (hostname) => {
      expect(await connect(hostname)).toBe("ADDRESS_BLOCKED");
      expect(await connect(hostname, { allowed: ["127.0.0.0/8"] })).toBe("ADDRESS_BLOCKED");
    },
  );

  test("is reached when the operator allowed it, and others stay blocked", async () => {
    expect(await connect("127.0.0.1", { allowed: ["127.0.0.1/32"] })).toBe("127.0.0.1");
    expect(await connect("127.0.0.2", { allowed: ["127.0.0.1/32"] })).toBe("ADDRESS_BLOCKED");
    expect(await connect("[::ffff:127.0.0.2]", { allowed: ["127.0.0.1/32"] })).toBe("ADDRESS_BLOCKED");
    expect(seenBy).toEqual(["127.0.0.1"]);
  });
});

describe("a name", () => {
  test("that resolves to loopback is blocked", async () => {
    expect(await connect("localhost")).toBe("ADDRESS_BLOCKED");
    expect(await connect("localhost", { protocol: "https:" })).toBe("ADDRESS_BLOCKED");
    expect(seenBy).toEqual([]);
  });

  test("that resolves to an allowed address is reached", async () => {
    resolutions.set("hooks.example.com", [[v4("127.0.0.1")]]);
    expect(await connect("hooks.example.com", { allowed: ["127.0.0.0/8"] })).toBe("127.0.0.1");
    expect(seenBy).toEqual(["127.0.0.1"]);
  });

  test.each<[string, LookupAddress[]]>([
    ["a private address", [v4("10.0.0.1")]],
    ["the metadata service", [v4("169.254.169.254")]],
    ["loopback in IPv6", [v6("::1")]],
    ["a v4-mapped loopback address", [v6("::ffff:127.0.0.1")]],
    ["a public address first and a private one after it", [v4("93.184.215.14"), v4("127.0.0.1")]],
    ["a private address first and a public one after it", [v4("127.0.0.1"), v4("93.184.215.14")]],
    ["a public IPv4 address and a private one in IPv6", [v4("93.184.215.14"), v6("fd00::1")]],
  ])("that resolves to %s is blocked", async (_, addresses) => {
    resolutions.set("hooks.example.com", [addresses]);
    expect(await connect("hooks.example.com", { protocol: "https:" })).toBe("ADDRESS_BLOCKED");
    expect(seenBy).toEqual([]);
  });

  test("that resolves to a public address is blocked over http", async () => {
    resolutions.set("hooks.example.com", [[v4("93.184.215.14")]]);
    expect(await connect("hooks.example.com", { allowed: ["127.0.0.0/8"] })).toBe("ADDRESS_BLOCKED");
  });

  test("without an address fails with an error of the lookup", async () => {
    resolutions.set("hooks.example.com", [[]]);
    expect(await connect("hooks.example.com")).toBe("ENODATA");
    expect(await connect("no-such-host.invalid")).toBe("ENOTFOUND");
  });

  test("is looked up once per connection, so that DNS rebinding is not possible", async () => {
    const allowed = ["127.0.0.2/32"];
    resolutions.set("rebinding.example.com", [[v4("127.0.0.2")], [v4("127.0.0.1")]]);
    expect(await connect("rebinding.example.com", { allowed })).toBe("127.0.0.2");
    expect(lookups).toEqual(["rebinding.example.com"]);
    expect(seenBy).toEqual(["127.0.0.2"]);
    // The next connection looks up and checks the name again.
    expect(await connect("rebinding.example.com", { allowed })).toBe("ADDRESS_BLOCKED");
    expect(seenBy).toEqual(["127.0.0.2"]);
  });

  test.each<[string, LookupAddress[], string]>([
    ["the second address", [v4("127.0.0.3"), v4("127.0.0.1")], "127.0.0.1"],
    ["no third address of a family", [v4("127.0.0.3"), v4("127.0.0.4"), v4("127.0.0.1")], "ECONNREFUSED"],
    ["the other family, after many of one", [...loopback6(9), v4("127.0.0.1")], "127.0.0.1"],
    ["none of 250", [...loopback4(249), v4("127.0.0.1")], "ECONNREFUSED"],
    ["none, if the last of 500 is blocked", [...loopback4(499), v4("10.0.0.1")], "ADDRESS_BLOCKED"],
    ["none of 501", [v4("127.0.0.1"), ...loopback4(500)], "EBADRESP"],
  ])("with several addresses is connected to %s", async (_, addresses, expected) => {
    resolutions.set("many.example.com", [addresses]);
    expect(await connect("many.example.com", { allowed: ["127.0.0.0/8", "::/96"] })).toBe(expected);
  });

  // Resolvers accept these as addresses; node:net does not, so they are looked up like a name.
  test.each(["2130706433", "0x7f.1", "0177.0.0.1", "127.1"])(
    "that resolvers accept as an address, %s, is blocked",
    async (name) => {
      expect(await connect(name, { protocol: "https:" })).toMatch(/^(ADDRESS_BLOCKED|ENOTFOUND)$/);
      expect(seenBy).toEqual([]);
    },
  );
});
