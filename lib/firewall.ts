import type { RestApi } from "aws-cdk-lib/aws-apigateway";
import * as wafv2 from "aws-cdk-lib/aws-wafv2";
import { Construct } from "constructs";
import type { Stage } from "./stage.ts";

/**
 * AWS WAF in front of the API. One rule stops an address that sends too much (429, see WAF_FILTERED in
 * functions/manifest/gateway-responses.ts). AWS's own rules only count: webhook URLs and event data look like attacks to some of them,
 * so an operator looks at their metrics first.
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
    visibilityConfig: visibleAs("Firewall"),
    rules: [
      {
        name: "Rate",
        priority: 0,
        action: { block: {} },
        statement: {
          rateBasedStatement: { aggregateKeyType: "IP", limit: requestsPerFiveMinutes, evaluationWindowSec: 300 },
        },
        visibilityConfig: visibleAs("Rate"),
      },
      ...MANAGED.map((name, index) => ({
        name,
        priority: index + 1,
        overrideAction: { count: {} },
        statement: { managedRuleGroupStatement: { vendorName: "AWS", name } },
        visibilityConfig: visibleAs(name),
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

/** No samples: they would hold headers, and with them credentials. */
function visibleAs(metricName: string): wafv2.CfnWebACL.VisibilityConfigProperty {
  return { metricName, cloudWatchMetricsEnabled: true, sampledRequestsEnabled: false };
}
