import type { RestApi } from "aws-cdk-lib/aws-apigateway";
import * as wafv2 from "aws-cdk-lib/aws-wafv2";
import { Construct } from "constructs";
import type { Stage } from "./stage.ts";

/**
 * Puts AWS WAF in front of the API. One rule blocks an IP address that sends too many requests (429: WAF_FILTERED in
 * functions/manifest/gateway-responses.ts). The managed rule groups of AWS only count requests: some of their rules
 * match webhook URLs and event data, so the operator must check their metrics before setting them to block.
 */
export function addFirewall(
  scope: Construct,
  api: RestApi,
  { requestsPerFiveMinutes }: NonNullable<Stage["firewall"]>,
): void {
  const folder = new Construct(scope, "Firewall");
  const acl = new wafv2.CfnWebACL(folder, "Acl", {
    scope: "REGIONAL",
    defaultAction: { allow: {} },
    visibilityConfig: visibility("Firewall"),
    rules: [
      {
        name: "Rate",
        priority: 0,
        action: { block: {} },
        statement: {
          rateBasedStatement: { aggregateKeyType: "IP", limit: requestsPerFiveMinutes, evaluationWindowSec: 300 },
        },
        visibilityConfig: visibility("Rate"),
      },
      ...MANAGED.map((name, index) => ({
        name,
        priority: index + 1,
        overrideAction: { count: {} },
        statement: { managedRuleGroupStatement: { vendorName: "AWS", name } },
        visibilityConfig: visibility(name),
      })),
    ],
  });
  new wafv2.CfnWebACLAssociation(folder, "Association", {
    resourceArn: api.deploymentStage.stageArn,
    webAclArn: acl.attrArn,
  });
}

/** https://docs.aws.amazon.com/waf/latest/developerguide/aws-managed-rule-groups-list.html */
const MANAGED = [
  "AWSManagedRulesCommonRuleSet",
  "AWSManagedRulesKnownBadInputsRuleSet",
  "AWSManagedRulesAmazonIpReputationList",
];

/** Samples of requests are off: they would contain headers, and so credentials. */
function visibility(metricName: string): wafv2.CfnWebACL.VisibilityConfigProperty {
  return { metricName, cloudWatchMetricsEnabled: true, sampledRequestsEnabled: false };
}
