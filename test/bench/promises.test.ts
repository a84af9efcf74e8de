import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { measureDuplicates } from "../../bench/duplicates.ts";
import type { Service } from "../../bench/local-service.ts";
import { resultOf, untilExpired, useAndEnd } from "../../bench/revocation.ts";

const counts = { keys: 1, acceptedBefore: 5, rejectedAfter: 5, acceptedAfter: 0 };

test("keys that are rejected after their end have a target of 0", () => {
  expect(resultOf({ deleted: counts }, 5).targets).toEqual([
    { name: "accepted after: deleted", value: 0, bound: 0, of: "of 5 requests" },
  ]);
});

test.each([
  ["is accepted after its end", { acceptedAfter: 1 }],
  ["was never accepted", { acceptedBefore: 0 }],
  ["was not used after its end", { rejectedAfter: 0 }],
])("a key that %s is a wrong answer", (_, change) => {
  expect(() => resultOf({ deleted: { ...counts, ...change } }, 5)).toThrow("Keys were not rejected as promised");
});

test.each([
  [0, false],
  [3, true],
])("a key with which %p requests succeed after its end has accepted requests: %p", async (grace, hasAccepted) => {
  let left = Number.POSITIVE_INFINITY;
  const server = http.createServer((_, response) => response.writeHead(left-- > 0 ? 200 : 401).end());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const service = { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } as Service;
  const end = async () => {
    left = grace;
  };
  const count = { ...counts, acceptedBefore: 0, rejectedAfter: 0 };
  // Two requests at most are in flight at the end.
  await useAndEnd(service, { id: "id", key: "key" }, { parallel: 2, useMs: 20, keys: 1, forMs: 0 }, end, count);
  server.closeAllConnections();
  server.close();
  expect(count.acceptedBefore).toBeGreaterThan(0);
  expect(count.acceptedAfter + count.rejectedAfter).toBeGreaterThanOrEqual(2);
  expect(count.acceptedAfter > 0).toBe(hasAccepted);
});

test("a key has expired after its expires_at, not at it", async () => {
  const expiresAt = Date.now() + 20;
  await untilExpired({} as Service, { id: "id", key: "key", expires_at: new Date(expiresAt).toISOString() });
  expect(Date.now()).toBeGreaterThanOrEqual(expiresAt);
});

test("an event that is published three times has one request", async () => {
  const { targets } = await measureDuplicates({ perSecond: 10, seconds: 0.5, settleMs: 0 });
  expect(targets).toMatchObject([{ name: "requests for a repeated event", value: 1, bound: 1 }]);
});
