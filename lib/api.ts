import { Duration } from "aws-cdk-lib";
import * as apigateway from "aws-cdk-lib/aws-apigateway";
import * as iam from "aws-cdk-lib/aws-iam";
import { Construct } from "constructs";
import { routeRows } from "../functions/foundation/manifest/function-rows.ts";
import { protocols } from "../functions/foundation/manifest/protocols.ts";
import { accessLog } from "./access-log.ts";
import { addApiDomain, tls } from "./api-domain.ts";
import { addFallbackMethods } from "./fallback-methods.ts";
import { addFirewall } from "./firewall.ts";
import { addGatewayResponses } from "./gateway-responses.ts";
import { createLogGroup } from "./log-group.ts";
import { ServiceFunction, type StageContext } from "./service-function.ts";
import { firewallOf, type Stage } from "./stage.ts";

/** Defaults of the endpoints, which do a few reads and writes each. API Gateway's own timeout is 29 s. */
const ENDPOINT = { timeoutSeconds: 10, memoryMb: 512 };

export interface Api {
  restApi: apigateway.RestApi;
  /** The Lambda of each endpoint, by its row id. */
  functions: Record<string, ServiceFunction>;
}

/** Creates the REST API: one Lambda per row of functions/foundation/manifest/{endpoints,protocols}.ts, behind the authorizer unless its access is `anyone`. */
export function createApi(scope: Construct, context: StageContext, authorizer: ServiceFunction): Api {
  const { stage } = context;
  const restApi = new apigateway.RestApi(scope, "Api", {
    restApiName: scope.node.id,
    endpointTypes: [apigateway.EndpointType.REGIONAL],
    // A custom domain is the only address, so that requests cannot bypass a proxy in front of it.
    disableExecuteApiEndpoint: stage.domain !== undefined,
    cloudWatchRole: stage.setsApiGatewayLogRole ?? true,
    deployOptions: {
      stageName: stage.name,
      throttlingRateLimit: stage.throttle.requestsPerSecond,
      throttlingBurstLimit: stage.throttle.burst,
      methodOptions: ownThrottles(stage),
      ...accessLog(scope, context),
    },
  });
  Object.assign(restApi.node.defaultChild as apigateway.CfnRestApi, tls);
  // CDK's output "Endpoint" would repeat the output ApiUrl with a trailing slash.
  restApi.node.tryRemoveChild("Endpoint");

  const functions = routeEndpoints(restApi, context, createAuthorizer(scope, authorizer));
  addFallbackMethods(restApi, stage);
  addGatewayResponses(restApi, stage, baseUrl(restApi, stage));
  if (stage.domain) addApiDomain(scope, restApi, stage.domain);
  const firewall = firewallOf(stage);
  if (firewall) addFirewall(scope, restApi, firewall);
  return { restApi, functions };
}

/**
 * Returns the settings of the methods whose row has a throttle of its own. API Gateway would apply them instead of the
 * stage's, so both are compared.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-request-throttling.html
 */
function ownThrottles({ throttle }: Stage): Record<string, apigateway.MethodDeploymentOptions> {
  const settings = routeRows.flatMap(({ method, path, throttle: own }) => {
    if (!own) return [];
    const throttlingRateLimit = Math.min(own.requestsPerSecond, throttle.requestsPerSecond);
    const throttlingBurstLimit = Math.min(own.burst, throttle.burst);
    return [[`${path}/${method}`, { throttlingRateLimit, throttlingBurstLimit }] as const];
  });
  return Object.fromEntries(settings);
}

function createAuthorizer(scope: Construct, authorizer: ServiceFunction): apigateway.IAuthorizer {
  return new apigateway.RequestAuthorizer(scope, "Authorizer", {
    handler: authorizer.entry,
    // A request without this header gets 401 from API Gateway; the authorizer does not run.
    identitySources: [apigateway.IdentitySource.header("Authorization")],
    // 0 turns off the cache, which is on by default: a deleted API key must be rejected at the next request.
    resultsCacheTtl: Duration.seconds(0),
  });
}

function routeEndpoints(
  api: apigateway.RestApi,
  context: StageContext,
  authorizer: apigateway.IAuthorizer,
): Api["functions"] {
  const folder = new Construct(api.stack, "Endpoints");
  const authorized = { authorizationType: apigateway.AuthorizationType.CUSTOM, authorizer };
  const open = { authorizationType: apigateway.AuthorizationType.NONE };
  const { role: credentialsRole, allowToInvoke } = createInvoker(folder);
  // One for all: the streams have the names of the functions, and a query finds a failing endpoint without knowing it.
  const logGroup = createLogGroup(folder, "Logs", context);
  const created = routeRows.map((row) => {
    const { method, path, id, access } = row;
    const endpoint = new ServiceFunction(folder, context, {
      ...ENDPOINT,
      ...row,
      description: `${method} ${path}`,
      logGroup,
      environment: {
        CORS_ORIGINS: context.stage.corsOrigins?.join(","),
        ...(id in protocols && { API_ADDRESS: baseUrl(api, context.stage) }),
      },
    });
    const { functionArn } = endpoint.lambda;
    allowToInvoke(functionArn);
    const integration = new apigateway.AwsIntegration({
      service: "lambda",
      path: `2015-03-31/functions/${functionArn}/invocations`,
      proxy: true,
      options: { credentialsRole },
    });
    api.root.resourceForPath(path).addMethod(method, integration, access === "anyone" ? open : authorized);
    return [id, endpoint] as const;
  });
  return Object.fromEntries(created);
}

/**
 * Creates the role with which API Gateway invokes the endpoints. `LambdaIntegration` would add a permission to each, and
 * a stack has at most 500 resources.
 */
function createInvoker(scope: Construct): { role: iam.Role; allowToInvoke: (functionArn: string) => void } {
  const endpointsOnly = new iam.PolicyStatement({ actions: ["lambda:InvokeFunction"] });
  const role = new iam.Role(scope, "Invoker", {
    assumedBy: new iam.ServicePrincipal("apigateway.amazonaws.com"),
    inlinePolicies: { Invoke: new iam.PolicyDocument({ statements: [endpointsOnly] }) },
  });
  return { role, allowToInvoke: (functionArn) => endpointsOnly.addResources(functionArn) };
}

/**
 * Returns the address of the API without a trailing slash. Clients append `/v1/…`. It does not refer to the deployment, which needs
 * the functions that get the address.
 */
export function baseUrl(api: apigateway.RestApi, { domain, name }: Stage): string {
  if (domain) return `https://${domain.name}`;
  const { region, urlSuffix } = api.stack;
  return `https://${api.restApiId}.execute-api.${region}.${urlSuffix}/${name}`;
}
