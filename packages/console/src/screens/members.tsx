import { useSignedIn } from "../data/signed-in.ts";
import { EmptyState, ErrorMessage, Skeleton, Table, Time } from "../parts/components.tsx";
import { useLoaded } from "../parts/use-loaded.ts";

/** The people of a project. The platform adds and removes them, so nothing can be changed here. */
export function Members({ projectId }: { projectId: string }) {
  const { data: members, error } = useLoaded(`members ${projectId}`, (client) => client.listMembers(projectId));
  const { user } = useSignedIn().session;
  return (
    <section class="list" aria-label="Members">
      <div class="head">
        <h2>Members</h2>
        <p class="lead">People, whom your platform adds and removes.</p>
      </div>
      <ErrorMessage error={error} />
      {members === undefined && !error && <Skeleton />}
      {members?.length === 0 && <EmptyState title="Your platform has reported no members" />}
      {members !== undefined && members.length > 0 && (
        <Table columns={["User", "Role", "Since"]}>
          {members.map(({ user_id, role, created_at }) => (
            <tr key={user_id}>
              <td class="strong breaks">
                {user_id}
                {user_id === user && " (you)"}
              </td>
              <td>{role}</td>
              <td data-label="since">
                <Time at={created_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
