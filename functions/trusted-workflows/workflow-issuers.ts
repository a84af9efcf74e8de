import { settings } from "../platform/env.ts";
import { parseWorkflowIssuers, type WorkflowIssuer } from "./workflow-issuer.ts";

let parsed: { setting: string | undefined; issuers: WorkflowIssuer[] } | undefined;

/**
 * Returns the issuers that this stage accepts tokens of workflows from; empty = none.
 * @throws SettingError when OIDC_ISSUERS is not valid
 */
export function workflowIssuers(): WorkflowIssuer[] {
  const setting = settings.oidcIssuers();
  if (parsed === undefined || parsed.setting !== setting) {
    parsed = { setting, issuers: parseWorkflowIssuers(setting, settings.isLocal()) };
  }
  return parsed.issuers;
}
