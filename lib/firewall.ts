import type { RestApi } from "aws-cdk-lib/aws-apigateway";
import * as wafv2 from "aws-cdk-lib/aws-wafv2";
import { Construct } from "constructs";
import { routeRows } from "../functions/foundation/manifest/function-rows.ts";
import type { FirewallLimits } from "./stage.ts";

/**
 * Puts AWS WAF in front of the API. It blocks an IP address and a credential that send too many requests. WAF reacts
 * within about 30 seconds, sometimes after minutes, and does not count exactly, so the throttles of API Gateway stay the
 * upper bound. https://docs.aws.amazon.com/waf/latest/developerguide/waf-rule-statement-type-rate-based-caveats.html
 *
 * A blocked request gets the gateway response WAF_FILTERED (functions/foundation/manifest/gateway-responses.ts), a 429 with
 * `Retry-After` and the request id. A rule must not have a custom response: it would take precedence, with a fixed body
 * that has no request id. https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
 *
 * The managed rule groups of AWS are left out: some of their rules match webhook URLs and event data, so they could only count.
 */
export function addFirewall(scope: Construct, api: RestApi, limits: FirewallLimits): void {
  const folder = new Construct(scope, "Firewall");
  const acl = new wafv2.CfnWebACL(folder, "Acl", {
    scope: "REGIONAL",
    defaultAction: { allow: {} },
    visibilityConfig: visibility("Firewall"),
    rules: Object.entries(rateRules(limits)).map(([name, statement], priority) => ({
      name,
      priority,
      action: { block: {} },
      statement: { rateBasedStatement: { ...statement, evaluationWindowSec: WINDOW_SECONDS } },
      visibilityConfig: visibility(name),
    })),
  });
  new wafv2.CfnWebACLAssociation(folder, "Association", {
    resourceArn: api.deploymentStage.stageArn,
    webAclArn: acl.attrArn,
  });
}

const WINDOW_SECONDS = 60;

/**
 * Requests per minute to the endpoints with a throttle of their own and to those without a credential, together: of one
 * credential, and of one IP address. It is what a project may request in a minute, and less than each of these throttles,
 * which all callers share.
 *
 * The limit of the address is needed because a credential can be invented: each invented one would be counted alone.
 * API Gateway rejects these with 401, but AWS does not document whether it throttles before or after the authorizer. If
 * before, they use up the throttle too. Two addresses can still send more than the throttle of `recover`, and one can in
 * the time until WAF blocks it. The users of one network share its limit.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-request-throttling.html
 */
const THROTTLED_PER_MINUTE = 120;

/** Returns the rules by name, in the order in which they are evaluated. */
const rateRules = ({ requestsPerMinutePerAddress, requestsPerMinutePerCredential }: FirewallLimits) => ({
  Rate: { aggregateKeyType: "IP", limit: requestsPerMinutePerAddress },
  CredentialRate: { ...perCredential, limit: requestsPerMinutePerCredential, scopeDownStatement: hasCredential },
  ThrottledRate: {
    ...perCredential,
    limit: THROTTLED_PER_MINUTE,
    scopeDownStatement: { andStatement: { statements: [hasCredential, isThrottled()] } },
  },
  ThrottledAddressRate: { aggregateKeyType: "IP", limit: THROTTLED_PER_MINUTE, scopeDownStatement: isThrottled() },
});

const AUTHORIZATION = "authorization";

/**
 * Counts the requests of each credential. `bearer` in another case and more spaces are the same credential to the
 * authorizer, so they are removed before the values are compared.
 * https://docs.aws.amazon.com/waf/latest/developerguide/waf-rule-statement-type-rate-based-aggregation-options.html
 */
const perCredential = {
  aggregateKeyType: "CUSTOM_KEYS",
  customKeys: [
    {
      header: {
        name: AUTHORIZATION,
        textTransformations: [
          { priority: 0, type: "COMPRESS_WHITE_SPACE" },
          { priority: 1, type: "LOWERCASE" },
        ],
      },
    },
  ],
};

/**
 * Matches requests with a credential. WAF does not count requests without the header, and would count all those with an
 * empty one as those of one caller.
 * https://docs.aws.amazon.com/waf/latest/developerguide/waf-rate-based-example-limit-missing-header.html
 */
const hasCredential: wafv2.CfnWebACL.StatementProperty = {
  sizeConstraintStatement: {
    fieldToMatch: { singleHeader: { Name: AUTHORIZATION } },
    comparisonOperator: "GT",
    size: 0,
    textTransformations: [{ priority: 0, type: "NONE" }],
  },
};

/**
 * Matches the paths of the endpoints with a throttle of their own or without a credential, by the verb at their end, or by the name of
 * the list and an id. A slash after it and `..` do not hide it: AWS does not document whether API Gateway resolves them.
 * https://docs.aws.amazon.com/waf/latest/developerguide/waf-rule-statement-transformation.html
 */
function isThrottled(): wafv2.CfnWebACL.StatementProperty {
  const limited = routeRows.filter(({ throttle, access }) => throttle || access === "anyone");
  const verbs = limited.map(({ path }) => /[^/]+(\/\{\w+\})?$/.exec(path)?.[0].replace(/\{\w+\}/, "[^/]+"));
  return {
    regexMatchStatement: {
      fieldToMatch: { uriPath: {} },
      regexString: `/(${[...new Set(verbs)].join("|")})/*$`,
      textTransformations: [
        { priority: 0, type: "URL_DECODE" },
        { priority: 1, type: "NORMALIZE_PATH" },
      ],
    },
  };
}

/** Samples of requests are off: they would contain headers, and so credentials. */
function visibility(metricName: string): wafv2.CfnWebACL.VisibilityConfigProperty {
  return { metricName, cloudWatchMetricsEnabled: true, sampledRequestsEnabled: false };
}
