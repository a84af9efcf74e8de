import { projectAuditHref } from "../data/route.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { AdminPage } from "./projects.tsx";
import { ServiceAccounts } from "./service-accounts.tsx";
import { TrustedWorkflows } from "./trusted-workflows.tsx";

/** The callers of a project that are not people: service accounts and trusted workflows. For admins. */
export function Access({ projectId }: { projectId: string }) {
  const isSession = useSignedIn().session.kind === "jwt";
  return (
    <AdminPage projectId={projectId} chosen="Access">
      {!isSession && (
        <p class="note neutral">
          You are signed in with an API key. Only admins who sign in with a JWT can add service accounts and keys, or
          see and change trusted workflows.
        </p>
      )}
      <ServiceAccounts projectId={projectId} mayCreate={isSession} />
      {isSession && <TrustedWorkflows projectId={projectId} />}
      <p class="lead">
        People are members because your platform added them: the <a href={projectAuditHref(projectId)}>audit</a> has
        each change.
      </p>
    </AdminPage>
  );
}
