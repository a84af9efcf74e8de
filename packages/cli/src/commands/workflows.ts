import type { Client, WorkflowPermission } from "../../../client/src/client.ts";
import { workflowPermissions } from "../../../client/src/values.ts";
import { conditionsOf } from "../../../client/src/workflow-conditions.ts";
import { permissionsOption } from "../terminal/names-option.ts";
import { confirm, jsonText, note, print, printList, yesOption } from "../terminal/terminal.ts";
import { relativeTime, tableOf } from "../views/table.ts";
import { requireFullId } from "./find.ts";
import { type OnceOptions, onceOf, onceOption } from "./idempotency.ts";
import type { ProjectCall, SvcCommand } from "./svc-command.ts";

interface TrustCall extends ProjectCall, OnceOptions {
  issuer: string;
  ownerId?: string;
  ref?: string;
  environment?: string;
  file?: string;
  event?: string;
  name?: string;
  permission: WorkflowPermission[];
}

const trustHelp = `
The id is numeric, because a name can be taken over by someone else:
  GitHub  gh api repos/<owner>/<repository> --jq .id
  GitLab  Project overview, "Project ID"

Examples:
  $ svc workflows trust 1296269 --ref refs/heads/main --permission webhooks:read deliveries:read
  $ svc workflows trust 1296269 --environment production --permission webhooks:write --name "deploy job"
  $ svc workflows trust 1296269 --ref refs/heads/main --event push \\
      --file acme/shop/.github/workflows/deploy.yml@refs/heads/main --permission webhooks:write`;

export function addWorkflows(program: SvcCommand): void {
  const workflows = program
    .command("workflows")
    .alias("trusts")
    .summary("CI workflows that a project trusts without a key: trust, list, untrust")
    .description(
      "Trusted workflows: CI jobs whose OIDC token is the credential, so that no key is stored. Requires a JWT of an admin.",
    );

  workflows
    .command("trust")
    .summary("trust the workflows of a repository")
    .description("Lets the workflows of a repository act in a project. All options that are set must match.")
    .argument("<repository-id>", "the numeric id of the repository, or of the GitLab project")
    .option("--issuer <name>", "the CI system: github, gitlab, or another one that the service accepts", "github")
    .option("--ref <ref>", "only for this ref: refs/heads/main, refs/tags/v1; default: any, also pull requests")
    .option("--environment <name>", "only for jobs with this environment")
    .option("--file <file@ref>", "only for this workflow file, as read from this ref")
    .option("--event <name>", "only if this started the workflow, such as push; default: anything")
    .option("--owner-id <id>", "only while the repository has the owner with this numeric id")
    .option("--name <name>", "what the workflow does, 1-100 characters")
    .addOption(permissionsOption("what the workflow may do in the project", workflowPermissions).makeOptionMandatory())
    .option(...onceOption)
    .addHelpText("after", trustHelp)
    .inProject(async ({ api, projectId, json, ...options }: TrustCall, repositoryId: string) => {
      const trusted = await api.createTrustedWorkflow(projectId, bodyOf(repositoryId, options), onceOf(options));
      note(
        `Trusted the workflow. Its jobs send their OIDC token in "Authorization: Bearer". To undo it: svc workflows untrust ${trusted.id} --project ${projectId}`,
      );
      print(json ? jsonText(trusted) : trusted.id);
    });

  workflows
    .command("list")
    .summary("list the trusted workflows of a project")
    .description("Lists the workflows that a project trusts, oldest first.")
    .inProject(async ({ api, projectId, json }) => {
      const empty = "The project trusts no workflows. Add one: svc workflows trust <repository-id> --permission …";
      printList(await api.listTrustedWorkflows(projectId), json, empty, (list) =>
        tableOf(list, [
          ["id", ({ id }) => id],
          ["name", ({ name }) => name ?? ""],
          ["repository", ({ issuer, repository_id }) => `${issuer} ${repository_id}`],
          ["only", conditionsOf],
          ["permissions", ({ permissions }) => permissions.join(" ")],
          ["created", ({ created_at }) => relativeTime(created_at)],
        ]),
      );
    });

  workflows
    .command("untrust")
    .summary("stop trusting a workflow, effective immediately")
    .description("Deletes a trusted workflow. The service rejects it from its next request on.")
    .argument("<id>", "the full id of the trusted workflow", requireFullId)
    .option(...yesOption)
    .inProject(async ({ api, projectId, yes }: ProjectCall & { yes?: boolean }, id: string) => {
      await confirm(`Delete the trusted workflow ${id}`, yes);
      await api.deleteTrustedWorkflow(projectId, id);
      note(`Deleted the trusted workflow ${id}.`);
    });
}

function bodyOf(
  repository_id: string,
  options: Omit<TrustCall, keyof ProjectCall>,
): Parameters<Client["createTrustedWorkflow"]>[1] {
  const { issuer, ownerId, ref, environment, file, event, name, permission } = options;
  return {
    issuer,
    repository_id,
    permissions: permission,
    ...(ownerId !== undefined && { repository_owner_id: ownerId }),
    ...(ref !== undefined && { ref }),
    ...(environment !== undefined && { environment }),
    ...(file !== undefined && { job_workflow_ref: file }),
    ...(event !== undefined && { event_name: event }),
    ...(name !== undefined && { name }),
  };
}
