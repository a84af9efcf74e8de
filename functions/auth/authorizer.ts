import type { APIGatewayAuthorizerResult, APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import type { Identity } from "../access/identity.ts";
import { hashApiKey, isApiKey, isLastUsedStale } from "../api-keys/api-key.ts";
import * as apiKeys from "../api-keys/api-key-store.ts";
import { settings } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { readCredential } from "./credential.ts";
import { verifyJwt } from "./verify-jwt.ts";

/**
 * The one front door: API Gateway asks on every request who is calling (no result is cached, so a deleted key is refused at
 * once). A credential that does not hold is answered with a Deny policy and the reason, which the gateway response
 * ACCESS_DENIED turns into a 401; a fault is thrown, and becomes a 503.
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

async function identify({ multiValueHeaders }: APIGatewayRequestAuthorizerEvent, now: Date): Promise<Identity> {
  const credential = readCredential(multiValueHeaders ?? {});
  if (credential?.kind === "api_key") return identifyByKey(credential.token, now);
  if (credential?.kind === "jwt") return { userId: await verifyJwt(credential.token, now), authType: "jwt" };
  throw new ApiError("unauthorized", "Send a JWT or an API key in one header 'Authorization: Bearer <token>'.");
}

async function identifyByKey(token: string, now: Date): Promise<Identity> {
  const apiKey = isApiKey(token) ? await apiKeys.findByHash(hashApiKey(token)) : undefined;
  // Unknown, malformed and deleted are one answer: it says nothing about which keys exist or once did.
  if (!apiKey) throw new ApiError("invalid_api_key", "The API key is not valid. It may have been deleted.");
  if (isLastUsedStale(apiKey, now, settings.lastUsedResolutionSeconds())) {
    // The time of use is a service to the user; the request does not depend on it.
    await apiKeys
      .updateLastUsed(apiKey, now, AbortSignal.timeout(1_000))
      .catch((error: unknown) => log.error("last_used_at not written", error, { key_id: apiKey.id }));
  }
  return { userId: apiKey.user_id, authType: "api_key", keyId: apiKey.id };
}

const allow = (event: APIGatewayRequestAuthorizerEvent, identity: Identity) =>
  policy("Allow", identity.userId, event.methodArn, { ...identity });

/** Who is let in is in the gateway's access log already; of who is not, this is the one line. */
function deny(event: APIGatewayRequestAuthorizerEvent, { code, message }: ApiError): APIGatewayAuthorizerResult {
  log.info("credential refused", { reason: code }, { rejectedCredentials: 1 });
  return policy("Deny", "anonymous", event.methodArn, { errorCode: code, errorMessage: message });
}

/** `methodArn` is `arn:…:<api>/<stage>/<method>/<path>`. The policy covers the stage: who may call what is a row's access. */
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
