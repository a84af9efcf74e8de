import { chargeSignIn } from "../../foundation/budgets/request-budget-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { requireProjects } from "../api-keys/require-projects.ts";
import { decisionInput, keyOf, toShown } from "./sign-in.ts";
import * as signIns from "./sign-in-store.ts";

/** Returns, approves or denies the sign-in of a code. Requires a JWT: a leaked key must not create other keys. */
export const handler = defineEndpoint(endpoints.decideSignIn, {
  input: decisionInput,
  async run({ input, identity: { userId: user_id }, actor: by, now }) {
    // Limits the guessing of codes.
    await chargeSignIn(`user:${user_id}`, now);
    const signIn = await signIns.getByCode(input.user_code, now);
    const { decision } = input;
    if (decision === undefined) return ok(toShown(signIn));
    if (decision === "deny") {
      await signIns.decide(signIn, { decision, by, user_id });
    } else {
      const key = keyOf(input, now);
      await requireProjects(user_id, key.project_ids);
      await signIns.decide(signIn, { decision, by, user_id, key });
    }
    return ok(toShown({ ...signIn, decision }));
  },
});
