import { requireActive } from "../../foundation/access/suspension-store.ts";
import { chargeSignIn } from "../../foundation/budgets/request-budget-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { allEnded } from "../../foundation/platform/parallel.ts";
import { requireMember } from "../api-keys/require-member.ts";
import { decisionInput, keyOf, toShown } from "./sign-in.ts";
import * as signIns from "./sign-in-store.ts";

/**
 * Shows the sign-in that a code belongs to, or approves or denies it. With a JWT only: with a leaked key an attacker could create
 * another one.
 */
export const handler = defineEndpoint(endpoints.decideSignIn, {
  input: decisionInput,
  async run({ input, identity: { userId: user_id }, actor: by, now }) {
    // Against guessing.
    await chargeSignIn(`user:${user_id}`, now);
    const signIn = await signIns.getByCode(input.user_code, now);
    const { decision } = input;
    if (decision === undefined) return ok(toShown(signIn));
    if (decision === "deny") {
      await signIns.decide(signIn, { decision, by, user_id });
    } else {
      const key = keyOf(input, now);
      await requireMember(user_id, key.project_ids);
      await allEnded(key.project_ids?.map(requireActive) ?? []);
      await signIns.decide(signIn, { decision, by, user_id, key });
    }
    return ok(toShown({ ...signIn, decision }));
  },
});
