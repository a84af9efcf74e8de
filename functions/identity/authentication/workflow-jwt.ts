import { type Identity, reservedUserIds } from "../../foundation/access/identity.ts";
import { isContention } from "../../foundation/platform/aws.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import type { TrustedWorkflow } from "../trusted-workflows/trusted-workflow.ts";
import * as trustedWorkflows from "../trusted-workflows/trusted-workflow-store.ts";
import { repositoryClaimOf, workflowFromClaims } from "../trusted-workflows/workflow-claims.ts";
import {
  grantIn,
  grantWithoutProject,
  isTrusted,
  type TrustDigest,
  type Workflow,
} from "../trusted-workflows/workflow-grant.ts";
import type { WorkflowIssuer } from "../trusted-workflows/workflow-issuer.ts";
import { workflowIssuers } from "../trusted-workflows/workflow-issuers.ts";
import type { Accepted } from "./credential-kind.ts";
import { ClaimError, invalidToken, type Jwt, requireSignInHeader, requireWorkflowClaims, tokenExpired } from "./jwt.ts";
import { claimRules, isSignedWithPublicKey } from "./user-jwt.ts";

/** Signature algorithms of the tokens of CI systems. */
const ALGORITHMS = ["RS256", "ES256"];

/** The token of a CI system that the stage accepts. The issuer that a token names chooses how it is verified: it never signs in a user. */
export function workflowJwt(token: string, jwt: Jwt | undefined): Accepted | undefined {
  const issuer = workflowIssuers().find((each) => each.issuer === jwt?.claims.iss);
  return (
    issuer && {
      authType: "workflow",
      identify: ({ projectId, now }) => identifyWorkflow(requireSignInHeader(token, jwt), issuer, projectId, now),
    }
  );
}

/**
 * Verifies the token of a workflow, and returns what the projects that trust it allow. Reads once; a second time only
 * for a project that does not trust the workflow, so that a mistyped project is a 404 and a rejected token a 401.
 * @param projectId the project in the path of the request; undefined = none
 * @throws ApiError `invalid_token` or `token_expired`; `workflow_not_trusted` when no project trusts the repository, or
 *   none with its claims, or when its repository sends more requests than DynamoDB reads its lists for. That is not an error of the
 *   service, which would count for alarms: the owner of a repository chooses its rate
 * @throws FetchError when the keys of the issuer are unavailable; the token may be valid
 */
async function identifyWorkflow(
  jwt: Jwt,
  issuer: WorkflowIssuer,
  projectId: string | undefined,
  now: Date,
): Promise<Identity> {
  const workflow = await verifyWorkflow(jwt, issuer, now);
  const repository = { issuer_url: issuer.issuer, repository_id: workflow.repositoryId };
  const matching = async (reading: Promise<(TrustedWorkflow | TrustDigest)[]>) => {
    const trusts = await reading.catch((error: unknown) => {
      throw isContention(error) ? tooManyRequests(workflow, error) : error;
    });
    return trusts.filter((trust) => isTrusted(workflow, trust));
  };
  const requested =
    projectId === undefined ? [] : await matching(trustedWorkflows.listOfRepositoryIn(projectId, repository));
  const grant =
    grantIn(requested) ?? grantWithoutProject(await matching(trustedWorkflows.listOfRepository(repository)));
  if (grant === undefined) throw notTrusted(issuer, workflow);
  return {
    userId: reservedUserIds.workflow + grant.trustId,
    authType: "workflow",
    permissions: grant.permissions,
    projectIds: grant.projectIds,
    repositoryId: `${issuer.issuer}#${workflow.repositoryId}`,
    repository: workflow.repository,
    ref: workflow.ref,
    runId: workflow.runId,
  };
}

async function verifyWorkflow(jwt: Jwt, issuer: WorkflowIssuer, now: Date): Promise<Workflow> {
  const { name, issuer: iss, jwksUri, audience, claims: style } = issuer;
  const rules = claimRules({ issuer: iss, audiences: [audience] });
  const requireClaims = () => withAdvice(() => requireWorkflowClaims(jwt.claims, now, rules));
  const isSigned =
    ALGORITHMS.includes(jwt.header.alg) && (await isSignedWithPublicKey(jwksUri, jwt, now, requireClaims));
  if (!isSigned) throw invalidToken(`The JWT is not signed by the issuer ${name}.`);
  requireClaims();
  const workflow = workflowFromClaims(jwt.claims, style);
  const repositoryClaim = repositoryClaimOf(style);
  if (workflow === undefined)
    throw new ClaimError(repositoryClaim, { expected: "a numeric id", received: jwt.claims[repositoryClaim] });
  return workflow;
}

/** A workflow cannot sign in. */
function withAdvice(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (error instanceof ApiError && error.code === "token_expired")
      throw tokenExpired("Request a new one in the job.");
    throw error;
  }
}

/**
 * One answer for all reasons, so that a repository cannot find out what others trust. It names nothing of the token but the
 * id, which is digits: gateway responses insert a message without JSON escaping.
 */
function notTrusted({ name }: WorkflowIssuer, { repositoryId }: Workflow): ApiError {
  const message =
    `No project trusts this workflow: repository ${repositoryId} of ${name}, with its owner, ref, environment, file and event. ` +
    "An admin of the project can add it to the trusted workflows.";
  return new ApiError("workflow_not_trusted", message);
}

function tooManyRequests({ repositoryId }: Workflow, cause: unknown): ApiError {
  const message = `Too many requests of repository ${repositoryId}. Send fewer, and name the project in their path.`;
  return new ApiError("workflow_not_trusted", message, { cause });
}
