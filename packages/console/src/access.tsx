import { EmptyState, Heading } from "./components.tsx";
import { useProject } from "./projects.tsx";
import { ServiceAccounts } from "./service-accounts.tsx";
import { useSignedIn } from "./signed-in.ts";
import { ProjectTabs } from "./tabs.tsx";
import { TrustedWorkflows } from "./trusted-workflows.tsx";

/** The callers of a project that are not people: service accounts and trusted workflows. For admins. */
export function Access({ projectId }: { projectId: string }) {
  const { session } = useSignedIn();
  const { project, isAdmin, isKnown } = useProject(projectId);
  const isSession = session.kind === "jwt";
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="#/projects">Projects</a>
      </nav>
      <div class="head">
        <Heading>{project?.name ?? "Project"}</Heading>
      </div>
      {isKnown && !isAdmin && <EmptyState title="Only admins of the project see this page" />}
      {isAdmin && (
        <>
          <ProjectTabs projectId={projectId} chosen="Access" />
          {!isSession && (
            <p class="note neutral">
              You are signed in with an API key. Only admins who sign in with a JWT can add service accounts and keys,
              or see and change trusted workflows.
            </p>
          )}
          <ServiceAccounts projectId={projectId} mayCreate={isSession} />
          {isSession && <TrustedWorkflows projectId={projectId} />}
        </>
      )}
    </>
  );
}
