import type { LookupAddress } from "node:dns";
import { parseCidrs } from "../../../../functions/webhooks/receiver/receiver-address.ts";
import { createReceiverClient, DEFAULT_LIMITS } from "../../../../functions/webhooks/receiver/receiver-client.ts";
import { resolveHost } from "../../../../functions/webhooks/receiver/resolver.ts";
import { startBusyListener } from "../../../support/busy-listener.ts";
import { startDnsServer } from "../../../support/dns-server.ts";
import { startReceiver } from "../../../support/receiver.ts";

/* Slow connections, and names that never resolve. */

const allowed = parseCidrs(["127.0.0.0/8", "::1/128"]);

/** Posts once to a name with these addresses. */
async function post(port: number, addresses: LookupAddress[], deadlineMs = DEFAULT_LIMITS.deadlineMs) {
  const client = createReceiverClient(allowed, { ...DEFAULT_LIMITS, deadlineMs }, async () => addresses);
  try {
    return await client.post(`http://hooks.example.com:${port}/`, {}, "{}");
  } finally {
    await client.close();
  }
}

const v4: LookupAddress = { address: "127.0.0.1", family: 4 };
/** Nothing listens there. */
const v6: LookupAddress = { address: "::1", family: 6 };

test("a receiver with two addresses whose TCP handshake takes a second is reached", async () => {
  const listener = await startBusyListener(600);
  try {
    const outcome = await post(listener.port, [v4, v6]);
    expect(outcome).toMatchObject({ statusCode: 200, excerpt: "late" });
    expect(outcome.durationMs).toBeGreaterThan(500);
  } finally {
    await listener.close();
  }
});

test("a receiver that never completes the handshake is a timeout with the detail NOT_CONNECTED", async () => {
  const listener = await startBusyListener(60_000);
  try {
    const outcome = await post(listener.port, [v4], 400);
    expect(outcome).toMatchObject({ errorCode: "timeout", detail: "NOT_CONNECTED" });
    expect(outcome).not.toHaveProperty("statusCode");
  } finally {
    await listener.close();
  }
});

test("a receiver that accepts the connection and never responds is a timeout without a detail", async () => {
  const receiver = await startReceiver();
  receiver.respondWith(() => {});
  try {
    const outcome = await post(Number(new URL(receiver.url).port), [v4], 400);
    expect(outcome).toEqual({ durationMs: expect.any(Number), errorCode: "timeout" });
  } finally {
    await receiver.close();
  }
});

test("fifty names that never resolve fail as dns_error and delay no other receiver", async () => {
  const names = Array.from({ length: 50 }, (_, n) => `hanging${n}.example`);
  const dns = await startDnsServer({
    ...Object.fromEntries(names.map((name) => [name, { silent: true }])),
    "healthy.example": { A: ["127.0.0.1"] },
  });
  const receiver = await startReceiver();
  const client = createReceiverClient(allowed, DEFAULT_LIMITS, (name) =>
    resolveHost(name, { timeoutMs: 3_000, servers: [dns.address] }),
  );
  const port = new URL(receiver.url).port;
  try {
    let hasOneEnded = false;
    const hanging = names.map(async (name) => {
      const outcome = await client.post(`http://${name}:${port}/`, {}, "{}");
      hasOneEnded = true;
      return outcome;
    });
    for (let sent = 0; sent < 20; sent++) {
      expect(await client.post(`http://healthy.example:${port}/`, {}, "{}")).toMatchObject({ statusCode: 200 });
    }
    expect(hasOneEnded).toBe(false);
    for (const outcome of await Promise.all(hanging)) {
      expect(outcome).toMatchObject({ errorCode: "dns_error", detail: "ETIMEOUT" });
      expect(outcome.durationMs).toBeLessThan(DEFAULT_LIMITS.deadlineMs);
    }
  } finally {
    await client.close();
    await Promise.all([dns.close(), receiver.close()]);
  }
});
