import * as z from "zod/mini";
import { permissionSet } from "../../foundation/access/platform-permissions.ts";
import { ISSUER_NAME } from "../../foundation/manifest/ci-systems.ts";
import { workflowPermissions } from "../../foundation/manifest/permissions.ts";
import { displayName, fields, orRequired, printableText } from "../../foundation/schema/input.ts";

/* The input of the endpoint for trusted workflows. A module of its own: the authorizer does not load it. */

const MAX_CLAIM_CHARACTERS = 255;

/**
 * A numeric id of a repository or its owner, as text. A name is not accepted: when a repository is renamed or deleted,
 * someone else may take its name.
 */
const numericId = z
  .string(orRequired("must be a string of digits"))
  .check(z.regex(/^[1-9]\d{0,19}$/, "must be the numeric id as a string of digits, because a name can be taken over"));

const exactText = printableText.check(
  z.minLength(1, "must not be empty"),
  z.maxLength(MAX_CLAIM_CHARACTERS, `must be at most ${MAX_CLAIM_CHARACTERS} characters long`),
);

// https://git-scm.com/docs/git-check-ref-format: the wildcards are not allowed in a ref.
const REF = /^refs\/[^*?[]+$/;
/** The file may be read from a branch, a tag or a commit. */
const WORKFLOW_REF = /^[^@*?[]+@[^*?[]+$/;
const EVENT_NAME = /^[a-z_]+$/;

export const trustedWorkflowInput = () =>
  fields({
    name: z.optional(displayName),
    issuer: z.string(orRequired("must be a string")).check(z.regex(ISSUER_NAME, "must be the name of an issuer")),
    repository_id: numericId,
    repository_owner_id: z.optional(numericId),
    ref: z.optional(
      exactText.check(z.regex(REF, "must be a full ref such as refs/heads/main; wildcards are not accepted")),
    ),
    environment: z.optional(exactText),
    job_workflow_ref: z.optional(
      exactText.check(
        z.regex(
          WORKFLOW_REF,
          "must be a file with its ref such as acme/shop/.github/workflows/deploy.yml@refs/heads/main; wildcards are not accepted",
        ),
      ),
    ),
    event_name: z.optional(exactText.check(z.regex(EVENT_NAME, "must be the name of an event such as push"))),
    permissions: permissionSet(workflowPermissions),
  });
export type TrustedWorkflowInput = z.infer<ReturnType<typeof trustedWorkflowInput>>;
