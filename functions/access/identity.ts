import * as z from "zod/mini";

/**
 * The authenticated caller. Endpoints read it only from the request context, which the authorizer writes.
 */
export interface Identity {
  userId: string;
  /** Kind of the credential. Both kinds have the permissions of the user. */
  authType: "jwt" | "api_key";
  /** Id of the API key; absent for a JWT. */
  keyId?: string | undefined;
}

/** The authorizer context as API Gateway passes it: all values are text, and API Gateway adds its own entries. */
export const identityContext = z.object({
  userId: z.string(),
  authType: z.enum(["jwt", "api_key"]),
  keyId: z.optional(z.string()),
});
