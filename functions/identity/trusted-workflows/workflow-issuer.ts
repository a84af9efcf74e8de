import {
  type CiSystem,
  ciSystems,
  claimStyleOf,
  issuerUrlOf,
  workflowIssuerList,
} from "../../foundation/manifest/ci-systems.ts";
import { parse } from "../../foundation/schema/input.ts";

/** An issuer of tokens for the workflows of a CI system. */
export interface WorkflowIssuer {
  /** What a trusted workflow calls it. */
  name: string;
  /** The claim `iss` of its tokens. */
  issuer: string;
  /** Address of its public keys. */
  jwksUri: string;
  /** The claim `aud` of the tokens for this service. */
  audience: string;
  /** The CI system whose names for claims it uses. */
  claims: CiSystem;
}

/**
 * Reads the entries `{name, issuer, jwks_uri, audience, claims}` of the setting OIDC_ISSUERS. The names `github` and `gitlab`
 * stand for the public instances and need only an audience. Another issuer needs its `issuer`, and by default names its claims
 * as GitHub does.
 * @param allowsLoopback accepts plain http to this machine, for a local run
 * @throws ApiError `validation_error` that names the entry and the field
 */
export const parseWorkflowIssuers = (entries: unknown, allowsLoopback: boolean): WorkflowIssuer[] =>
  parse(workflowIssuerList("jwks_uri", allowsLoopback), entries).map((entry) => {
    const { name, audience, jwks_uri } = entry;
    // The schema rejects an entry without one.
    const issuer = String(issuerUrlOf(entry));
    const claims = claimStyleOf(entry);
    return {
      name,
      issuer,
      jwksUri: jwks_uri ?? issuer.replace(/\/$/, "") + ciSystems[claims].jwksPath,
      audience,
      claims,
    };
  });
