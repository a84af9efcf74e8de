import * as z from "zod/mini";
import { isIssuerUrl, issuerIdentity } from "./sign-in-rules.ts";

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

const isCiSystem = (name: string): name is CiSystem => Object.hasOwn(ciSystems, name);

interface IssuerEntry {
  name: string;
  issuer?: string | undefined;
}

/** The claim `iss` of an entry; undefined = it has none. */
export const issuerUrlOf = ({ name, issuer }: IssuerEntry): string | undefined =>
  issuer ?? (isCiSystem(name) ? ciSystems[name].issuer : undefined);

/** How an entry names its claims. */
export const claimStyleOf = ({ name, claims }: IssuerEntry & { claims?: CiSystem | undefined }): CiSystem =>
  claims ?? (isCiSystem(name) ? name : "github");

export const ISSUER_NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;
const nameRule = "must be 1 to 32 lower-case letters, digits and hyphens";
const audienceRule = "is required: tokens for other services would be accepted";
const claimStyles = Object.keys(ciSystems) as CiSystem[];
const MAX_ISSUERS = 20;
const areDifferent = (values: unknown[]): boolean => new Set(values).size === values.length;

/**
 * The issuers of tokens for workflows: option and setting.
 * @param keysField the name of the field with the address of the keys, in which the two differ
 * @param allowsLoopback accepts plain http to this machine, for a local run
 */
export function workflowIssuerList<KeysField extends string>(keysField: KeysField, allowsLoopback = false) {
  const rule = allowsLoopback ? "must be an https URL, or http to 127.0.0.1" : "must be an https URL";
  const url = z.string(rule).check(z.refine((text) => isIssuerUrl(text, allowsLoopback), rule));
  return z
    .array(
      z
        .strictObject({
          /** What a trusted workflow calls the issuer. `github` and `gitlab` stand for the public instances. */
          name: z.string(nameRule).check(z.regex(ISSUER_NAME, nameRule)),
          /** Required `iss`; absent = that of the public instance that `name` stands for. */
          issuer: z.optional(url),
          /** Absent = where every instance of GitHub or GitLab publishes its keys. */
          ...({ [keysField]: z.optional(url) } as Record<KeysField, z.ZodMiniOptional<typeof url>>),
          /** Required `aud`, best the base URL of the stage: the issuer signs tokens for every other service too. */
          audience: z.string(audienceRule).check(z.refine((text) => text.trim() !== "", audienceRule)),
          /** The naming of the claims; absent = `gitlab` for the name `gitlab`, otherwise `github`. */
          claims: z.optional(z.enum(claimStyles, `must be ${claimStyles.join(" or ")}`)),
        })
        .check(
          z.refine((entry) => issuerUrlOf(entry as IssuerEntry) !== undefined, {
            path: ["issuer"],
            error: "is required, except for github and gitlab",
          }),
        ),
      "must be a list",
    )
    .check(
      z.refine((list) => list.length >= 1 && list.length <= MAX_ISSUERS, `must have 1 to ${MAX_ISSUERS} entries`),
      z.refine((list) => areDifferent((list as IssuerEntry[]).map(({ name }) => name)), "must have different names"),
      z.refine(
        (list) => areDifferent((list as IssuerEntry[]).map(issuerUrlOf).map(issuerIdentity)),
        "must have different issuers",
      ),
    );
}
