import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Project } from "../../client/src/client.ts";
import { Badge, EmptyState, ErrorMessage, Heading, Skeleton, Time } from "./components.tsx";
import { projectHref } from "./route.ts";
import type { Loaded } from "./use-loaded.ts";
import { roleTones } from "./vocabulary.ts";

/** The user's projects with the user's role in each. Loaded once for all screens. */
export const ProjectsContext = createContext<Loaded<Project[]>>({
  data: undefined,
  error: undefined,
  reload() {},
});

/** Returns the project and the user's rights in it. Both are final once `isKnown`. */
export function useProject(projectId: string) {
  const { data: projects, error } = useContext(ProjectsContext);
  const project = projects?.find(({ id }) => id === projectId);
  const isKnown = projects !== undefined || error !== undefined;
  return { project, isAdmin: project?.role === "admin", isKnown };
}

export function Projects() {
  const { data: projects, error } = useContext(ProjectsContext);
  return (
    <>
      <div class="head">
        <Heading>Projects</Heading>
      </div>
      <ErrorMessage error={error} />
      {projects === undefined && !error && <Skeleton />}
      {projects?.length === 0 && (
        <EmptyState title="No projects yet">Ask an administrator of your platform to add you to a project.</EmptyState>
      )}
      {projects !== undefined && projects.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Your role</th>
              <th scope="col">Created</th>
              <th scope="col">ID</th>
            </tr>
          </thead>
          <tbody>
            {projects.map(({ id, name, role, created_at }) => (
              <tr key={id} class="linked">
                <td class="strong breaks">
                  <a href={projectHref(id)}>{name}</a>
                </td>
                <td>
                  <Badge tone={roleTones[role]}>{role}</Badge>
                </td>
                <td data-label="created">
                  <Time at={created_at} />
                </td>
                <td>
                  <code class="fine">{id}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
