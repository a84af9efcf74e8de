import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { jest } from "@jest/globals";
import { httpbis } from "http-message-signatures";
import { verify as verifyBotRequest } from "web-bot-auth";
import { verifierFromJWK } from "web-bot-auth/crypto";
import { type PublicJwk, projectKey } from "../../functions/webhooks/receiver/project-key.ts";
import { signatureHeaders } from "../../functions/webhooks/receiver/signature.ts";
import { fakeDate } from "../support/fake-date.ts";

/* The vectors of HTTP Message Signatures, judged by libraries of others. */

interface HttpVector {
  name: string;
  /** As the receiver sees it. */
  url: string;
  headers: Record<string, string>;
  body: string;
  now: number;
  valid: boolean;
  /** `digest`: the signature is valid, and the body is not the one that was signed. */
  error?: "signature" | "digest" | "unknown_key" | "expired";
}
interface VectorProject {
  project_id: string;
  directory: string;
  jwk: PublicJwk;
}

const path = join(import.meta.dirname, "../../docs/receivers/http-signature-vectors.json");
const file: { stage_secret: string; projects: [VectorProject, VectorProject]; vectors: [HttpVector, ...HttpVector[]] } =
  JSON.parse(readFileSync(path, "utf8"));
const { stage_secret, projects, vectors } = file;
const [{ project_id, directory, jwk }] = projects;

/** Libraries leave the comparison with the body to the receiver. */
const isSigned = ({ valid, error }: HttpVector) => valid || error === "digest";
function clockAt({ now }: HttpVector): void {
  fakeDate();
  jest.setSystemTime(now * 1_000);
}
const lowerCase = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

test("the service derives these keys, and signs as the first vector says", () => {
  for (const project of projects) expect(projectKey(stage_secret, project.project_id).jwk).toEqual(project.jwk);
  const [{ headers, url, body, now }] = vectors;
  const signed = { deliveryId: headers["webhook-id"] ?? "", at: new Date(now * 1_000), body };
  const signing = { schemes: ["http"] as const, key: projectKey(stage_secret, project_id), url, directory };
  expect(signatureHeaders(signed, "whsec_unused", [], signing)).toEqual(headers);
});

test.each(vectors)("http-message-signatures agrees: $name", async (vector) => {
  clockAt(vector);
  const key = createPublicKey({ key: { ...jwk }, format: "jwk" });
  const keyLookup = async ({ keyid }: { keyid?: string }) =>
    keyid === jwk.kid
      ? {
          id: keyid,
          algs: ["ed25519"],
          verify: async (data: Buffer, signature: Buffer) => verify(null, data, key, signature),
        }
      : null;
  const config = { keyLookup, notAfter: new Date(vector.now * 1_000), requiredParams: ["created", "expires", "keyid"] };
  const request = { method: "POST", url: vector.url, headers: lowerCase(vector.headers) };
  const result = await httpbis.verifyMessage(config as never, request).catch(() => false);
  expect(result === true).toBe(isSigned(vector));
});

test.each(vectors)("web-bot-auth agrees: $name", async (vector) => {
  clockAt(vector);
  const keyId = /keyid="([^"]+)"/.exec(vector.headers["Signature-Input"] ?? "")?.[1];
  const request = new Request(vector.url, { method: "POST", headers: vector.headers });
  const accepted = await verifyBotRequest(request, (await verifierFromJWK(jwk as never)) as never).then(
    () => true,
    () => false,
  );
  // It verifies with the key that it was given, whatever the id.
  expect(accepted && keyId === jwk.kid).toBe(isSigned(vector));
});

test("only the vectors whose digest is wrong have another body than their digest says", () => {
  for (const { name, headers, body, error } of vectors) {
    const digest = `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
    expect([name, headers["Content-Digest"] === digest]).toEqual([name, error !== "digest"]);
  }
});
