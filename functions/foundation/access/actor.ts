import type { APIGatewayEventRequestContext } from "aws-lambda";
import { shownText } from "../schema/input.ts";
import type { Identity } from "./identity.ts";

/** Who made a change, as the audit log shows it. A field without a value is absent. */
export interface Actor {
  /**
   * `jwt`, `api_key`: a credential of a user. `workflow`: a CI job, whose `user_id` names the trusted workflow. `anonymous`: a
   * request without a credential. `platform`: a function that the platform invokes with IAM credentials. `system`: the
   * service itself, for example when it disables a webhook.
   */
  type: Identity["authType"] | "anonymous" | "platform" | "system";
  user_id?: string;
  /** Id of the API key. */
  credential_id?: string;
  /** Where a workflow runs: name of the repository, ref and id of the run, as its token says. */
  repository?: string;
  ref?: string;
  run_id?: string;
  /** IP address of the client. */
  address?: string;
  /** `User-Agent` of the client, without control characters, at most 256 characters. */
  user_agent?: string;
  request_id?: string;
}

export const platform: Actor = { type: "platform" };
export const system: Actor = { type: "system" };

const MAX_USER_AGENT_CHARACTERS = 256;

/** What API Gateway knows about the client. Not every way to invoke an endpoint has it. */
type Request = Pick<APIGatewayEventRequestContext, "requestId"> & {
  identity?: Partial<APIGatewayEventRequestContext["identity"]>;
};

/** Returns the actor of an API request. @param identity undefined = it has no credential */
export function actorOf(identity: Identity | undefined, { requestId, identity: client = {} }: Request): Actor {
  const { userId, authType = "anonymous", keyId, repository, ref, runId } = identity ?? {};
  const { sourceIp, userAgent } = client;
  return {
    type: authType,
    ...(userId && { user_id: userId }),
    ...(keyId && { credential_id: keyId }),
    ...(repository && { repository }),
    ...(ref && { ref }),
    ...(runId && { run_id: runId }),
    ...(sourceIp && { address: sourceIp }),
    ...(userAgent && { user_agent: shownText(printable(userAgent), MAX_USER_AGENT_CHARACTERS) }),
    request_id: requestId,
  };
}

const printable = (text: string): string => text.replaceAll(/\p{Cc}/gu, " ");
