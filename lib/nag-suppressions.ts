import { type Stack, Validations } from "aws-cdk-lib";
import { CfnMethod } from "aws-cdk-lib/aws-apigateway";
import { CfnTable } from "aws-cdk-lib/aws-dynamodb";
import { CfnBucket } from "aws-cdk-lib/aws-s3";
import type { IConstruct } from "constructs";

/** A finding of cdk-nag (AwsSolutions) that we have looked at and leave as it is. */
interface Suppression {
  id: string;
  reason: string;
  /** Which constructs it is acknowledged for; absent = the whole stack. */
  on?: (construct: IConstruct) => boolean;
}

const isUpload = ({ node }: IConstruct): boolean => node.path.includes("/Custom::CDKBucketDeployment");

/** All findings that do not stop a synthesis, and why. Rules: https://github.com/cdklabs/cdk-nag/blob/main/RULES.md */
export const suppressions: readonly Suppression[] = [
  {
    id: "AwsSolutions::AwsSolutions-COG4",
    reason:
      "The authorizer Lambda takes sign-in JWTs of the platform's identity provider and API keys. Cognito knows neither.",
  },
  {
    id: "AwsSolutions::AwsSolutions-APIG4",
    reason: "Mock methods: the 404, 405 and CORS preflight answers, which reach no function and no data.",
    on: (construct) => construct instanceof CfnMethod && ["ANY", "OPTIONS"].includes(construct.httpMethod),
  },
  {
    id: "AwsSolutions::AwsSolutions-APIG2",
    reason: "The functions validate bodies, and tell which field is wrong and why; API Gateway's own errors do not.",
  },
  {
    id: "AwsSolutions::AwsSolutions-APIG3",
    reason: "The firewall is an option of a stage: it costs about as much as the requests it looks at.",
  },
  {
    id: "AwsSolutions::AwsSolutions-APIG6",
    reason: "Execution logs would hold headers and bodies, and with them keys, tokens and secrets. Access logs are on.",
  },
  {
    id: "AwsSolutions::AwsSolutions-DDB3",
    reason: "A stage whose data goes with it has nothing to restore.",
    on: (construct) => construct instanceof CfnTable && construct.deletionProtectionEnabled === false,
  },
  {
    id: "AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]",
    reason: "The role by which API Gateway itself writes logs, for the whole account: AWS asks for this policy.",
  },
  {
    id: "AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited]",
    reason: "The role by which CodeDeploy moves traffic between versions: AWS's policy for just that.",
  },
  {
    id: "AwsSolutions::AwsSolutions-SMG4",
    reason: "The identity provider makes the secret's value and rotates it; the runbook tells how, without downtime.",
  },
  {
    id: "AwsSolutions::AwsSolutions-S1",
    reason: "The console's bucket is read by CloudFront alone and holds what everybody may see.",
    on: (construct) => construct instanceof CfnBucket,
  },
  {
    id: "AwsSolutions::AwsSolutions-CFR1",
    reason: "The console is a page without data. Who may do what, and from where, the API decides.",
  },
  {
    id: "AwsSolutions::AwsSolutions-CFR2",
    reason: "Four files without a server behind them: nothing to attack. The firewall stands before the API.",
  },
  {
    id: "AwsSolutions::AwsSolutions-CFR3",
    reason:
      "What people do with the console is in the API's access log; who loaded four public files is not worth keeping.",
  },
  {
    id: "AwsSolutions::AwsSolutions-CFR4",
    reason:
      "CloudFront's own name comes with its own TLS rules. A console with a name of its own takes TLS 1.2 and later.",
  },
  ...[
    "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]",
    "IAM5[Action::s3:GetObject*]",
    "IAM5[Action::s3:GetBucket*]",
    "IAM5[Action::s3:List*]",
    "IAM5[Action::s3:DeleteObject*]",
    "IAM5[Action::s3:Abort*]",
    "IAM5[Resource::arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-<AWS::AccountId>-<AWS::Region>/*]",
    "IAM5[Resource::<ConsolePage7A72AA0B.Arn>/*]",
    "L1",
  ].map((rule) => ({
    id: `AwsSolutions::AwsSolutions-${rule}`,
    reason:
      "CDK's own Lambda: it puts the console's files into their bucket at a deployment, and nobody else calls it.",
    on: isUpload,
  })),
];

export function suppressFindings(stack: Stack): void {
  for (const { id, reason, on } of suppressions) {
    const constructs = on ? stack.node.findAll().filter(on) : [stack];
    for (const construct of constructs) Validations.of(construct).acknowledge({ id, reason });
  }
}
