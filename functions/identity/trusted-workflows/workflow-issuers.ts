import { settings } from "../../foundation/platform/env.ts";
import { jsonListSetting } from "../../foundation/schema/json-setting.ts";
import { parseWorkflowIssuers } from "./workflow-issuer.ts";

/** Returns the issuers that this stage accepts tokens of workflows from. */
export const workflowIssuers = jsonListSetting(
  "OIDC_ISSUERS",
  settings.oidcIssuers,
  '[{"name":"github","audience":"https://api.example.com"}]',
  (value) => parseWorkflowIssuers(value, settings.isLocal()),
);
