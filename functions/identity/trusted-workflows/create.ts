import { randomBytes } from "node:crypto";
import { projectOf } from "../../foundation/access/member-store.ts";
import { requireActive } from "../../foundation/access/suspension-store.ts";
import { created, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { invalidField } from "../../foundation/schema/input.ts";
import { createTrustedWorkflow, TRUSTED_WORKFLOW_RANDOM_BYTES, toResponse } from "./trusted-workflow.ts";
import { trustedWorkflowInput } from "./trusted-workflow-input.ts";
import * as trustedWorkflows from "./trusted-workflow-store.ts";
import type { WorkflowIssuer } from "./workflow-issuer.ts";
import { workflowIssuers } from "./workflow-issuers.ts";

/** Lets the workflows of a repository act in a project, with the tokens that their CI system issues. */
export const handler = defineEndpoint(endpoints.createTrustedWorkflow, {
  input: trustedWorkflowInput,
  async run({ input, params, identity, actor, onceOnly, now }) {
    await requireActive(params.project_id);
    const random = randomBytes(TRUSTED_WORKFLOW_RANDOM_BYTES);
    const trust = createTrustedWorkflow(input, issuerNamed(input.issuer), params.project_id, now, random);
    const project = await projectOf(identity.userId, params.project_id);
    const response = toResponse(trust);
    await trustedWorkflows.insert(trust, project?.name ?? "", actor, onceOnly(response));
    return created(response);
  },
});

/** @throws ApiError `validation_error` that lists the issuers of the stage */
function issuerNamed(name: string): WorkflowIssuer {
  const issuers = workflowIssuers();
  const issuer = issuers.find((each) => each.name === name);
  if (issuer !== undefined) return issuer;
  if (issuers.length === 0)
    throw invalidField(
      "issuer",
      "is not accepted: this service accepts no workflows until its operator sets OIDC_ISSUERS",
    );
  throw invalidField("issuer", `must be one of ${issuers.map((each) => each.name).join(", ")}`);
}
