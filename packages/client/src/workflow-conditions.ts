import type { TrustedWorkflow } from "./client.ts";

/** `refs/heads/main, environment production`; `any ref` without a condition. */
export function conditionsOf(workflow: TrustedWorkflow): string {
  const { ref, environment, job_workflow_ref: file, event_name: event, repository_owner_id: owner } = workflow;
  const conditions = [
    ref,
    environment && `environment ${environment}`,
    file && `file ${file}`,
    event && `event ${event}`,
    owner && `owner ${owner}`,
  ];
  return conditions.filter(Boolean).join(", ") || "any ref";
}
