import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import jwt from "jsonwebtoken";

/* The issuer of a CI system on this machine: it publishes its keys, and signs the tokens of jobs. */

const makePairs = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
};
export type IssuerAlgorithm = keyof typeof makePairs;

const TOKEN_SECONDS = 300;

export interface DemoIssuer {
  /** The claim `iss`. */
  url: string;
  jwksUri: string;
  publicKey: KeyObject;
  /** The keys that it publishes. */
  jwks: { keys: object[] };
  /** Signs a token that is valid for five minutes, unless the claims say otherwise. */
  sign(claims: object, header?: object): string;
  stop(): void;
}

/** Starts an issuer on a free port of 127.0.0.1. */
export async function startDemoIssuer(algorithm: IssuerAlgorithm = "RS256"): Promise<DemoIssuer> {
  const { publicKey, privateKey } = makePairs[algorithm]();
  const kid = `demo-${algorithm}`;
  const server = http.createServer((request, response) => {
    response.writeHead(request.url === "/jwks" ? 200 : 404, { "Content-Type": "application/json" });
    response.end(JSON.stringify(request.url === "/jwks" ? issuer.jwks : {}));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer: DemoIssuer = {
    url,
    jwksUri: `${url}/jwks`,
    publicKey,
    jwks: { keys: [{ ...publicKey.export({ format: "jwk" }), kid, alg: algorithm, use: "sig" }] },
    sign(claims, header = {}) {
      const iat = Math.floor(Date.now() / 1000);
      const payload = { iss: url, iat, exp: iat + TOKEN_SECONDS, ...claims };
      return jwt.sign(payload, privateKey, { algorithm, header: { alg: algorithm, kid, ...header } });
    },
    stop: () => server.close().closeAllConnections(),
  };
  return issuer;
}
