import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { Badge, Empty, Failure, Heading, Time, Waiting } from "./parts.tsx";
import type { Project } from "./records.ts";
import { projectHref } from "./route.ts";
import type { Loaded } from "./signed-in.ts";

/** The caller's projects, and with them the caller's rights. Loaded once for all screens. */
export const ProjectsContext = createContext<Loaded<Project[]>>({
  data: undefined,
  failure: undefined,
  reload() {},
});

/** The project in which the caller is. It is known, as are the rights in it, when `isKnown`. */
export function useProject(projectId: string) {
  const { data: projects, failure } = useContext(ProjectsContext);
  const project = projects?.find(({ id }) => id === projectId);
  const isKnown = projects !== undefined || failure !== undefined;
  return { project, isAdmin: project?.role === "admin", isKnown };
}

export function Projects() {
  const { data: projects, failure } = useContext(ProjectsContext);
  return (
    <>
      <div class="head">
        <Heading>Projects</Heading>
      </div>
      <Failure error={failure} />
      {projects === undefined && !failure && <Waiting />}
      {projects?.length === 0 && (
        <Empty title="No projects">The platform puts people into projects. Ask an administrator of yours.</Empty>
      )}
      {projects !== undefined && projects.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Your role</th>
              <th scope="col">Created</th>
              <th scope="col">Id</th>
            </tr>
          </thead>
          <tbody>
            {projects.map(({ id, name, role, created_at }) => (
              <tr key={id} class="linked">
                <td class="strong breaks">
                  <a href={projectHref(id)}>{name}</a>
                </td>
                <td>
                  <Badge tone={role === "admin" ? "good" : "calm"}>{role}</Badge>
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
