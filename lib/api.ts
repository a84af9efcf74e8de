import { Duration } from "aws-cdk-lib";
import * as apigateway from "aws-cdk-lib/aws-apigateway";
import { Construct } from "constructs";
import { endpoints } from "../functions/endpoints.ts";
import { answerGatewayErrors, answerTheRest } from "./gateway-errors.ts";
import { ServiceFunction, type Surroundings } from "./service-function.ts";

// The answer of an endpoint is a few reads and writes. API Gateway itself gives up after 29 s.
const ENDPOINT = { timeoutSeconds: 10, memoryMb: 512 };

/** The REST API: one Lambda per row of functions/endpoints.ts, all behind the authorizer. */
export function createApi(
  scope: Construct,
  surroundings: Surroundings,
  authorizer: ServiceFunction,
): apigateway.RestApi {
  const { stage } = surroundings;
  const api = new apigateway.RestApi(scope, "Api", {
    restApiName: scope.node.id,
    endpointTypes: [apigateway.EndpointType.REGIONAL],
    cloudWatchRole: false,
    deployOptions: {
      stageName: stage.name,
      throttlingRateLimit: stage.throttle.requestsPerSecond,
      throttlingBurstLimit: stage.throttle.burst,
    },
  });
  // Its output "Endpoint" would repeat ours with a trailing slash.
  api.node.tryRemoveChild("Endpoint");

  routeEndpoints(api, surroundings, whoIsCalling(scope, authorizer));
  answerTheRest(api);
  answerGatewayErrors(api);
  return api;
}

function whoIsCalling(scope: Construct, authorizer: ServiceFunction): apigateway.IAuthorizer {
  return new apigateway.RequestAuthorizer(scope, "Authorizer", {
    handler: authorizer.lambda,
    // Without the header API Gateway answers 401 by itself.
    identitySources: [apigateway.IdentitySource.header("Authorization")],
    // No cache, which would be on by default: a deleted API key must not live on in it.
    resultsCacheTtl: Duration.seconds(0),
  });
}

function routeEndpoints(api: apigateway.RestApi, surroundings: Surroundings, authorizer: apigateway.IAuthorizer): void {
  const folder = new Construct(api.stack, "Endpoints");
  for (const row of endpoints) {
    const { method, path } = row;
    const endpoint = new ServiceFunction(folder, surroundings, {
      ...ENDPOINT,
      ...row,
      description: `${method} ${path}`,
    });
    const integration = new apigateway.LambdaIntegration(endpoint.lambda, { allowTestInvoke: false });
    api.root.resourceForPath(path).addMethod(method, integration, {
      authorizationType: apigateway.AuthorizationType.CUSTOM,
      authorizer,
    });
  }
}

/** Where the API is, without a trailing slash: clients append `/v1/…`. */
export function baseUrl(api: apigateway.RestApi): string {
  const { region, urlSuffix } = api.stack;
  return `https://${api.restApiId}.execute-api.${region}.${urlSuffix}/${api.deploymentStage.stageName}`;
}
