import * as z from "zod/mini";
import { workflowPermissions } from "../../functions/foundation/manifest/permissions.ts";
import type { toResponse } from "../../functions/identity/trusted-workflows/trusted-workflow.ts";
import { permissionMeanings } from "./api-key.ts";
import { type FieldsOf, id, instant, oneOf, text } from "./fields.ts";

const permission = oneOf<string>("A permission.", {
  ...Object.fromEntries(workflowPermissions.map((name) => [name, permissionMeanings[name]])),
  "projects:read": "list the project",
});

/** A workflow that a project trusts. */
export const trustedWorkflowSchema = z.strictObject({
  id: id("Id of the trusted workflow. The workflow acts as the user `workflow:<id>`."),
  project_id: id("Id of the project in which the workflow may act."),
  name: z.nullable(text("Display name of the trusted workflow; null = none.")),
  issuer: text("Name of the issuer of the tokens."),
  repository_id: text("Numeric id of the repository.", { pattern: "^[1-9][0-9]{0,19}$" }),
  repository_owner_id: z.nullable(text("Numeric id that the owner of the repository must have; null = any.")),
  ref: z.nullable(text("Full ref that the workflow must run for; null = any.")),
  environment: z.nullable(text("Environment that the job must use; null = any, or none.")),
  job_workflow_ref: z.nullable(text("Workflow file with its ref that must define the job; null = any.")),
  event_name: z.nullable(text("Event that must have started the workflow; null = any.")),
  permissions: z
    .array(permission)
    .check(z.describe("What the workflow may do in the project, also of `platform_permissions`.")),
  created_at: instant("Time of creation."),
} satisfies FieldsOf<ReturnType<typeof toResponse>>);
