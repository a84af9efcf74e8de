import { type Stack, Token, Validations } from "aws-cdk-lib";
import { CfnMethod } from "aws-cdk-lib/aws-apigateway";
import { CfnTable } from "aws-cdk-lib/aws-dynamodb";
import { CfnBucket } from "aws-cdk-lib/aws-s3";
import type { IConstruct } from "constructs";
import { routeRows } from "../functions/foundation/manifest/function-rows.ts";

/** A finding of cdk-nag (AwsSolutions) that is acknowledged. */
interface Suppression {
  /**
   * May contain `<qualifier>`: the bootstrap qualifier of the stage. If it contains `<AWS::…>`, the same with the values of a
   * stage with `env` is acknowledged too.
   */
  id: string;
  reason: string;
  /** Constructs for which it is acknowledged; absent = the whole stack. */
  on?: (construct: IConstruct) => boolean;
}

/** The reasons by rule, for the whole stack. */
const everywhere: Record<string, string> = {
  COG4: "The authorizer Lambda verifies JWTs of the platform's identity provider and API keys. Cognito supports neither.",
  APIG2: "The functions validate bodies and report which field is not valid and why. API Gateway's errors do not.",
  APIG3: "A stage that keeps data has a firewall. Others do without: it costs $9 a month, and they have no users.",
  APIG6: "Execution logs would contain headers and bodies, and so keys, tokens and secrets. Access logs are on.",
  "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]":
    "The role with which API Gateway writes logs, one for the whole account: AWS requires this policy.",
  "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited]":
    "The role with which CodeDeploy moves traffic between versions: AWS's policy for this purpose.",
  SMG4: "The identity provider creates and rotates the value of the secret. The runbook describes a rotation without downtime.",
  CFR1: "The console is a page without data. The API authorizes every call.",
  CFR2: "The console is static files without a server. The firewall protects the API.",
  CFR3: "The API's access log contains the calls of the console. Downloads of public files are not worth logging.",
  CFR4: "CloudFront's own domain name has a fixed TLS policy. A console with a custom domain requires TLS 1.2 or later.",
};

/** Rules that CDK's own Lambda breaks, which uploads the console's files. */
const ofUpload = [
  "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]",
  "IAM5[Action::s3:GetObject*]",
  "IAM5[Action::s3:GetBucket*]",
  "IAM5[Action::s3:List*]",
  "IAM5[Action::s3:DeleteObject*]",
  "IAM5[Action::s3:Abort*]",
  "IAM5[Resource::arn:<AWS::Partition>:s3:::cdk-<qualifier>-assets-<AWS::AccountId>-<AWS::Region>/*]",
  "IAM5[Resource::<ConsolePage7A72AA0B.Arn>/*]",
  "L1",
];

const isForAnyone = ({ node }: CfnMethod): boolean =>
  routeRows.some(({ access, method, path }) => access === "anyone" && node.path.endsWith(`${path}/${method}/Resource`));

/**
 * All acknowledged findings, with the reason. Any other finding fails the synthesis.
 * Rules: https://github.com/cdklabs/cdk-nag/blob/main/RULES.md
 */
export const suppressions: readonly Suppression[] = [
  ...Object.entries(everywhere).map(([rule, reason]) => ({ rule, reason })),
  {
    rule: "APIG4",
    reason:
      "Mock methods: 404, 405 and CORS preflight responses, which reach no function and no data. And endpoints for anyone: the " +
      "holder of a leaked API key ends it without another credential.",
    on: (construct: IConstruct) =>
      construct instanceof CfnMethod && (construct.httpMethod === "ANY" || isForAnyone(construct)),
  },
  {
    rule: "DDB3",
    reason: "A stage whose data is deleted with it has nothing to restore.",
    on: (construct: IConstruct) => construct instanceof CfnTable && construct.deletionProtectionEnabled === false,
  },
  {
    rule: "S1",
    reason: "Only CloudFront reads the console's bucket, and its files are public.",
    on: (construct: IConstruct) => construct instanceof CfnBucket,
  },
  ...ofUpload.map((rule) => ({
    rule,
    reason: "CDK's own Lambda: it uploads the console's files during a deployment, and nothing else calls it.",
    on: ({ node }: IConstruct) => node.path.includes("/Custom::CDKBucketDeployment"),
  })),
].map(({ rule, ...suppression }) => ({ id: `AwsSolutions::AwsSolutions-${rule}`, ...suppression }));

/** Acknowledges the findings in a stack. */
export function suppressFindings(stack: Stack): void {
  for (const { id, reason, on } of suppressions) {
    const constructs = on ? stack.node.findAll().filter(on) : [stack];
    const ours = id.replace("<qualifier>", stack.synthesizer.bootstrapQualifier ?? "");
    const acknowledged = [...new Set([ours, withValues(stack, ours)])].map((each) => ({ id: each, reason }));
    for (const construct of constructs) Validations.of(construct).acknowledge(...acknowledged);
  }
}

function withValues(stack: Stack, id: string): string {
  const values = {
    "<AWS::Partition>": stack.partition,
    "<AWS::AccountId>": stack.account,
    "<AWS::Region>": stack.region,
  };
  const known = Object.entries(values).filter(([, value]) => !Token.isUnresolved(value));
  return known.reduce((text, [name, value]) => text.replaceAll(name, value), id);
}
