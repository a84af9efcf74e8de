import type { APIGatewayAuthorizerResult, APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import { type Identity, toContext } from "../access/identity.ts";
import { endOf, hashApiKey, isApiKey, isExpired, isLastUsedStale, isReplaced, useOf } from "../api-keys/api-key.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { settings } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { canonicalUuid } from "../platform/uuid.ts";
import type { WorkflowIssuer } from "../trusted-workflows/workflow-issuer.ts";
import { workflowIssuers } from "../trusted-workflows/workflow-issuers.ts";
import { unverifiedIssuer } from "./compact-jwt.ts";
import { headerValues, readCredential } from "./credential.ts";
import { verifyJwt } from "./verify-jwt.ts";
import { identifyWorkflow } from "./workflow-identity.ts";

/**
 * Authenticates the caller of every request. API Gateway caches no result, so a deleted key is rejected at once. For an
 * invalid credential it returns a Deny policy with an error code, which the gateway response ACCESS_DENIED converts to
 * a 401. It throws only for an internal error, such as an outage, which API Gateway converts to a 503: alarms count what it
 * throws. While the keys of an issuer cannot be fetched and none are cached, a token of it is such an error.
 */
export async function handler(event: APIGatewayRequestAuthorizerEvent): Promise<APIGatewayAuthorizerResult> {
  return log.scope({ request_id: event.requestContext.requestId }, () => authorize(event));
}

async function authorize(event: APIGatewayRequestAuthorizerEvent): Promise<APIGatewayAuthorizerResult> {
  try {
    return allow(event, await identify(event, new Date()));
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return deny(event, error);
    log.error("credential could not be checked", error);
    throw error;
  }
}

async function identify(event: APIGatewayRequestAuthorizerEvent, now: Date): Promise<Identity> {
  const credential = readCredential(event.multiValueHeaders ?? {});
  if (credential?.kind === "api_key") return identifyByKey(credential.token, event, now);
  if (credential?.kind === "jwt") return identifyByJwt(credential.token, event, now);
  throw new ApiError("unauthorized", "Send a JWT or an API key in one header 'Authorization: Bearer <token>'.");
}

/**
 * The issuer that a token names chooses how it is verified. A token of a CI system never signs in a user.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-lambda-authorizer-input.html
 */
async function identifyByJwt(
  token: string,
  { pathParameters }: APIGatewayRequestAuthorizerEvent,
  now: Date,
): Promise<Identity> {
  const issuers = workflowIssuers();
  const issuer = issuers.length === 0 ? undefined : issuerOf(token, issuers);
  if (issuer === undefined) return { userId: await verifyJwt(token, now), authType: "jwt" };
  return identifyWorkflow(token, issuer, canonicalUuid(pathParameters?.project_id), now);
}

function issuerOf(token: string, issuers: WorkflowIssuer[]): WorkflowIssuer | undefined {
  const named = unverifiedIssuer(token);
  return issuers.find(({ issuer }) => issuer === named);
}

async function identifyByKey(token: string, event: APIGatewayRequestAuthorizerEvent, now: Date): Promise<Identity> {
  const apiKey = isApiKey(token) ? await apiKeys.findByHash(hashApiKey(token)) : undefined;
  // Unknown, malformed, deleted and replaced keys get the same error, which must not reveal which keys exist or existed.
  if (!apiKey || isReplaced(apiKey, now))
    throw new ApiError("invalid_api_key", "The API key is not valid. Check it, or use another one.");
  if (isExpired(apiKey, now)) throw new ApiError("api_key_expired", "The API key has expired. Use another one.");
  if (isLastUsedStale(apiKey, now, settings.lastUsedResolutionSeconds())) {
    // Best effort: the request succeeds even if the time of last use cannot be written.
    await apiKeys
      .updateLastUsed(apiKey, lastUse(event, now), AbortSignal.timeout(1_000))
      .catch((error: unknown) => log.error("last_used_at not written", error, { key_id: apiKey.id }));
  }
  const { user_id, id, key_prefix, permissions, project_ids } = apiKey;
  return {
    userId: user_id,
    authType: "api_key",
    keyId: id,
    keyPrefix: key_prefix,
    permissions,
    projectIds: project_ids,
    expiresAt: endOf(apiKey),
  };
}

/** https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-lambda-authorizer-input.html */
function lastUse({ requestContext, multiValueHeaders }: APIGatewayRequestAuthorizerEvent, now: Date) {
  const [userAgent] = headerValues(multiValueHeaders ?? {}, "user-agent");
  return useOf(now, requestContext.identity?.sourceIp, userAgent);
}

const allow = (event: APIGatewayRequestAuthorizerEvent, identity: Identity) =>
  policy("Allow", identity.userId, event.methodArn, toContext(identity));

/** Logs the reason of the rejection. Accepted callers are in the access log of API Gateway. */
function deny(event: APIGatewayRequestAuthorizerEvent, { code, message }: ApiError): APIGatewayAuthorizerResult {
  const version = settings.functionVersion();
  log.info("credential rejected", { reason: code, version }, { rejectedCredentials: 1 });
  return policy("Deny", "anonymous", event.methodArn, { errorCode: code, errorMessage: message });
}

/**
 * Returns a policy for the whole stage. Each endpoint checks whether the caller may use it (`requireAccess`).
 * @param methodArn `arn:…:<api>/<stage>/<method>/<path>`
 */
function policy(
  effect: "Allow" | "Deny",
  principalId: string,
  methodArn: string,
  context: Record<string, string>,
): APIGatewayAuthorizerResult {
  const [api, stage] = methodArn.split("/");
  return {
    principalId,
    policyDocument: {
      Version: "2012-10-17",
      Statement: [{ Action: "execute-api:Invoke", Effect: effect, Resource: `${api}/${stage}/*` }],
    },
    context,
  };
}
