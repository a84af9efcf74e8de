import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { accessHref, eventsHref, projectAuditHref, projectDeliveriesHref, projectHref } from "../data/route.ts";
import { updateTitle } from "./components.tsx";

interface Tab {
  name: string;
  href: string;
}

interface TabsProps {
  label: string;
  tabs: Tab[];
  chosen: string;
  /** Beside the tabs. */
  children?: ComponentChildren;
}

/** Links to the views of a screen. The title of the page names the chosen one, unless it is the first. */
export function Tabs({ label, tabs, chosen, children }: TabsProps) {
  useEffect(updateTitle);
  const links = (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ name, href }, index) => (
        <a
          key={name}
          href={href}
          aria-current={name === chosen ? "page" : undefined}
          data-title={name === chosen && index > 0 ? "" : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  );
  return (
    <div class="tab-row">
      {links}
      {children}
    </div>
  );
}

type ProjectTab = "Webhooks" | "Deliveries" | "Events" | "Access" | "Audit";

interface ProjectTabsProps {
  projectId: string;
  chosen: ProjectTab;
  /** Whether the views for admins are shown. Default: true. */
  isAdmin?: boolean;
  children?: ComponentChildren;
}

/** The views of a project. The last two are for admins. */
export function ProjectTabs({ projectId, chosen, isAdmin = true, children }: ProjectTabsProps) {
  const tabs: (Tab & { name: ProjectTab })[] = [
    { name: "Webhooks", href: projectHref(projectId) },
    { name: "Deliveries", href: projectDeliveriesHref(projectId) },
    { name: "Events", href: eventsHref(projectId) },
  ];
  const forAdmins: typeof tabs = [
    { name: "Access", href: accessHref(projectId) },
    { name: "Audit", href: projectAuditHref(projectId) },
  ];
  return (
    <Tabs label="Project" tabs={isAdmin ? [...tabs, ...forAdmins] : tabs} chosen={chosen}>
      {children}
    </Tabs>
  );
}
