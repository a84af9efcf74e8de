import { createHash, createPrivateKey, createPublicKey, hkdfSync, type KeyObject } from "node:crypto";

/*
 * The Ed25519 key pair of a project, derived from a secret of the stage and the project's id: nothing is stored, and
 * nothing is read for a delivery. The secret signs for all projects; one pair reveals no other.
 */

/** RFC 8037. */
export interface PublicJwk {
  kty: "OKP";
  crv: "Ed25519";
  /** The 32 bytes of the key in base64url. */
  x: string;
  /** RFC 7638, the `keyid` of signatures. */
  kid: string;
  use: "sig";
  /** The same key as Standard Webhooks writes it: `whpk_` and base64. */
  whpk: string;
}

export interface ProjectKey {
  privateKey: KeyObject;
  jwk: PublicJwk;
}

/** What is before the seed of an Ed25519 key in PKCS #8 (RFC 8410, section 7). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** @param secret any text of at least 32 random bytes */
export function projectKey(secret: string, projectId: string): ProjectKey {
  const seed = hkdfSync("sha256", secret, "", `webhook signatures of project ${projectId}`, 32);
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8, Buffer.from(seed)]), format: "der", type: "pkcs8" });
  const { x = "" } = createPublicKey(privateKey).export({ format: "jwk" });
  const kid = createHash("sha256")
    .update(JSON.stringify({ crv: "Ed25519", kty: "OKP", x }))
    .digest("base64url");
  const whpk = `whpk_${Buffer.from(x, "base64url").toString("base64")}`;
  return { privateKey, jwk: { kty: "OKP", crv: "Ed25519", x, kid, use: "sig", whpk } };
}
