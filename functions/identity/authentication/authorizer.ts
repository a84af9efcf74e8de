import type { APIGatewayAuthorizerResult, APIGatewayRequestAuthorizerEvent } from "aws-lambda";
import { type Identity, toContext } from "../../foundation/access/identity.ts";
import { KEY_NOT_LOOKED_UP } from "../../foundation/manifest/metrics.ts";
import { settings } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { canonicalUuid } from "../../foundation/platform/uuid.ts";
import { useOf } from "../api-keys/api-key.ts";
import { type Credential, headerValues, readCredential } from "./credential.ts";
import { ClaimError, type Jwt, KeyNotLookedUpError } from "./jwt.ts";

/**
 * Authenticates the caller of every request. API Gateway caches no result, so a deleted key is rejected at once. For an
 * invalid credential it returns a Deny policy with an error code, which the gateway response ACCESS_DENIED converts to
 * a 401. It throws only for an internal error, such as an outage, which API Gateway converts to a 503: alarms count what it
 * throws. While the keys of an issuer cannot be fetched and none are cached, a token of it is such an error. With a key that is not
 * cached it may also be the invention of a stranger, so that is no error of this function, nor is it when strangers invent more keys
 * than are looked up: it returns null. For a result without a
 * policy, API Gateway sends the response AUTHORIZER_CONFIGURATION_ERROR, a 503 with Retry-After.
 */
export async function handler(event: APIGatewayRequestAuthorizerEvent): Promise<APIGatewayAuthorizerResult | null> {
  return log.scope({ request_id: event.requestContext.requestId }, () => authorize(event));
}

async function authorize(event: APIGatewayRequestAuthorizerEvent): Promise<APIGatewayAuthorizerResult | null> {
  let credential: Credential | undefined;
  try {
    credential = readCredential(event.multiValueHeaders ?? {});
    return allow(event, await identifyCaller(event, credential, new Date()));
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return deny(event, error, credential?.jwt);
    if (error instanceof KeyNotLookedUpError) {
      // Alarms do not count it as an error of the API: strangers who invent keys would page.
      const version = settings.functionVersion();
      log.info("credential not decided", { reason: KEY_NOT_LOOKED_UP, version }, { rejectedCredentials: 1 });
      return null;
    }
    if (error instanceof ApiError && error.code === "service_unavailable") {
      log.warn("credential not decided", { reason: error.code, detail: error.message });
      return null;
    }
    log.error("credential could not be checked", error);
    throw error;
  }
}

/** https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-lambda-authorizer-input.html */
async function identifyCaller(
  event: APIGatewayRequestAuthorizerEvent,
  credential: Credential | undefined,
  now: Date,
): Promise<Identity> {
  if (credential === undefined) {
    throw new ApiError("unauthorized", "Send a JWT or an API key in one header 'Authorization: Bearer <token>'.");
  }
  const projectId = canonicalUuid(event.pathParameters?.project_id);
  return credential.identify({ projectId, lastUse: () => lastUse(event, now), now });
}

function lastUse({ requestContext, multiValueHeaders }: APIGatewayRequestAuthorizerEvent, now: Date) {
  const [userAgent] = headerValues(multiValueHeaders ?? {}, "user-agent");
  return useOf(now, requestContext.identity?.sourceIp, userAgent);
}

const allow = (event: APIGatewayRequestAuthorizerEvent, identity: Identity) =>
  policy("Allow", identity.userId, event.methodArn, toContext(identity));

/** Logs the reason of the rejection, and of a JWT which key and claim. Accepted callers are in the access log of API Gateway. */
function deny(
  event: APIGatewayRequestAuthorizerEvent,
  error: ApiError,
  jwt: Jwt | undefined,
): APIGatewayAuthorizerResult {
  const { code, message } = error;
  const version = settings.functionVersion();
  const detail = code === "invalid_token" ? message : undefined;
  const { header, claims } = jwt ?? {};
  const { claim, values } = error instanceof ClaimError ? error : {};
  const named = { alg: header?.alg, kid: header?.kid, iss: claims?.iss, ...values };
  const texts = Object.fromEntries(Object.entries(named).map(([name, value]) => [name, shortText(value)]));
  log.info("credential rejected", { reason: code, detail, version, claim, ...texts }, { rejectedCredentials: 1 });
  return policy("Deny", "anonymous", event.methodArn, { errorCode: code, errorMessage: message });
}

const MAX_LOGGED_CHARACTERS = 200;

/** The log shows the beginning of a value: its length is the choice of the caller. */
const shortText = (value: unknown): string | undefined =>
  (typeof value === "string" ? value : JSON.stringify(value))?.slice(0, MAX_LOGGED_CHARACTERS);

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
