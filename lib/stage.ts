import { RetentionDays } from "aws-cdk-lib/aws-logs";
import * as z from "zod";

/*
 * What a stage is made of: every option of a deployment, what it may hold and what is meant when it is absent. The stages
 * themselves stand in stages.ts.
 */

const arn = (service: string, resource: RegExp, example: string) =>
  z.string().regex(new RegExp(`^arn:aws[a-z-]*:${service}:${resource.source}$`), `takes an ARN such as ${example}`);

const certificateArn = arn(
  "acm",
  /[a-z0-9-]+:\d{12}:certificate\/[\w-]+/,
  "arn:aws:acm:eu-west-1:111122223333:certificate/…",
);
/** CloudFront takes certificates of one region only. */
const cloudFrontCertificateArn = arn(
  "acm",
  /us-east-1:\d{12}:certificate\/[\w-]+/,
  "arn:aws:acm:us-east-1:111122223333:certificate/…, of us-east-1",
);
const keyArn = arn("kms", /[a-z0-9-]+:\d{12}:key\/[\w-]+/, "arn:aws:kms:eu-west-1:111122223333:key/…");
const secretArn = arn(
  "secretsmanager",
  /[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+-\w{6}/,
  "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider-AbCdEf, complete to its last six characters",
);
const producerArn = z
  .string()
  .regex(
    /^arn:aws[a-z-]*:(iam::\d{12}:(root|role\/\S+|user\/\S+)|events:[a-z0-9-]+:\d{12}:rule\/\S+|sns:[a-z0-9-]+:\d{12}:[\w-]+)$/,
    "takes the ARN of an IAM role, user or account (…:root), an EventBridge rule or an SNS topic",
  );

const issuer = z.url({ protocol: /^https$/, error: "takes an https URL" });
const origin = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text,
    "takes an origin such as https://app.example.com, without a path",
  );
const seconds = z.int().min(0).max(999_999_999);
const positive = z.int().min(1);

/** The Route 53 zone in which the stack puts a name. */
const hostedZone = z.strictObject({ id: z.string().regex(/^Z[A-Z0-9]+$/), name: z.hostname() });

const stageSchema = z.strictObject({
  /** Part of the names of the stack, its tables and its queues. */
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,19}$/, "takes up to 20 lower-case letters, digits and hyphens, a letter first"),
  /** What is stored outlives the stack and can be restored, and neither the stack nor a table is deleted by mistake. */
  keepsData: z.boolean(),
  logRetention: z.enum(RetentionDays),
  /** What API Gateway lets through to each endpoint, all its callers together. Above it the answer is 429. */
  throttle: z.strictObject({ requestsPerSecond: positive, burst: positive }),
  /** New versions of the authorizer and the sender take a tenth of the traffic for five minutes, and are rolled back on an alarm. */
  deploysGradually: z.boolean(),

  /** Sign-in JWTs of the identity provider, verified with a shared secret (HS256). */
  jwt: z
    .strictObject({
      /** The secret that holds the provider's; absent = the stack makes one to be filled in. */
      secretArn: secretArn.optional(),
      /** The key it is encrypted with, when that is not AWS's own. */
      secretKmsKeyArn: keyArn.optional(),
      issuer: z.string().min(1).optional(),
      audience: z.string().min(1).optional(),
      maxLifetimeSeconds: positive.optional(),
      clockSkewSeconds: seconds.optional(),
    })
    .optional(),
  /** An issuer whose public keys verify JWTs too. */
  jwks: z.strictObject({ issuer, uri: issuer.optional(), audience: z.string().min(1).optional() }).optional(),
  apiKeys: z.strictObject({ lastUsedResolutionSeconds: seconds.optional() }).optional(),
  deliveries: z
    .strictObject({
      /** Waits between attempts, in seconds. */
      retrySchedule: z.array(seconds).min(1).max(20).optional(),
      graceSeconds: positive.optional(),
      disableAfterSeconds: seconds.optional(),
    })
    .optional(),

  /** The API's own name, in place of API Gateway's. The certificate is one of the same region. */
  domain: z
    .strictObject({
      name: z.hostname("takes a host name such as api.example.com"),
      certificateArn,
      /** The Route 53 zone in which the stack puts the name; absent = the operator does, with the output ApiDomainTarget. */
      hostedZone: hostedZone.optional(),
    })
    .optional(),
  /**
   * The page for people, from S3 and CloudFront. Its own name may call the API (corsOrigins); with CloudFront's (`true`), the
   * operator adds the output ConsoleUrl there after the first deployment.
   */
  console: z
    .union([
      z.literal(true),
      z.strictObject({
        /** In place of CloudFront's. */
        domain: z.strictObject({
          name: z.hostname("takes a host name such as console.example.com"),
          certificateArn: cloudFrontCertificateArn,
          /** Absent = the operator points the name to the output ConsoleDomainTarget. */
          hostedZone: hostedZone.optional(),
        }),
      }),
    ])
    .optional(),
  /** Web pages that may call the API from a browser. */
  corsOrigins: z.array(origin).min(1).optional(),
  /** A firewall (AWS WAF) that stops an address which sends more than this in five minutes. */
  firewall: z.strictObject({ requestsPerFiveMinutes: z.int().min(10).max(2_000_000_000) }).optional(),
  /** The customer's own key for tables, queues, secret and logs: one that exists, or `create`. */
  kmsKey: z.union([z.literal("create"), keyArn]).optional(),
  alarmEmail: z.email("takes an e-mail address").optional(),
  /** Who may send to the events queue, beside the principals of this account whose own policy lets them. */
  eventProducers: z.array(producerArn).min(1).optional(),
  /** The platform's own table of projects, in the shape of ours (functions/manifest/tables.ts), in place of it. */
  projectsTable: z.strictObject({ name: z.string().regex(/^[\w.-]{3,255}$/), kmsKeyArn: keyArn.optional() }).optional(),
  /**
   * Whether the stack sets the role by which API Gateway writes logs. The account has one, for all its APIs and per region:
   * false where something else sets it.
   */
  setsApiGatewayLogRole: z.boolean().optional(),
});

/** Where the stack is deployed to and what differs there. One stage is one stack. */
export type Stage = z.infer<typeof stageSchema>;

export class InvalidStage extends Error {
  override readonly name = "InvalidStage";

  constructor(name: unknown, issues: z.core.$ZodIssue[]) {
    const lines = issues.map(({ path, message }) => `  ${path.join(".") || "stage"}: ${message}`);
    super(`The stage ${JSON.stringify(name)} in lib/stages.ts is not valid:\n${lines.join("\n")}`);
  }
}

/** @throws InvalidStage that names every option that is wrong */
export function validStage(stage: Stage): Stage {
  const { success, data, error } = stageSchema.safeParse(stage);
  if (!success) throw new InvalidStage(stage.name, error.issues);
  return withConsoleOrigin(data);
}

/** A console with a name of its own may call the API. */
function withConsoleOrigin(stage: Stage): Stage {
  if (stage.console === undefined || stage.console === true) return stage;
  const origins = [...(stage.corsOrigins ?? []), `https://${stage.console.domain.name}`];
  return { ...stage, corsOrigins: [...new Set(origins)] };
}
