import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Project, WebhookInList } from "../../../client/src/client.ts";
import { projectHref } from "../data/route.ts";
import { Badge, EmptyState, ErrorMessage, Heading, Skeleton, Table, Time } from "../parts/components.tsx";
import { ProjectTabs } from "../parts/tabs.tsx";
import { useEach } from "../parts/use-each.ts";
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

const HEALTH_INTERVAL_MS = 60_000;
/** Upper bound on the projects whose health is loaded: a request each. */
const MAX_WITH_HEALTH = 50;

/** The health of a project: how many of its webhooks need attention. */
function ProjectHealth({ webhooks }: { webhooks: WebhookInList[] | undefined }) {
  if (webhooks === undefined) return null;
  const failing = webhooks.filter(({ health }) => health.state === "failing" || health.state === "probing");
  const disabled = webhooks.filter(({ enabled, disabled_reason }) => !enabled && disabled_reason !== "manual");
  if (failing.length > 0) return <Badge tone="bad">{failing.length} failing</Badge>;
  if (disabled.length > 0) return <Badge tone="bad">{disabled.length} disabled</Badge>;
  if (webhooks.length === 0) return <span class="fine">no webhooks</span>;
  return <Badge tone="good">healthy</Badge>;
}

export function Projects() {
  const { data: projects, error } = useContext(ProjectsContext);
  const ids = (projects ?? []).slice(0, MAX_WITH_HEALTH).map(({ id }) => id);
  const webhooks = useEach("health", ids, (client, id) => client.listWebhooks(id), HEALTH_INTERVAL_MS);
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
      {projects && projects.length > 0 && (
        <Table columns={["Name", "Health", "Your role", "Created", "ID"]}>
          {projects.map(({ id, name, role, created_at }) => (
            <tr key={id} class="linked">
              <td class="strong breaks">
                <a href={projectHref(id)}>{name}</a>
              </td>
              <td>
                <ProjectHealth webhooks={webhooks.get(id)} />
              </td>
              <td data-label="role">{role}</td>
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
