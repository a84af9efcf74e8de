import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Project } from "../../../client/src/client.ts";
import { projectHref } from "../data/route.ts";
import { roleTones } from "../data/vocabulary.ts";
import { Badge, EmptyState, ErrorMessage, Heading, Skeleton, Table, Time } from "../parts/components.tsx";
import { ProjectTabs } from "../parts/tabs.tsx";
import type { Loaded } from "../parts/use-loaded.ts";

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

interface AdminPageProps {
  projectId: string;
  chosen: "Access" | "Audit";
  children: ComponentChildren;
}

/** A view of a project that only its admins see. */
export function AdminPage({ projectId, chosen, children }: AdminPageProps) {
  const { project, isAdmin, isKnown } = useProject(projectId);
  return (
    <>
      <div class="head">
        <nav class="crumbs" aria-label="Breadcrumb">
          <a href="#/projects">Projects</a>
          <span aria-hidden="true">/</span>
        </nav>
        <Heading>{project?.name ?? "Project"}</Heading>
      </div>
      {isKnown && !isAdmin && <EmptyState title="Only admins of the project see this page" />}
      {isAdmin && (
        <>
          <ProjectTabs projectId={projectId} chosen={chosen} />
          {children}
        </>
      )}
    </>
  );
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
        <Table columns={["Name", "Your role", "Created", "ID"]}>
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
        </Table>
      )}
    </>
  );
}
