import { RetentionDays } from "aws-cdk-lib/aws-logs";
import * as z from "zod";
import { issuerUrlOf, workflowIssuerList } from "../functions/foundation/manifest/ci-systems.ts";
import type { OwnEvent } from "../functions/foundation/manifest/events.ts";
import { keyKindList } from "../functions/foundation/manifest/imported-keys.ts";
import {
  isLegacySignatureHeader,
  type LegacySignatureHeader,
  legacySignatureHeaderRule,
} from "../functions/foundation/manifest/legacy-signature-header.ts";
import { platformPermissionList } from "../functions/foundation/manifest/permissions.ts";
import {
  audienceClaims,
  isRequiredClaims,
  issuerIdentity,
  missingSignInSettings,
  type RequiredClaims,
  requiredClaimsRule,
} from "../functions/foundation/manifest/sign-in-rules.ts";
import { eventsProblem } from "./event-schemas.ts";

/*
 * The options of a stage: the allowed values of each, and the default if it is absent. The stages themselves are
 * defined in stages.ts.
 */

const arn = (service: string, resource: RegExp, example: string) =>
  z.string().regex(new RegExp(`^arn:aws[a-z-]*:${service}:${resource.source}$`), `must be an ARN such as ${example}`);

const certificateArn = arn(
  "acm",
  /[a-z0-9-]+:\d{12}:certificate\/[\w-]+/,
  "arn:aws:acm:eu-west-1:111122223333:certificate/…",
);
/** CloudFront only accepts certificates of us-east-1. */
const cloudFrontCertificateArn = arn(
  "acm",
  /us-east-1:\d{12}:certificate\/[\w-]+/,
  "arn:aws:acm:us-east-1:111122223333:certificate/… (region us-east-1)",
);
const keyArn = arn("kms", /[a-z0-9-]+:\d{12}:key\/[\w-]+/, "arn:aws:kms:eu-west-1:111122223333:key/…");
const secretArn = arn(
  "secretsmanager",
  /[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+-\w{6}/,
  "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider-AbCdEf, including the six random characters at its end",
);
const producerArn = z
  .string()
  .regex(
    /^arn:aws[a-z-]*:(iam::\d{12}:(root|role\/\S+|user\/\S+)|events:[a-z0-9-]+:\d{12}:rule\/\S+|sns:[a-z0-9-]+:\d{12}:[\w-]+)$/,
    "must be the ARN of an IAM role, user or account (…:root), an EventBridge rule or an SNS topic",
  );

const issuer = z.url({ protocol: /^https$/, error: "must be an https URL" });
const origin = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text,
    "must be an origin such as https://app.example.com, without a path",
  );
const seconds = z.int().min(0).max(999_999_999);
const positive = z.int().min(1);
/** One audience or several. They reach the functions as a list with commas. */
const audience = (rule?: string) => {
  const one = z
    .string(rule)
    .regex(/^[^\s,"[\]][^,"[\]]*$/, "must be text without commas, quotes and brackets, or a list of such texts");
  return z.union([one, z.array(one).min(1)], rule);
};

/** The limits that AWS WAF accepts in a rate-based rule. */
const wafLimit = z.int().min(10).max(2_000_000_000);

const customDomain = <Arn extends z.ZodType>(certificateArn: Arn, example: string) =>
  z.strictObject({
    name: z.hostname(`must be a host name such as ${example}`),
    certificateArn,
    /**
     * The Route 53 hosted zone in which the stack creates DNS records; absent = the operator points the name to the output
     * ApiDomainTarget or ConsoleDomainTarget.
     */
    hostedZone: z.strictObject({ id: z.string().regex(/^Z[A-Z0-9]+$/), name: z.hostname() }).optional(),
  });

