import { useContext } from "preact/hooks";
import type { ApiKey } from "../../../client/src/client.ts";
import { presetOf } from "../data/permissions.ts";
import { ProjectsContext } from "../screens/projects.tsx";
import { Badge, Time } from "./components.tsx";
import { useNow } from "./use-now.ts";

/** The permissions and projects of a key. @param owner whose rights a key without limits has */
export function KeyLimits({ apiKey, owner }: { apiKey: ApiKey; owner: string }) {
  const { data: projects = [] } = useContext(ProjectsContext);
  const { permissions, project_ids } = apiKey;
  const nameOf = (id: string) => projects.find((each) => each.id === id)?.name ?? id;
  return (
    <span class="limits">
      {permissions === undefined && <Badge tone="warning">everything that {owner} may do</Badge>}
      {permissions !== undefined && (
        <span title={permissions.join(", ")}>{presetOf(permissions) ?? permissions.join(", ")}</span>
      )}
      {project_ids !== undefined && <span class="fine">in {project_ids.map(nameOf).join(", ")}</span>}
    </span>
  );
}

export function KeyExpiry({ expires_at }: Pick<ApiKey, "expires_at">) {
  const now = useNow();
  if (expires_at === undefined) return <span class="fine">never</span>;
  if (Date.parse(expires_at) <= now) return <Badge tone="bad">expired</Badge>;
  return <Time at={expires_at} />;
}

export function LastUse({ apiKey: { last_used_at, last_used_ip, last_used_user_agent } }: { apiKey: ApiKey }) {
  if (last_used_at === null) return <span class="fine">never</span>;
  return (
    <span class="limits">
      <Time at={last_used_at} />
      {last_used_ip && (
        <span class="fine" title={last_used_user_agent ?? undefined}>
          from {last_used_ip}
        </span>
      )}
    </span>
  );
}
