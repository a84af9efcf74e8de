import * as z from "zod/mini";

/** Who is calling. The authorizer writes it into the request's context, and the endpoints read it from there alone. */
export interface Identity {
  userId: string;
  /** The credential that was sent. Both have the permissions of the user. */
  authType: "jwt" | "api_key";
  /** Id of the API key; absent for a JWT. */
  keyId?: string | undefined;
}

/** The shape in which API Gateway hands the authorizer's context on: text values beside entries of its own. */
export const identityContext = z.object({
  userId: z.string(),
  authType: z.enum(["jwt", "api_key"]),
  keyId: z.optional(z.string()),
});