const stageSchema = z.strictObject({
  /** Part of the names of the stack, its tables and its queues. One stage is one stack. */
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,19}$/, "must be 1 to 20 lower-case letters, digits and hyphens, and start with a letter"),
  /**
   * Protects stored data: tables, queues, logs and the secret stay when the stack is deleted, tables have point-in-time
   * recovery, and the stack and its tables have deletion protection. False = the data is deleted with the stack.
   */
  keepsData: z.boolean(),
  /**
   * Qualifier of the CDK bootstrap roles that deploy the stage (`cdk bootstrap --qualifier`), so that the role that
   * deploys one stage cannot use those of another: docs/deploying-from-github.md.
   */
  bootstrapQualifier: z.string().regex(/^[a-z0-9]{1,10}$/, "must be 1 to 10 lower-case letters and digits"),
  /**
   * Account and region of the stage; absent = those of the credentials with which it is deployed. With them a deployment to
   * any other one fails.
   */
  env: z
    .strictObject({
      account: z.string().regex(/^\d{12}$/, "must be the 12 digits of an account"),
      region: z.string().regex(/^[a-z]{2}(-[a-z]+)+-\d$/, "must be a region such as eu-west-1"),
    })
    .optional(),
  /** How long logs are kept, in days. */
  logRetention: z.enum(RetentionDays),
  /**
   * Rate limit of each endpoint, for all its callers together. Requests above it get 429. Expensive endpoints have lower
   * limits of their own (`throttle` in functions/foundation/manifest/endpoints.ts).
   */
  throttle: z.strictObject({ requestsPerSecond: positive, burst: positive }),
  /**
   * Deploys new versions of the authorizer, the fan-out and the senders gradually: a tenth of the calls for five minutes, and a
   * rollback if an alarm fires.
   */
  deploysGradually: z.boolean(),
  /**
   * Event pollers of each queue that are always ready, with ten batches each, and are added three times as fast; absent = Lambda
   * starts with five batches and adds 300 a minute. With them, a project that disturbs a quiet stage does not delay others in
   * its first seconds either: bench/RESULTS.md. An operator whose customers are strangers to each other wants two. They cost a
   * fixed price. https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
   */
  eventPollers: z.int().min(2).max(200).optional(),

  /** Sign-in JWTs of the identity provider, verified with a shared secret (HS256). */
  jwt: z
    .strictObject({
      /** Secrets Manager secret with the provider's key; absent = the stack creates one for the operator to fill in. */
      secretArn: secretArn.optional(),
      /** KMS key that encrypts the secret; absent = the AWS managed key. */
      secretKmsKeyArn: keyArn.optional(),
      /** Required `iss`; absent = not checked, which `keepsData` does not allow. */
      issuer: z.string().min(1).optional(),
      /** Required `aud`, or accepted ones; absent = not checked, which `keepsData` does not allow. */
      audience: audience().optional(),
      /** Maximum lifetime of a token; absent = 3,600. */
      maxLifetimeSeconds: positive.optional(),
      /** Rejects tokens without `iat`, whose age is unknown; absent = accepts them. */
      requiresIssuedAt: z.boolean().optional(),
      /** Claims that a token must have, of either provider, each with its accepted value or values; absent = none. */
      requiredClaims: z.custom<RequiredClaims>(isRequiredClaims, requiredClaimsRule).optional(),
    })
    .optional(),
  /** A second issuer, whose JWTs are verified with its public keys; absent = none. */
  jwks: z
    .strictObject({
      issuer,
      /** Address of the keys; absent = `<issuer>/.well-known/jwks.json`. */
      uri: issuer.optional(),
      /** Required `aud`, or accepted ones: the issuer signs tokens for other applications with the same keys. */
      audience: audience("is required: tokens for other applications of the issuer would be accepted"),
      /** The claim with the audience of tokens that have no `aud`; absent = such tokens are rejected. */
      audienceClaim: z.enum(audienceClaims).optional(),
      /**
       * Whether a `sub` of this issuer is the same user as the same `sub` of the provider with the shared secret; false =
       * another user, with the id `<issuer>#<sub>`. Absent = false, and allowed only if `jwt.issuer` is another issuer. A
       * change gives all users of this issuer other ids: they lose their keys and projects.
       */
      sharesUsers: z.boolean().optional(),
    })
    .optional(),
  /**
   * Issuers of CI systems whose workflows may act in the projects that trust them, verified with RS256 or ES256; absent =
   * none. Trusts of an issuer that is removed are kept, and have no effect.
   */
  workflowIssuers: z.optional(workflowIssuerList("jwksUri")),
  /**
   * Permissions of the platform's other services, which API keys and trusted workflows may hold, and of which `credentials-verify`
   * says whether a credential has them; absent = none. Credentials keep one that is removed, and it can no longer be given or verified.
   */
  permissions: z.optional(platformPermissionList()),
  /**
   * Kinds of keys of an earlier service of the platform, which are accepted after an import (docs/moving-in.md); absent = none:
   * a token that begins with `svc_` is an API key, and any other is a JWT.
   */
  importedKeys: z.optional(keyKindList()),
  /** The pepper of imported keys, as text; absent = none was used. */
  importedKeysPepper: z
    .strictObject({
      /** Secrets Manager secret that holds it. */
      secretArn,
      /** KMS key that encrypts the secret; absent = the AWS managed key. */
      kmsKeyArn: keyArn.optional(),
    })
    .optional(),
  /** Address of the public keys of the scanner of secrets that reports leaked keys (docs/secret-scanning.md); absent = GitHub's. */
  secretScanningKeysUrl: z.url({ protocol: /^https$/, error: "must be an https URL" }).optional(),
  /**
   * A header in which receivers of an earlier service of the platform look for the signature. Until a date, every delivery of the
   * stage has it, with the value of `X-Service-Signature`; absent = none.
   */
  legacySignatureHeader: z.custom<LegacySignatureHeader>(isLegacySignatureHeader, legacySignatureHeaderRule).optional(),
  /**
   * Events that the pipeline sends besides those of the contract: name, description, whether a deployment ends with it, tone and JSON Schema of
   * `data`; absent = none. Names that are removed leave stored events and deliveries as they are.
   */
  events: z
    .unknown()
    .transform((value, context) => {
      const message = value === undefined ? undefined : eventsProblem(value);
      if (message !== undefined) context.addIssue({ code: "custom", message });
      return value as OwnEvent[] | undefined;
    })
    .optional(),
  deliveries: z
    .strictObject({
      /** Waits between attempts, in seconds; absent = 5, 300, 1,800, 7,200, 18,000, 36,000 and 36,000. */
      retrySchedule: z.array(seconds).min(1).max(20).optional(),
      /** Disables a webhook whose attempts have failed for this long without a success; absent = 432,000 (5 days). */
      disableAfterSeconds: seconds.optional(),
    })
    .optional(),

  /** Custom domain of the API; absent = API Gateway's address. The certificate must be in the region of the stack. */
  domain: customDomain(certificateArn, "api.example.com").optional(),
  /**
   * Deploys the console, a web page, to S3 and CloudFront; absent = no console. `true` uses CloudFront's domain name:
   * after the first deployment the operator adds the origin of the output ConsoleUrl to `corsOrigins`. A custom domain
   * is added automatically.
   */
  console: z
    .union([z.literal(true), z.strictObject({ domain: customDomain(cloudFrontCertificateArn, "console.example.com") })])
    .optional(),
  /** Origins of web pages that may call the API from a browser; absent = none. */
  corsOrigins: z.array(origin).min(1).optional(),
  /**
   * A firewall (AWS WAF) that answers 429 to callers that send more requests in a minute than this, so that one caller
   * cannot use up the throttle of all. Absent = on with the defaults if `keepsData`, and off otherwise. False = off.
   */
  firewall: z
    .union([
      z.literal(false),
      z.strictObject({
        /** Requests per minute from an IP address, or from a network behind one address; absent = 6,000. */
        requestsPerMinutePerAddress: wafLimit.optional(),
        /** Requests per minute with a JWT or an API key; absent = 3,000. */
        requestsPerMinutePerCredential: wafLimit.optional(),
      }),
    ])
    .optional(),
  /**
   * Concurrent executions of Lambda that are reserved for a function. A reservation is also the upper bound of the
   * function, and other functions of the account cannot use it. So the authorizer always has its share, and `recover`,
   * which runs for up to 20 seconds, cannot take that of others. Absent = on with the defaults if `keepsData`, and off
   * otherwise. False = off. On needs a quota L-B99A9384 of their sum plus 100, which AWS keeps unreserved: 370
   * with the defaults. A new account may have 10, and then the deployment fails.
   * https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
   */
  reservedConcurrency: z
    .union([
      z.literal(false),
      z.strictObject({
        /** For the authorizer, which runs at every request; absent = 200. */
        authorizer: positive.optional(),
        /** For `recover`; absent = 70, which its throttle and 20 seconds per request need at most. */
        recover: positive.optional(),
        /** For `credentials-verify`, which other services call at the rate of their requests; absent = nothing is reserved. */
        verify: positive.optional(),
      }),
    ])
    .optional(),
  /**
   * Customer managed KMS key for tables, queues, secret and logs: an ARN, or `create`; absent = keys managed by AWS.
   */
  kmsKey: z.union([z.literal("create"), keyArn]).optional(),
  /**
   * Name of the IAM role, with its path, with which an operator may read signing secrets in a stage that keeps data;
   * absent = `deployment-webhooks-<stage>-break-glass`. The stack does not create it.
   */
  breakGlassRole: z
    .string()
    .regex(/^([\w+=,.@-]+\/)*[\w+=,.@-]{1,64}$/, "must be the name of a role, such as operations/break-glass")
    .optional(),
  /**
   * False = no alarms and no topic for them: for a stage that no one is on call for. The alarms that roll a gradual deployment
   * back remain. Absent = alarms.
   */
  alarms: z.boolean().optional(),
  /** Receives all alarms by email; absent = the operator subscribes to the topic of the output AlarmTopicArn. */
  alarmEmail: z.email("must be an email address").optional(),
  /** Other accounts, EventBridge rules and SNS topics that may send to the events queue; absent = only this account. */
  eventProducers: z.array(producerArn).min(1).optional(),
  /**
   * An existing table of the platform that replaces the table `projects`, with the same keys and attributes
   * (functions/foundation/manifest/tables.ts); absent = the stack creates one.
   */
  projectsTable: z.strictObject({ name: z.string().regex(/^[\w.-]{3,255}$/), kmsKeyArn: keyArn.optional() }).optional(),
  /**
   * Sets the role with which API Gateway writes logs; absent = true. An account has one such role per region, for all
   * its APIs: use false if another stack sets it.
   */
  setsApiGatewayLogRole: z.boolean().optional(),
});

