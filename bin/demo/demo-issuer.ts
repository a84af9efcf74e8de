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

/** Claims of a job, named as GitHub names them. */
export const demoJob = {
  repository: "acme/shop",
  repository_id: "1296269",
  repository_owner_id: "9919",
  ref: "refs/heads/main",
  event_name: "push",
  run_id: "30",
};

interface Options {
  /** 0 = any free port. */
  port?: number;
  /** Beginning of the key's id. Another one for each start lets a service notice that the key is another one. */
  keyName?: string;
  /**
   * Credential with which a job may ask for its token, at `/token?audience=…`, as GitHub's jobs do. Other parameters replace
   * claims of the demo job. Absent = it gives out no tokens.
   * https://docs.github.com/en/actions/reference/security/oidc
   */
  requestToken?: string;
}

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

/** Starts an issuer on 127.0.0.1. @throws Error `EADDRINUSE` */
export async function startDemoIssuer(
  algorithm: IssuerAlgorithm = "RS256",
  { port = 0, keyName = "demo", requestToken }: Options = {},
): Promise<DemoIssuer> {
  const { publicKey, privateKey } = makePairs[algorithm]();
  const kid = `${keyName}-${algorithm}`;
  const server = http.createServer(({ url = "", headers }, response) => {
    const { pathname, searchParams } = new URL(url, issuer.url);
    const isJob = requestToken !== undefined && headers.authorization === `Bearer ${requestToken}`;
    const send = (status: number, body: object) =>
      response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    if (pathname === "/jwks") return send(200, issuer.jwks);
    if (pathname !== "/token") return send(404, {});
    if (!isJob) return send(401, {});
    const { audience: aud, iss, iat, exp, nbf, ...claims } = Object.fromEntries(searchParams);
    return send(200, { value: issuer.sign({ ...demoJob, aud, ...claims }) });
  });
  server.listen(port, "127.0.0.1");
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
