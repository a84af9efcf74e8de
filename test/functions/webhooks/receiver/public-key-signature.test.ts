import { execFileSync } from "node:child_process";
import { createHash, createPublicKey, type JsonWebKey, randomBytes, randomUUID, verify } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ed25519 from "@noble/ed25519";
import { httpbis } from "http-message-signatures";
import { calculateJwkThumbprint, importJWK } from "jose";
import { verify as verifyBotRequest } from "web-bot-auth";
import { verifierFromJWK } from "web-bot-auth/crypto";
import { certify } from "../../../../functions/deliveries/certification/certify.ts";
import { deliveryHeaders } from "../../../../functions/webhooks/receiver/delivery-headers.ts";
import { projectKey } from "../../../../functions/webhooks/receiver/project-key.ts";
import { signatureHeaders } from "../../../../functions/webhooks/receiver/signature.ts";
import type { Signing } from "../../../../functions/webhooks/receiver/signing.ts";
import * as webhooks from "../../../../functions/webhooks/webhook/webhook-store.ts";
import { carry } from "../../../support/attempts.ts";
import { newDelivery, rowOf, takeDeliveryMessages } from "../../../support/deliveries.ts";
import { needs } from "../../../support/optional-program.ts";
import { useReceiver } from "../../../support/receiver.ts";
import { errorOf, invalidFieldsOf, useScenario } from "../../../support/scenario.ts";
import { useService } from "../../../support/service.ts";

/* Signatures that a receiver verifies with a public key. The judges are libraries and programs of others. */

const secret = randomBytes(32).toString("hex");
process.env.SIGNATURE_SECRET = secret;
process.env.API_ADDRESS = "https://api.example.com/prod";
const service = useService();
const receiver = useReceiver("test");
const scenario = useScenario(service, () => ({ url: `${receiver.url}/hook?team=a%20b&x=[1]` }));
afterEach(takeDeliveryMessages);

const directoryOf = (projectId: string) => `/.well-known/http-message-signatures-directory?project_id=${projectId}`;
const directory = async (projectId = scenario.projectId) => fetch(service.baseUrl + directoryOf(projectId));
const keysOf = async (projectId?: string): Promise<JsonWebKey[]> =>
  ((await (await directory(projectId)).json()) as { keys: JsonWebKey[] }).keys;
const patch = (body: object) => scenario.api.patch(scenario.path, body);

/** Sends a delivery with these signatures. */
async function sent(signatures: string[]) {
  expect((await patch({ signatures })).status).toBe(200);
  const delivery = newDelivery(await webhooks.get(scenario.projectId, scenario.webhook.id));
  await carry(delivery);
  const request = receiver.received.at(-1);
  if (!request) throw new Error("nothing was sent");
  const headers = request.headers as Record<string, string>;
  return { delivery, body: request.body, headers, url: `http://${headers.host}${request.path}` };
}

const v1a = (headers: Record<string, string>): string[] =>
  (headers["webhook-signature"] ?? "").split(" ").flatMap((each) => (each.startsWith("v1a,") ? each.slice(4) : []));
