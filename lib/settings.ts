import { DEFAULT_SCHEDULE } from "../functions/foundation/manifest/retry-schedule.ts";
import type { Stage } from "./stage.ts";

/*
 * The settings of the functions and of a local run, by environment variable. The environment of deployed functions, the help
 * pages of the programs and the table in docs/configuration.md follow from these rows.
 */

/** Parts of a stage whose options are environment variables of functions. */
export type SettingGroup = "jwt" | "jwks" | "deliveries";
type OptionOf<Group extends SettingGroup> = Group extends SettingGroup
  ? `${Group}.${Extract<keyof NonNullable<Stage[Group]>, string>}`
  : never;

export interface SettingRow {
  /** Option of a stage that sets it on AWS; absent = another part of the stack, or a local run only. */
  option?: OptionOf<SettingGroup>;
  /** Used when it is not set, as the documents show it. */
  fallback: string;
  about: string;
  /** Further sentences of docs/configuration.md. */
  more?: string;
}

export const settingRows = {
  PORT: { fallback: "3000", about: "port of the API on 127.0.0.1; 0 = any free port" },
  DATA_DIR: {
    fallback: "`.local`",
    about: "folder with all data, the log `service.log` and the JWT secret, kept across restarts",
    more: "Only its owner can read it. It survives `kill -9`",
  },
  JWT_SECRET: {
    fallback: "created once, kept in DATA_DIR",
    about: "secret that signs and verifies JWTs, 32 bytes or more",
  },
  SQS_PORT: {
    fallback: "3001",
    about: "port of the embedded SQS engine on 127.0.0.1; 0 = any free port",
    more: "The events queue is `http://127.0.0.1:<SQS_PORT>/000000000000/deployment-events`. Requests of web pages, and with a host name other than `localhost`, get 403",
  },
  WEBHOOK_ALLOW_CIDRS: {
    fallback: "`127.0.0.0/8,::1/128`",
    about: "non-public ranges that webhooks may call, also by plain http; empty = none",
    more: "On AWS there are none. If the list is not empty, `localhost` is accepted as a name",
  },
  DNS_SERVERS: {
    fallback: "those of the operating system",
    about: "DNS servers that resolve the host names of receivers: `ip`, `ip:port` or `[v6]:port`, comma-separated",
  },
  RETRY_SCHEDULE: {
    option: "deliveries.retrySchedule",
    fallback: `\`${DEFAULT_SCHEDULE.join(",")}\``,
    about: "seconds between delivery attempts, at most 20",
  },
  DUPLICATE_SECONDS: {
    fallback: "30 (75 on AWS)",
    about: "how long a delivery waits whose event was received before",
    more: "A message that carries it usually records it in this time",
  },
  DELIVERY_BATCH_SIZE: {
    fallback: "1",
    about: "deliveries per call of the sender, from 1 to 10 as on AWS",
    more: "A call lasts as long as its slowest receiver. In all, 200 deliveries per queue are in flight",
  },
  LAST_USED_RESOLUTION_SECONDS: {
    fallback: "60",
    about: "minimum time between two updates of a key's `last_used_at`",
  },
  DISABLE_AFTER_SECONDS: {
    option: "deliveries.disableAfterSeconds",
    fallback: "432000",
    about: "how long a webhook may fail before it is disabled",
  },
  JWT_ISSUER: { option: "jwt.issuer", fallback: "not checked", about: "required `iss` of an HS256 token" },
  JWT_AUDIENCE: {
    option: "jwt.audience",
    fallback: "not checked",
    about: "required `aud` of an HS256 token, or several with commas",
  },
  JWT_REQUIRED_CLAIMS: {
    option: "jwt.requiredClaims",
    fallback: "none",
    about: "claims that a sign-in token must have, with their accepted values, as JSON",
    more: 'Such as `{"email_verified":true,"role":["member","owner"]}`. See "Who may sign in" below',
  },
  JWT_MAX_LIFETIME_SECONDS: { option: "jwt.maxLifetimeSeconds", fallback: "3600", about: "longest lifetime of a JWT" },
  JWT_CLOCK_SKEW_SECONDS: { fallback: "60", about: "tolerated difference of the identity provider's clock" },
  JWT_REQUIRES_ISSUED_AT: {
    option: "jwt.requiresIssuedAt",
    fallback: "false",
    about: "`true` rejects a JWT without `iat`, of either provider: its age is unknown",
  },
  JWKS_ISSUER: {
    option: "jwks.issuer",
    fallback: "off",
    about: "also accepts RS256, ES256 and EdDSA tokens of this issuer, verified with its public keys",
  },
  JWKS_AUDIENCE: {
    option: "jwks.audience",
    fallback: "required with JWKS_ISSUER",
    about: "required `aud` of these tokens, or several with commas: a token must name one",
  },
  JWKS_AUDIENCE_CLAIM: {
    option: "jwks.audienceClaim",
    fallback: "none",
    about: "`client_id` or `azp`: the claim with the audience of tokens that have no `aud`",
    more: 'For Cognito and Clerk: see "Identity providers" below',
  },
  JWKS_URI: {
    option: "jwks.uri",
    fallback: "`<issuer>/.well-known/jwks.json`",
    about: "address of these keys, up to 256 KB and 100 keys",
    more: "An https URL. Only a local run accepts plain http to this machine",
  },
  JWKS_SHARES_USERS: {
    option: "jwks.sharesUsers",
    fallback: "required, unless JWT_ISSUER is another issuer",
    about: "`true`: a `sub` of this issuer is the same user as the same `sub` of an HS256 token",
    more: 'See "Users of two providers" below',
  },
  OIDC_ISSUERS: {
    fallback: "none",
    about: "CI systems whose workflows may call the API, as JSON",
    more: 'A list of `{"name","issuer","jwks_uri","audience","claims"}` ([trusted workflows](trusted-workflows.md)). `github` and `gitlab` need only `name` and `audience`. Another issuer needs its `issuer`; its claims are named as GitHub\'s unless `claims` is `gitlab`. Only a local run accepts plain http to this machine',
  },
  PERMISSIONS: {
    fallback: "none",
    about: "permissions of the platform's other services, as JSON",
    more: 'A list of up to 20 `{"name","description"}`, such as `[{"name":"registry:push","description":"push images"}]` ([verify credentials](verify-credentials.md#permissions-of-the-platform))',
  },
  IMPORTED_KEYS: {
    fallback: "none",
    about: "kinds of API keys of an earlier service, as JSON",
    more: 'A list of up to 10 `{"prefix","hash"}`, such as `[{"prefix":"acme_","hash":"sha256"}]` ([moving in](moving-in.md#keys)). `hash` is `sha256` or `hmac-sha256`',
  },
  IMPORTED_KEYS_PEPPER: {
    fallback: "required with `hmac-sha256`",
    about: "the pepper with which these keys were hashed",
    more: "On AWS it is in Secrets Manager: option `importedKeysPepper`",
  },
  LEGACY_SIGNATURE_HEADER: {
    fallback: "none",
    about: "header in which receivers of an earlier service look for the signature, as JSON",
    more: 'A `{"name","until"}`, such as `{"name":"X-Acme-Signature","until":"2027-01-31"}` ([moving in](moving-in.md#the-old-signature-header))',
  },
  CORS_ORIGINS: { fallback: "none", about: "origins of pages that may call the API, comma-separated" },
  AWS_ENDPOINT_URL_DYNAMODB: {
    fallback: "the embedded engine",
    about: "URL of a DynamoDB engine, such as DynamoDB Local",
  },
  AWS_ENDPOINT_URL_SQS: { fallback: "the embedded engine", about: "URL of an SQS engine, such as LocalStack" },
  AWS_ENDPOINT_URL_SNS: { fallback: "the embedded engine", about: "URL of an SNS engine, such as LocalStack" },
} as const satisfies Record<string, SettingRow>;
