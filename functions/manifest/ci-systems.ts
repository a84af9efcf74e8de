/**
 * A CI system that issues a token for each job. Data only.
 */
export interface CiSystemRow {
  /** The claim `iss` on the public instance. */
  issuer: string;
  /** Where every instance publishes its keys, after its issuer. */
  jwksPath: `/${string}`;
}

/**
 * GitHub: https://docs.github.com/en/actions/reference/security/oidc
 * GitLab: https://docs.gitlab.com/ci/secrets/id_token_authentication/
 */
export const ciSystems = {
  github: { issuer: "https://token.actions.githubusercontent.com", jwksPath: "/.well-known/jwks" },
  gitlab: { issuer: "https://gitlab.com", jwksPath: "/oauth/discovery/keys" },
} as const satisfies Record<string, CiSystemRow>;

export type CiSystem = keyof typeof ciSystems;
