import { parseCidrs } from "../../../../functions/webhooks/receiver/receiver-address.ts";
import { createReceiverClient } from "../../../../functions/webhooks/receiver/receiver-client.ts";
import { startReceiver } from "../../../support/receiver.ts";

/* The headers of a response that are kept, over a real connection. */

const receiver = await startReceiver();
const client = createReceiverClient(parseCidrs(["127.0.0.0/8"]));
afterAll(() => Promise.all([client.close(), receiver.close()]));

async function headersKept(headers: [string, string][], status = 500) {
  receiver.respondWith((_, response) => response.writeHead(status, headers.flat()).end());
  return (await client.post(receiver.url, {}, "{}")).headers;
}

const many = (count: number, value = "v") =>
  Array.from({ length: count }, (_, n): [string, string] => [`x-${n}`, value]);

test("the headers of a failure are kept, with names in lower case and a repeated one joined", async () => {
  const sent: [string, string][] = [
    ["Server", "nginx"],
    ["X-Request-Id", "01a2036b-8c4c-7000-8000-000000000001"],
    ["Via", "1.1 a"],
    ["Via", "1.1 b"],
    ["X-Reason", "g\u00c3\u00bcltig\u00c2\u0085"],
  ];
  const kept = { server: "nginx", "x-request-id": sent[1]?.[1], via: "1.1 a, 1.1 b", "x-reason": "gültig" };
  expect(await headersKept(sent)).toEqual(kept);
});

test("those of a success are not kept", async () => {
  expect(await headersKept([["Server", "nginx"]], 200)).toBeUndefined();
});

test("at most ten are kept, the first ones", async () => {
  expect(Object.keys((await headersKept(many(12))) ?? {})).toEqual(many(10).map(([name]) => name));
});

test("a value is cut at 200 bytes, and all together have at most 512", async () => {
  const long = many(2, "v ".repeat(300));
  const fits = `${"v ".repeat(52)}v`;
  const cut = Object.fromEntries(long.map(([name, value]) => [name, value.slice(0, 200)]));
  expect(await headersKept([...long, ["y", fits]])).toEqual({ ...cut, y: fits });
  expect(await headersKept([...long, ["y", `${fits}v`]])).toEqual(cut);
});

const random = "5f2b8c1d9e4a7f3062b1c8d4e9f7a5035f2b8c1d";

test.each([
  ["Set-Cookie", "id=1"],
  ["X-Set-Cookie", "id=1"],
  ["Authorization", "x"],
  ["Proxy-Authenticate", "x"],
  ["X-Auth-User", "x"],
  ["X-Api-Key", "x"],
  ["X-CSRF", "x"],
  ["X-Session", "x"],
  ["X-Access-Token", "x"],
  ["X-Service-Signature", "x"],
  ["X-Echo", `svc_${random}`],
  ["X-Echo", "sk_live_5f2b8c1d9e4a7f30"],
  ["X-Echo", random],
  ["X-Echo", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.c2ln"],
  ["X-Echo", "Bearer abcdefgh"],
  ["X-Echo", "basic dXNlcjpwYXNz"],
  ["X-Echo", "a=1; access_token=x"],
  ["X-Echo", '{"password": "x"}'],
  ["Location", "https://example.com/?code=x"],
  ["Location", "https://user:pass@example.com/"],
  ["X-Echo", `${"v ".repeat(600)}token=x`],
  ["Date", "Sun, 22 Nov 2026 20:00:00 GMT"],
  ["Keep-Alive", "timeout=5"],
])("%s: %s is not kept", async (name, value) => {
  expect(await headersKept([[name, value]])).toBeUndefined();
});

test.each([
  ["WWW-Authenticate", 'Bearer realm="api", error="invalid_token"'],
  ["X-Error", "the signature is not valid"],
  ["Location", "https://example.com/login?next=1"],
  ["CF-Ray", "8e5f1c2d3b4a5967-FRA"],
])("%s: %s is kept", async (name, value) => {
  expect(await headersKept([[name, value]], 401)).toMatchObject({ [name.toLowerCase()]: value });
});
