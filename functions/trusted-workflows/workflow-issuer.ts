import * as z from "zod/mini";
import { type CiSystem, ciSystems } from "../manifest/ci-systems.ts";
import { fields, invalidField, orRequired, parse } from "../schema/input.ts";
import { readJsonSetting } from "../schema/json-setting.ts";

/** The CI system whose names for claims an issuer uses. */
export type ClaimStyle = CiSystem;
const claimStyles = Object.keys(ciSystems) as ClaimStyle[];

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
  claims: ClaimStyle;
}

const isCiSystem = (name: string): name is ClaimStyle => claimStyles.some((style) => style === name);

const text = (message: string) =>
  z.string(orRequired(message)).check(z.refine((value) => value.trim() !== "", message));

const MAX_ISSUERS = 20;
export const ISSUER_NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** Created when it is needed: most stages have no issuers, and the authorizer loads this file. */
const issuerList = () =>
  z
    .array(
      fields({
        name: z
          .string(orRequired("must be a string"))
          .check(z.refine((name) => ISSUER_NAME.test(name), "must be 1 to 32 lower-case letters, digits and hyphens")),
        issuer: z.optional(text("must be the claim iss of the tokens")),
        jwks_uri: z.optional(text("must be a URL")),
        audience: text(
          "must be the claim aud of the tokens: the issuer signs tokens for other services with the same keys",
        ),
        claims: z.optional(z.enum(claimStyles, orRequired(`must be ${claimStyles.join(" or ")}`))),
      }),
      orRequired("must be a list"),
    )
    .check(z.refine((issuers) => issuers.length <= MAX_ISSUERS, `must have at most ${MAX_ISSUERS}`));

/**
 * Parses the setting OIDC_ISSUERS: a JSON list of `{name, issuer, jwks_uri, audience, claims}`. The names `github` and
 * `gitlab` stand for the public instances and need only an audience. Another issuer needs its `issuer`, and by default
 * names its claims as GitHub does.
 * @param setting undefined = none
 * @param allowsLoopback accepts plain http to this machine, for a local run
 * @throws SettingError that names the entry and the field
 */
export function parseWorkflowIssuers(setting: string | undefined, allowsLoopback: boolean): WorkflowIssuer[] {
  if (setting === undefined) return [];
  const example = '[{"name":"github","audience":"https://api.example.com"}]';
  return readJsonSetting("OIDC_ISSUERS", setting, (value) => readIssuers(value, allowsLoopback), example);
}

function readIssuers(value: unknown, allowsLoopback: boolean): WorkflowIssuer[] {
  const issuers = parse(issuerList(), value).map((entry, index): WorkflowIssuer => {
    const claims = entry.claims ?? (isCiSystem(entry.name) ? entry.name : "github");
    const issuer = entry.issuer ?? (isCiSystem(entry.name) ? ciSystems[entry.name].issuer : undefined);
    if (issuer === undefined) throw invalidField(`${index}.issuer`, "is required");
    const jwksUri = entry.jwks_uri ?? issuer.replace(/\/$/, "") + ciSystems[claims].jwksPath;
    const problem = allowsLoopback ? "must be an https URL, or http to 127.0.0.1" : "must be an https URL";
    if (!isUsableUrl(issuer, allowsLoopback)) throw invalidField(`${index}.issuer`, problem);
    if (!isUsableUrl(jwksUri, allowsLoopback)) throw invalidField(`${index}.jwks_uri`, problem);
    return { name: entry.name, issuer, jwksUri, audience: entry.audience, claims };
  });
  for (const field of ["name", "issuer"] as const) {
    const second = issuers.findIndex(
      (each, index) => issuers.findIndex((other) => other[field] === each[field]) < index,
    );
    if (second !== -1) throw invalidField(`${second}.${field}`, "is the same as that of an entry before it");
  }
  return issuers;
}

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

function isUsableUrl(url: string, allowsLoopback: boolean): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if (username !== "" || password !== "") return false;
  return protocol === "https:" || (allowsLoopback && protocol === "http:" && LOOPBACK.has(hostname));
}