const signedText = ({ headers, body }: { headers: Record<string, string>; body: string }) =>
  `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;

/** Verifies with the library http-message-signatures. @param url of the request as the receiver sees it */
async function isHttpSigned(headers: Record<string, string>, url: string, [jwk = {}]: JsonWebKey[]): Promise<boolean> {
  const key = createPublicKey({ key: jwk, format: "jwk" });
  const keyLookup = async ({ keyid }: { keyid?: string }) =>
    keyid === jwk.kid
      ? {
          id: keyid,
          algs: ["ed25519"],
          verify: async (data: Buffer, signature: Buffer) => verify(null, data, key, signature),
        }
      : null;
  const request = { method: "POST", url, headers: { ...headers, host: new URL(url).host } };
  const result = await httpbis.verifyMessage({ keyLookup } as never, request);
  return result === true;
}

test("v1a is accepted by two implementations of Ed25519, and no other project's key accepts it", async () => {
  const request = await sent(["hmac", "ed25519"]);
  expect(request.headers["webhook-signature"]).toMatch(/^v1,\S{44} v1a,\S{88}$/);
  expect(request.headers).toHaveProperty("x-service-signature");
  expect(request.headers).not.toHaveProperty("signature");
  const [signature = ""] = v1a(request.headers);
  const isAccepted = ({ x = "" }: JsonWebKey) =>
    ed25519.verifyAsync(
      Buffer.from(signature, "base64"),
      Buffer.from(signedText(request)),
      Buffer.from(x, "base64url"),
    );
  const [[own = {}], [other = {}]] = [await keysOf(), await keysOf(randomUUID())];
  expect([await isAccepted(own), await isAccepted(other)]).toEqual([true, false]);
  const key = createPublicKey({ key: own, format: "jwk" });
  expect(verify(null, Buffer.from(`${signedText(request)} `), key, Buffer.from(signature, "base64"))).toBe(false);
});

needs("openssl").test("openssl accepts v1a", async () => {
  const request = await sent(["ed25519"]);
  expect(request.headers).not.toHaveProperty("x-service-signature");
  const folder = mkdtempSync(join(tmpdir(), "v1a-"));
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const [jwk = {}] = await keysOf();
  const pem = file("key.pem", createPublicKey({ key: jwk, format: "jwk" }).export({ type: "spki", format: "pem" }));
  const signature = file("signature", Buffer.from(v1a(request.headers)[0] ?? "", "base64"));
  const args = ["pkeyutl", "-verify", "-pubin", "-inkey", pem, "-rawin", "-sigfile", signature, "-in"];
  expect(String(execFileSync("openssl", [...args, file("text", signedText(request))]))).toContain("Successfully");
});

test("the HTTP signature is accepted by two libraries, for this URL, method and body only", async () => {
  const { headers, body, url } = await sent(["http"]);
  expect(Object.keys(headers)).toEqual(expect.arrayContaining(["signature", "signature-input", "signature-agent"]));
  expect(headers).not.toHaveProperty("webhook-signature");
  expect(headers["signature-agent"]).toBe(
    `sig1="https://api.example.com/prod${directoryOf(scenario.projectId)}";type=jwks_uri`,
  );
  expect(headers["content-digest"]).toBe(`sha-256=:${createHash("sha256").update(body).digest("base64")}:`);
  const keys = await keysOf();
  expect(await isHttpSigned(headers, url, keys)).toBe(true);
  const [jwk = {}] = keys;
  const request = new Request(url, { method: "POST", headers, body });
  await verifyBotRequest(request, (await verifierFromJWK(jwk as never)) as never);
  // A replay to another receiver, another path, or with another id.
  for (const replay of [
    url.replace(/127\.0\.0\.1|localhost/, "evil.example"),
    `${url}&more=1`,
    url.replace("/hook", "/other"),
  ]) {
    expect(await isHttpSigned(headers, replay, keys)).toBe(false);
  }
  expect(await isHttpSigned({ ...headers, "webhook-id": randomUUID() }, url, keys)).toBe(false);
  expect(await isHttpSigned({ ...headers, "content-digest": "sha-256=:AA==:" }, url, keys)).toBe(false);
  expect(await isHttpSigned(headers, url, await keysOf(randomUUID()))).toBe(false);
});

test.each([
  ["a lone question mark, which is not sent", "?"],
  ["an empty query before a name", "?&a"],
])("the HTTP signature covers the URL as the receiver sees it: %s", async (_, end) => {
  await patch({ url: `${receiver.url}/hook${end}` });
  const { headers, url } = await sent(["http"]);
  expect(await isHttpSigned(headers, url, await keysOf())).toBe(true);
});

test("without hmac, a delivery has no header of an earlier service, which is an HMAC with the secret", () => {
  const legacy = { name: "X-Acme-Signature", until: "2099-01-01" };
  const request = { id: randomUUID(), event: "deploy.failed", body: "{}", sequence: "1" };
  const namesWith = (schemes: Signing["schemes"]) =>
    Object.keys(
      deliveryHeaders(request, ["whsec_1"], new Date(), {
        legacy,
        signing: { ...signing("https://example.com"), schemes },
      }),
    );
  expect(namesWith(["hmac", "http"])).toContain("X-Acme-Signature");
  for (const schemes of [["http"], ["ed25519"]] as const) expect(namesWith(schemes)).not.toContain("X-Acme-Signature");
});

const signing = (url: string): Signing => ({
  schemes: ["http"],
  key: projectKey(secret, scenario.projectId),
  url,
  directory: "https://api.example.com/keys",
});

test.each([
  "https://example.com",
  "https://example.com:8443/a",
  "https://xn--bcher-kva.example/%C3%BC?a=%2F&b=+",
  "https://[2606:4700::1111]/x",
  "https://example.com/a//b/?",
  "https://example.com/?q",
])("a library sees %s as it is signed", async (url) => {
  const signed = { deliveryId: randomUUID(), at: new Date(), body: "" };
  const headers = Object.fromEntries(
    Object.entries(signatureHeaders(signed, "", [], signing(url))).map(([name, value]) => [name.toLowerCase(), value]),
  );
  // A request has a path at least, and no lone question mark.
  const { origin, pathname, search } = new URL(url);
  expect(
    await isHttpSigned(headers, `${origin}${pathname}${search}`, [{ ...projectKey(secret, scenario.projectId).jwk }]),
  ).toBe(true);
});

test("the directory is a set of keys that a library reads, of any project, without saying whether it exists", async () => {
  const response = await directory();
  expect(response.headers.get("content-type")).toBe("application/http-message-signatures-directory+json");
  expect(response.headers.get("cache-control")).toBe("public, max-age=3600");
  const [jwk = {}] = await keysOf();
  expect(jwk.kid).toBe(await calculateJwkThumbprint(jwk as never));
  await importJWK(jwk as never, "EdDSA");
  expect(JSON.stringify(await keysOf())).not.toContain('"d"');
  expect(await keysOf(randomUUID())).toHaveLength(1);
  for (const query of ["", "?project_id=7", "?project_id="]) {
    const missing = await fetch(`${service.baseUrl}/.well-known/http-message-signatures-directory${query}`);
    expect([missing.status, ((await missing.json()) as { error: { code: string } }).error.code]).toEqual([
      404,
      "not_found",
    ]);
  }
  expect((await fetch(service.baseUrl + directoryOf(scenario.projectId), { method: "POST" })).status).toBe(405);
});

test("a pair follows from secret and project alone", () => {
  const one = projectKey("a".repeat(64), "01930000-0000-7000-8000-00000000d301");
  expect(one.jwk.x).toBe("UPUWr99SAqXk52enwj2yomjMWKf13OdJbj4V4lWdoNw");
  const others = [
    projectKey("b".repeat(64), "01930000-0000-7000-8000-00000000d301"),
    projectKey("a".repeat(64), randomUUID()),
  ];
  expect(new Set([one, ...others].map(({ jwk }) => jwk.x)).size).toBe(3);
});

test("a certification sends valid and forged signatures of these kinds", async () => {
  await patch({ signatures: ["http"] });
  const keys = await keysOf();
  const answers: boolean[] = [];
  const keyIds = new Set<string | undefined>();
  receiver.respondWith(async (request, response) => {
    const headers = request.headers as Record<string, string>;
    const { body } = receiver.received.at(-1) ?? { body: "" };
    const url = `http://${headers.host}${request.path}`;
    const created = Number(/created=(\d+)/.exec(headers["signature-input"] ?? "")?.[1]);
    const digest = `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
    const isFresh = Math.abs(Date.now() / 1000 - created) < 300;
    // The library throws for a signature that has expired.
    const isSigned = isFresh && headers["content-digest"] === digest && (await isHttpSigned(headers, url, keys));
    keyIds.add(/keyid="([^"]+)"/.exec(headers["signature-input"] ?? "")?.[1]);
    answers.push(isSigned);
    response.writeHead(isSigned ? 204 : 401).end();
  });
  expect((await scenario.api.post(`${scenario.path}/certify`, {})).status).toBe(202);
  const [call] = await takeDeliveryMessages();
  await certify(call as never, () => 60_000);
  expect(answers.toSorted()).toEqual([false, false, false, true, true, true]);
  // The forged one names the right key: a receiver that compares names alone would accept it.
  expect(keyIds).toEqual(new Set([keys[0]?.kid]));
  expect((await scenario.api.get(scenario.path)).body.data.last_certification).toMatchObject({ passed: true });
});

test("a response that has the signature is masked in the log", async () => {
  receiver.respondWith((request, response) =>
    response.writeHead(500).end(`${request.headers["webhook-signature"]} ${request.headers.signature}`),
  );
  const { delivery, headers } = await sent(["hmac", "ed25519", "http"]);
  const row = JSON.stringify(await rowOf(delivery));
  for (const value of [v1a(headers)[0], headers.signature?.slice(6, -1)])
    expect(row).not.toContain(value?.slice(0, 40));
});

test.each<[unknown, string]>([
  [[], "must name at least one"],
  [["rsa"], "must be one of hmac, ed25519, http"],
  ["hmac", "must be an array"],
  [null, "must be an array"],
])("signatures %j are rejected", async (signatures, rule) => {
  const response = await patch({ signatures });
  expect(errorOf(response)).toEqual({ status: 400, code: "validation_error" });
  expect([invalidFieldsOf(response)[0]?.split(".")[0], JSON.stringify(response.body.error.details)]).toEqual([
    "signatures",
    expect.stringContaining(rule),
  ]);
});

test("a webhook with the usual signatures has no field, and its requests none of the new headers", async () => {
  const { headers } = await sent(["hmac"]);
  expect((await scenario.api.get(scenario.path)).body.data).not.toHaveProperty("signatures");
  expect(headers["webhook-signature"]).toMatch(/^v1,\S{44}$/);
  expect(Object.keys(headers).filter((name) => /^signature|digest/.test(name))).toEqual([]);
});