const consistentStage = stageSchema
  // The issuer in a token decides whether it is one of a user or of a workflow.
  .refine(
    ({ jwt, jwks, workflowIssuers = [] }) =>
      [jwt?.issuer, jwks?.issuer].every(
        (issuer) => !workflowIssuers.map(issuerUrlOf).map(issuerIdentity).includes(issuerIdentity(issuer)),
      ),
    { path: ["workflowIssuers"], error: "must not contain the issuer of users (jwt.issuer, jwks.issuer)" },
  )
  .superRefine((stage, context) => {
    for (const { option, rule } of missingSignInSettings(stage))
      context.addIssue({ code: "custom", path: option.split("."), message: rule });
  })
  .refine(
    ({ importedKeys = [], importedKeysPepper }) =>
      importedKeys.some(({ hash }) => hash === "hmac-sha256") === (importedKeysPepper !== undefined),
    { path: ["importedKeysPepper"], error: "is needed for keys with the hash hmac-sha256, and only for these" },
  )
  .refine(({ alarms, alarmEmail }) => alarms !== false || alarmEmail === undefined, {
    path: ["alarmEmail"],
    error: "receives nothing with alarms: false",
  });

/** The configuration of one deployment of the service. */
export type Stage = z.infer<typeof stageSchema>;

