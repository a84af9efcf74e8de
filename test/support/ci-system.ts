import { randomInt } from "node:crypto";
import { type DemoIssuer, type IssuerAlgorithm, startDemoIssuer } from "../../bin/demo/demo-issuer.ts";
import { closeAfterFile } from "./cleanup.ts";

/** A CI system on this machine, which the services of this file accept. */
export interface CiSystem {
  name: string;
  issuer: DemoIssuer;
  /** Signs the token of a job, by default of the repository on its main branch. */
  token(claims?: object, header?: object): string;
  /** Numeric id of the repository of this system that the tests trust. */
  repositoryId: string;
  /** A body that trusts this repository with all permissions, whatever the ref. */
  trust: { issuer: string; repository_id: string; permissions: string[] };
}

export const AUDIENCE = "deployments";

interface Options {
  algorithm?: IssuerAlgorithm;
  claims?: "github" | "gitlab";
}

/** Starts a CI system and adds it to OIDC_ISSUERS. Call it before the service is used. */
export async function startCiSystem(name: string, { algorithm, claims = "github" }: Options = {}): Promise<CiSystem> {
  const issuer = await startDemoIssuer(algorithm);
  closeAfterFile(async () => issuer.stop());
  const others = JSON.parse(process.env.OIDC_ISSUERS ?? '[{"name":"github","audience":"deployments"}]');
  const entry = { name, issuer: issuer.url, jwks_uri: issuer.jwksUri, audience: AUDIENCE, claims };
  process.env.OIDC_ISSUERS = JSON.stringify([...others, entry]);
  const repositoryId = String(randomInt(1, 2 ** 40));
  const facts =
    claims === "github"
      ? { repository_id: repositoryId, repository: "acme/shop", ref: "refs/heads/main", run_id: "30433642" }
      : { project_id: repositoryId, project_path: "acme/shop", ref_path: "refs/heads/main", pipeline_id: "455" };
  return {
    name,
    issuer,
    token: (more = {}, header = {}) => issuer.sign({ aud: AUDIENCE, sub: "repo:acme/shop", ...facts, ...more }, header),
    repositoryId,
    trust: {
      issuer: name,
      repository_id: repositoryId,
      permissions: ["projects:read", "webhooks:read", "webhooks:write", "deliveries:read", "deliveries:write"],
    },
  };
}

/** Starts a CI system before the tests of the file. Call it before `useService`. */
export function useCiSystem(name: string, options?: Options): CiSystem {
  const ci = {} as CiSystem;
  beforeAll(async () => void Object.assign(ci, await startCiSystem(name, options)));
  return ci;
}
