import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { measureDuplicates } from "../../bench/duplicates.ts";
import type { Service } from "../../bench/local-service.ts";
import { documentedNames, type Figures, promises, withFigures } from "../../bench/promises.ts";
import { resultOf, untilExpired, useAndEnd } from "../../bench/revocation.ts";

const document = readFileSync(join(import.meta.dirname, "../../docs/promises.md"), "utf8");

test("docs/promises.md has a row and a sentence for every promise, and no others", () => {
  const names = promises.map(({ name }) => name);
  expect(documentedNames(document)).toEqual(names);
  const explained = [...document.matchAll(/^- .*?\(((?:`[\w-]+`(?:, )?)+)\)/gm)].flatMap(([, list = ""]) =>
    [...list.matchAll(/`([\w-]+)`/g)].map(([, name]) => name),
  );
  expect(explained.toSorted()).toEqual(names.toSorted());
});

test("writing figures replaces the rows that were measured and keeps the others", () => {
  const figures: Figures = new Map([
    ["nothing-lost", { name: "nothing-lost", value: 0, bound: 0, of: "of 60 events" }],
    ["fresh-clone", { name: "fresh-clone", value: 130.4, bound: 120, unit: "s" }],
  ]);
  const written = withFigures(document, figures, "2026-12-01");
  expect(written).toContain("| `nothing-lost` | 0 of 60 events | ≤ 0 | ok | 2026-12-01 |");
  expect(written).toContain("| `fresh-clone` | 130 s | ≤ 120 s | **MISS** | 2026-12-01 |");
  expect(documentedNames(written)).toEqual(documentedNames(document));
  expect(withFigures(written, new Map(), "2026-12-02")).toBe(written);
  expect(() => withFigures("nothing", new Map(), "")).toThrow("no block of figures");
});

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
  [150, true],
])("a key that is accepted for %p ms after its expires_at has accepted requests: %p", async (graceMs, hasAccepted) => {
  const expiresAt = Date.now() + 300;
  const server = http.createServer((_, response) => {
    response.writeHead(Date.now() < expiresAt + graceMs ? 200 : 401).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const service = { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } as Service;
  const key = { id: "id", key: "key", expires_at: new Date(expiresAt).toISOString() };
  const count = { ...counts, acceptedBefore: 0, rejectedAfter: 0 };
  await useAndEnd(service, key, { parallel: 2, useMs: 200, keys: 1, forMs: 0 }, untilExpired, count);
  server.closeAllConnections();
  server.close();
  expect(count.acceptedBefore).toBeGreaterThan(0);
  expect(count.rejectedAfter).toBeGreaterThan(0);
  expect(count.acceptedAfter > 0).toBe(hasAccepted);
});

test("an event that is published three times has one request", async () => {
  const { targets } = await measureDuplicates({ perSecond: 10, seconds: 0.5, settleMs: 0 });
  expect(targets).toMatchObject([{ name: "requests for a repeated event", value: 1, bound: 1 }]);
});
