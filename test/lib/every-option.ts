import { RetentionDays } from "aws-cdk-lib/aws-logs";
import type { Stage } from "../../lib/stage.ts";

/** A stage that uses every option. */
export const everyOption = {
  name: "every",
  keepsData: true,
  bootstrapQualifier: "hooksevery",
  env: { account: "111122223333", region: "eu-west-1" },
  logRetention: RetentionDays.ONE_YEAR,
  throttle: { requestsPerSecond: 5_000, burst: 10_000 },
  deploysGradually: true,
  eventPollers: 8,
  jwt: {
    secretArn: "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider-AbCdEf",
    secretKmsKeyArn: "arn:aws:kms:eu-west-1:111122223333:key/0000aaaa-12ab-34cd-56ef-1234567890ab",
    issuer: "https://id.example.com",
    audience: "platform",
    maxLifetimeSeconds: 1_800,
    requiresIssuedAt: true,
    requiredClaims: { email_verified: true, role: ["member", "owner"] },
  },
  jwks: {
    issuer: "https://sso.example.com/",
    uri: "https://sso.example.com/keys",
    audience: ["web", "mobile"],
    audienceClaim: "azp",
    sharesUsers: true,
  },
  workflowIssuers: [
    { name: "github", audience: "https://api.example.com" },
    {
      name: "gitlab-internal",
      issuer: "https://gitlab.example.com",
      jwksUri: "https://gitlab.example.com/keys",
      audience: "https://api.example.com",
      claims: "gitlab",
    },
  ],
  legacySignatureHeader: { name: "X-Acme-Signature", until: "2027-01-31" },
  events: [
    { name: "deploy.canceled", description: "the deployment was canceled", final: true, data: { type: "object" } },
  ],
  permissions: [{ name: "registry:push", description: "push images" }],
  importedKeys: [
    { prefix: "acme_", hash: "sha256" },
    { prefix: "old_", hash: "hmac-sha256" },
  ],
  secretScanningKeysUrl: "https://forge.example.com/keys",
  importedKeysPepper: {
    secretArn: "arn:aws:secretsmanager:eu-west-1:111122223333:secret:pepper-AbCdEf",
    kmsKeyArn: "arn:aws:kms:eu-west-1:111122223333:key/2222cccc-12ab-34cd-56ef-1234567890ab",
  },
  deliveries: { retrySchedule: [1, 60, 3_600], disableAfterSeconds: 86_400 },
  domain: {
    name: "api.example.com",
    certificateArn: "arn:aws:acm:eu-west-1:111122223333:certificate/1234abcd-12ab-34cd-56ef-1234567890ab",
    hostedZone: { id: "Z0123456789ABCDEFGHIJ", name: "example.com" },
  },
  console: {
    domain: {
      name: "console.example.com",
      certificateArn: "arn:aws:acm:us-east-1:111122223333:certificate/1234abcd-12ab-34cd-56ef-1234567890ab",
      hostedZone: { id: "Z0123456789ABCDEFGHIJ", name: "example.com" },
    },
  },
  corsOrigins: ["https://app.example.com", "http://localhost:5173"],
  firewall: { requestsPerMinutePerAddress: 1_200, requestsPerMinutePerCredential: 600 },
  reservedConcurrency: { authorizer: 300, recover: 100, verify: 50 },
  kmsKey: "create",
  breakGlassRole: "operations/read-secrets",
  alarms: true,
  alarmEmail: "ops@example.com",
  eventProducers: [
    "arn:aws:iam::444455556666:role/deployments",
    "arn:aws:iam::777788889999:root",
    "arn:aws:events:eu-west-1:111122223333:rule/deployments",
    "arn:aws:sns:eu-west-1:111122223333:deployments",
  ],
  projectsTable: {
    name: "platform-projects",
    kmsKeyArn: "arn:aws:kms:eu-west-1:111122223333:key/1111bbbb-12ab-34cd-56ef-1234567890ab",
  },
  setsApiGatewayLogRole: false,
} as const satisfies { [Option in keyof Required<Stage>]: unknown } as unknown as Required<Stage>;
