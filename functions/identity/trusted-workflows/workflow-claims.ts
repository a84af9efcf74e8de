import type { CiSystem } from "../../foundation/manifest/ci-systems.ts";
import { isPrintable } from "../../foundation/schema/unseen-text.ts";
import type { Workflow } from "./workflow-grant.ts";

/**
 * The claims that contain each fact:
 * - GitHub: https://docs.github.com/en/actions/reference/security/oidc. In a pull request `ref` is `refs/pull/<n>/merge`.
 *   In a job of a reusable workflow `job_workflow_ref` names the called file.
 * - GitLab: https://docs.gitlab.com/ci/secrets/id_token_authentication/. Its `ref` is the same for a branch and a tag with
 *   one name, so `ref_path` is used. In a merge request from a fork, `project_id` is that of the fork.
 */
const claimNames: Record<CiSystem, Record<keyof Workflow, string>> = {
  github: {
    repositoryId: "repository_id",
    ownerId: "repository_owner_id",
    ref: "ref",
    environment: "environment",
    workflowFile: "job_workflow_ref",
    event: "event_name",
    repository: "repository",
    runId: "run_id",
  },
  gitlab: {
    repositoryId: "project_id",
    ownerId: "namespace_id",
    ref: "ref_path",
    environment: "environment",
    workflowFile: "ci_config_ref_uri",
    event: "pipeline_source",
    repository: "project_path",
    runId: "pipeline_id",
  },
};

/** Name of the claim that contains the id of the repository. */
export const repositoryClaimOf = (style: CiSystem): string => claimNames[style].repositoryId;

const MAX_CHARACTERS = 255;
const isId = (text: string): boolean => /^[1-9]\d{0,19}$/.test(text);
const isText = (text: string): boolean => text !== "" && text.length <= MAX_CHARACTERS && isPrintable(text);

/**
 * Reads the claims of a token with a valid signature.
 * @returns undefined when the token does not contain the id of a repository
 */
export function workflowFromClaims(payload: unknown, style: CiSystem): Workflow | undefined {
  const names = claimNames[style];
  const read = (name: string, isValid: (text: string) => boolean): string | undefined => {
    const text = textOf(payload, name);
    return text !== undefined && isValid(text) ? text : undefined;
  };
  const repositoryId = read(names.repositoryId, isId);
  if (repositoryId === undefined) return undefined;
  return {
    repositoryId,
    ownerId: read(names.ownerId, isId),
    ref: read(names.ref, isText),
    environment: read(names.environment, isText),
    workflowFile: read(names.workflowFile, isText),
    event: read(names.event, isText),
    repository: read(names.repository, isText),
    runId: read(names.runId, isId),
  };
}

/** Issuers write an id as text or as a number. A number that a double cannot hold exactly is not accepted. */
function textOf(payload: unknown, name: string): string | undefined {
  if (typeof payload !== "object" || payload === null) return undefined;
  const value: unknown = Object.getOwnPropertyDescriptor(payload, name)?.value;
  if (typeof value === "string") return value;
  return Number.isSafeInteger(value) ? String(value) : undefined;
}