export class InvalidStageError extends Error {
  override readonly name = "InvalidStageError";

  constructor(name: unknown, issues: z.core.$ZodIssue[]) {
    const lines = issues.map(({ path, message }) => `  ${path.join(".") || "stage"}: ${message}`);
    super(`The stage ${JSON.stringify(name)} in lib/stages.ts is not valid:\n${lines.join("\n")}`);
  }
}

/**
 * Checks the options of a stage, and adds the console's custom domain to its CORS origins.
 * @throws InvalidStageError with every option that is not valid
 */
export function validateStage(stage: Stage): Stage {
  const { success, data, error } = consistentStage.safeParse(stage);
  if (!success) throw new InvalidStageError(stage.name, error.issues);
  return withConsoleOrigin(data);
}

export interface FirewallLimits {
  requestsPerMinutePerAddress: number;
  requestsPerMinutePerCredential: number;
}

/** Returns the limits of the firewall of a stage; undefined = the stage has no firewall. */
export function firewallOf({ firewall, keepsData }: Stage): FirewallLimits | undefined {
  if (firewall === false || (firewall === undefined && !keepsData)) return undefined;
  const { requestsPerMinutePerAddress = 6_000, requestsPerMinutePerCredential = 3_000 } = firewall ?? {};
  return { requestsPerMinutePerAddress, requestsPerMinutePerCredential };
}

/** Returns the concurrency that a stage reserves for the functions whose rows name the option (`reserves`). */
export function reservedConcurrencyOf({
  reservedConcurrency,
  keepsData,
}: Stage): Partial<Record<"authorizer" | "recover" | "verify", number>> {
  if (reservedConcurrency === false || (reservedConcurrency === undefined && !keepsData)) return {};
  const { authorizer = 200, recover = 70, verify } = reservedConcurrency ?? {};
  return { authorizer, recover, ...(verify !== undefined && { verify }) };
}

/**
 * Lets the console call the API by CORS. Behind one CloudFront name with the page, the firewall would see CloudFront's
 * addresses instead of the callers', and CloudFront caches some errors for all callers.
 */
function withConsoleOrigin(stage: Stage): Stage {
  if (stage.console === undefined || stage.console === true) return stage;
  const origins = [...(stage.corsOrigins ?? []), `https://${stage.console.domain.name}`];
  return { ...stage, corsOrigins: [...new Set(origins)] };
}
