import { useSignedIn } from "../data/signed-in.ts";
import { Members } from "./members.tsx";
import { AdminPage } from "./projects.tsx";
import { ServiceAccounts } from "./service-accounts.tsx";
import { TrustedWorkflows } from "./trusted-workflows.tsx";

/** Who can use a project: people, service accounts and trusted workflows. For admins. */
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
      <Members projectId={projectId} />
      <ServiceAccounts projectId={projectId} mayCreate={isSession} />
      {isSession && <TrustedWorkflows projectId={projectId} />}
    </AdminPage>
  );
}
