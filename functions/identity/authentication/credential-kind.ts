import type { Identity } from "../../foundation/access/identity.ts";
import type { LastUse } from "../api-keys/api-key.ts";
import type { Jwt } from "./jwt.ts";

export interface IdentityRequest {
  /** The project that the request is for, on which the permissions of a workflow depend; undefined = none. */
  projectId: string | undefined;
  /** Returns what is stored as the last use of an API key; called only if it is written. */
  lastUse: () => LastUse;
  now: Date;
}

/** What a kind of credential makes of a token. */
export interface Accepted {
  authType: Identity["authType"];
  /**
   * Verifies the token and returns its caller.
   * @throws ApiError with the status 401 when the credential is not valid; another error when it could not be checked, such as
   *   an outage
   */
  identify(request: IdentityRequest): Promise<Identity>;
}

/**
 * Returns undefined for a token of another kind. Verifies nothing.
 * @param jwt the token, parsed; undefined = it does not have the form of a JWT
 */
export type CredentialKind = (token: string, jwt: Jwt | undefined) => Accepted | undefined;
