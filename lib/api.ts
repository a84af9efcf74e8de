import { Duration } from "aws-cdk-lib";
import * as apigateway from "aws-cdk-lib/aws-apigateway";
import { Construct } from "constructs";
import { endpoints } from "../functions/manifest/endpoints.ts";
import { cors } from "../functions/manifest/response-headers.ts";
import { accessLog } from "./access-log.ts";
import { addCustomDomain } from "./domain.ts";
import { addFirewall } from "./firewall.ts";
import { addFallbackMethods, addGatewayResponses } from "./gateway-errors.ts";
import { ServiceFunction, type StageContext } from "./service-function.ts";
import type { Stage } from "./stage.ts";

// The answer of an endpoint is a few reads and writes. API Gateway itself gives up after 29 s.
const ENDPOINT = { timeoutSeconds: 10, memoryMb: 512 };

export interface Api {
  restApi: apigateway.RestApi;
  /** The Lambda of each endpoint, by its path below `functions/`. */
  functions: Record<string, ServiceFunction>;
}

/** The REST API: one Lambda per row of functions/manifest/endpoints.ts, all behind the authorizer. */
export function createApi(scope: Construct, surroundings: StageContext, authorizer: ServiceFunction): Api {
  const { stage } = surroundings;
  const restApi = new apigateway.RestApi(scope, "Api", {
    restApiName: scope.node.id,
    endpointTypes: [apigateway.EndpointType.REGIONAL],
    // One address: what stands before the domain is not to be walked around.
    disableExecuteApiEndpoint: stage.domain !== undefined,
    cloudWatchRole: stage.setsApiGatewayLogRole ?? true,
    deployOptions: {
      stageName: stage.name,
      throttlingRateLimit: stage.throttle.requestsPerSecond,
      throttlingBurstLimit: stage.throttle.burst,
      ...accessLog(scope, surroundings),
    },
    ...(stage.corsOrigins && { defaultCorsPreflightOptions: preflight(stage.corsOrigins) }),
  });
  // Its output "Endpoint" would repeat ours with a trailing slash.
  restApi.node.tryRemoveChild("Endpoint");

  const functions = routeEndpoints(restApi, surroundings, createAuthorizer(scope, authorizer));
  addFallbackMethods(restApi, stage);
  addGatewayResponses(restApi, stage);
  if (stage.domain) addCustomDomain(scope, restApi, stage.domain);
  if (stage.firewall) addFirewall(scope, restApi, stage.firewall);
  return { restApi, functions };
}

function preflight(origins: string[]): apigateway.CorsOptions {
  return {
    allowOrigins: origins,
    allowMethods: cors.allowedMethods,
    allowHeaders: cors.allowedHeaders,
    maxAge: Duration.seconds(cors.maxAgeSeconds),
  };
}

function createAuthorizer(scope: Construct, authorizer: ServiceFunction): apigateway.IAuthorizer {
  return new apigateway.RequestAuthorizer(scope, "Authorizer", {
    handler: authorizer.entry,
    // Without the header API Gateway answers 401 by itself.
    identitySources: [apigateway.IdentitySource.header("Authorization")],
    // No cache, which would be on by default: a deleted API key must not live on in it.
    resultsCacheTtl: Duration.seconds(0),
  });
}

function routeEndpoints(
  api: apigateway.RestApi,
  surroundings: StageContext,
  authorizer: apigateway.IAuthorizer,
): Api["functions"] {
  const folder = new Construct(api.stack, "Endpoints");
  const created = endpoints.map((row) => {
    const { method, path, file } = row;
    const endpoint = new ServiceFunction(folder, surroundings, {
      ...ENDPOINT,
      ...row,
      description: `${method} ${path}`,
      environment: { CORS_ORIGINS: surroundings.stage.corsOrigins?.join(",") },
    });
    const integration = new apigateway.LambdaIntegration(endpoint.entry, { allowTestInvoke: false });
    api.root.resourceForPath(path).addMethod(method, integration, {
      authorizationType: apigateway.AuthorizationType.CUSTOM,
      authorizer,
    });
    return [file, endpoint] as const;
  });
  return Object.fromEntries(created);
}

/** Where the API is, without a trailing slash: clients append `/v1/…`. */
export function baseUrl(api: apigateway.RestApi, { domain }: Stage): string {
  if (domain) return `https://${domain.name}`;
  const { region, urlSuffix } = api.stack;
  return `https://${api.restApiId}.execute-api.${region}.${urlSuffix}/${api.deploymentStage.stageName}`;
}
