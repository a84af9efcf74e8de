import { RetentionDays } from "aws-cdk-lib/aws-logs";

/** Where the stack is deployed to and what differs there. One stage is one stack. */
export interface Stage {
  name: string;
  /** What is stored outlives the stack and can be restored, and neither the stack nor a table is deleted by mistake. */
  keepsData: boolean;
  logRetention: RetentionDays;
  /** What API Gateway lets through to each endpoint, all callers together. Above it the answer is 429. */
  throttle: { requestsPerSecond: number; burst: number };
  /** ARN of the secret that holds the identity provider's HS256 secret; absent = the stack makes one to be filled in. */
  jwtSecretArn?: string;
  /** Settings by the file of the function that takes them. The README says what each one means. */
  settings: Settings;
}

export interface Settings {
  authorizer?: Partial<Record<AuthorizerSetting, string>>;
  "deliveries/fan-out"?: Partial<Record<"DELIVERY_GRACE_SECONDS", string>>;
  "deliveries/send"?: Partial<Record<"RETRY_SCHEDULE" | "DISABLE_AFTER_SECONDS" | "DELIVERY_GRACE_SECONDS", string>>;
  "deliveries/sweep"?: Partial<Record<"DELIVERY_GRACE_SECONDS", string>>;
}

type AuthorizerSetting =
  | "JWT_ISSUER"
  | "JWT_AUDIENCE"
  | "JWT_MAX_LIFETIME_SECONDS"
  | "JWT_CLOCK_SKEW_SECONDS"
  | "JWKS_ISSUER"
  | "JWKS_URI"
  | "JWKS_AUDIENCE"
  | "LAST_USED_RESOLUTION_SECONDS";

export const stages: readonly Stage[] = [
  {
    name: "dev",
    keepsData: false,
    logRetention: RetentionDays.ONE_WEEK,
    throttle: { requestsPerSecond: 50, burst: 100 },
    settings: {},
  },
  {
    name: "prod",
    keepsData: true,
    logRetention: RetentionDays.THREE_MONTHS,
    throttle: { requestsPerSecond: 1_000, burst: 2_000 },
    settings: {},
  },
];

const DEFAULT_STAGE = "dev";

export class UnknownStage extends Error {
  override readonly name = "UnknownStage";

  constructor(wanted: unknown) {
    const known = stages.map((stage) => stage.name).join(", ");
    super(`There is no stage ${JSON.stringify(wanted)}. Known stages: ${known}. Choose one with -c stage=<name>.`);
  }
}

/**
 * @param name the value of the CDK context `stage`; undefined = `dev`
 * @throws UnknownStage
 */
export function stageNamed(name: unknown = DEFAULT_STAGE): Stage {
  const stage = stages.find((candidate) => candidate.name === name);
  if (stage === undefined) throw new UnknownStage(name);
  return stage;
}
