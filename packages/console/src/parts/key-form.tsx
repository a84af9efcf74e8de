import { useContext } from "preact/hooks";
import type { Client, CreateApiKey, CreatedApiKey, Permission } from "../../../client/src/client.ts";
import { permissionMeanings, permissions } from "../../../client/src/values.ts";
import { expiryOf, type Lifetime, lifetimes, type Preset, presets } from "../data/permissions.ts";
import { ProjectsContext } from "../screens/projects.tsx";
import { Checkboxes, PermissionCheckboxes, Select } from "./choices.tsx";
import { FormDialog, SecretDialog } from "./dialog.tsx";
import { Field, RadioGroup } from "./fields.tsx";
import { useAction } from "./use-action.ts";
import { useDraft } from "./use-draft.ts";

type Choice = Preset | "custom" | "everything";

const choices: Record<Choice, string> = {
  "CI: read": "CI: read",
  "CI: manage webhooks": "CI: manage webhooks",
  custom: "Choose permissions",
  everything: "Everything I may do",
};

/** The limit of the API for one key. */
const MAX_PROJECTS = 20;

interface KeyFormProps<Result> {
  title: string;
  /** Default: "Create key". */
  verb?: string;
  initialName?: string;
  /** Absent = as long as a key may be valid. */
  longestDays?: number;
  /** Absent = the key of the signed-in user, for projects of theirs. Set = the project of a service account. */
  serviceAccount?: { name: string; role: string };
  create(client: Client, body: CreateApiKey): Promise<Result>;
  onClose(): void;
  onCreated(created: Result): void;
}

/** Asks for the name and the limits of a new key. Without further choices it may only read. */
export function KeyForm<Result>({ title, serviceAccount, create, onClose, onCreated, ...more }: KeyFormProps<Result>) {
  const { verb = "Create key", initialName = "", longestDays = Number.POSITIVE_INFINITY } = more;
  const shownLifetimes = Object.fromEntries(
    Object.entries(lifetimes).filter(
      ([days]) => longestDays === Number.POSITIVE_INFINITY || Number(days) <= longestDays,
    ),
  ) as typeof lifetimes;
  const { data = [] } = useContext(ProjectsContext);
  const projects = data.toSorted((one, other) => one.name.localeCompare(other.name));
  const [name, setName] = useDraft("name", initialName);
  const [choice, setChoice] = useDraft<Choice>("choice", "CI: read");
  const [custom, setCustom] = useDraft<Permission[]>("permissions", [...presets["CI: read"]]);
  const [isForAll, setForAll] = useDraft("all", false);
  const [picked, setPicked] = useDraft<string[] | undefined>("projects", undefined);
  // The only project is chosen, also when the projects are loaded after the form was opened.
  const projectIds = picked ?? (projects.length === 1 ? projects.map(({ id }) => id) : []);
  const [lifetime, setLifetime] = useDraft<Lifetime>("lifetime", "90");

  const chosen = choice === "everything" ? undefined : choice === "custom" ? custom : presets[choice];
  const hasProjects = serviceAccount === undefined && choice !== "everything" && !isForAll;
  const submit = useAction(async (client) => {
    const expires_at = expiryOf(lifetime, Date.now());
    const body: CreateApiKey = {
      name,
      ...(chosen && { permissions: [...chosen] }),
      ...(hasProjects && { project_ids: projectIds }),
      ...(expires_at !== undefined && { expires_at }),
    };
    onCreated(await create(client, body));
  });
  const isTooMany = hasProjects && projectIds.length > MAX_PROJECTS;
  const lacksProjects = hasProjects && projectIds.length === 0;
  const isReady = name.trim() !== "" && chosen?.length !== 0 && !lacksProjects && !isTooMany;
  return (
    <FormDialog title={title} action={submit} verb={verb} isReady={isReady} fields={["name"]} onClose={onClose}>
      <Field
        label="Name"
        path="name"
        hint="Where the key is used, for example “ci” or “my laptop”."
        error={submit.error}
        value={name}
        onInput={setName}
        maxLength={100}
      />
      <RadioGroup
        legend="The key may"
        values={Object.keys(choices) as Choice[]}
        chosen={choice}
        onChange={setChoice}
        labelOf={(value) =>
          value === "everything" && serviceAccount
            ? `Everything that a project ${serviceAccount.role} may do`
            : choices[value]
        }
      />
      {choice === "custom" && (
        <PermissionCheckboxes legend="Permissions" own={permissions} chosen={custom} onChange={setCustom} />
      )}
      {chosen !== undefined && choice !== "custom" && (
        <p class="fine">It may {chosen.map((each) => permissionMeanings[each]).join(", ")}.</p>
      )}
      {choice === "everything" && !serviceAccount && (
        <p class="note warning">
          Who finds this key can do all that you can do, in all of your projects, also those that you join later.
        </p>
      )}
      {serviceAccount === undefined && choice !== "everything" && (
        <>
          <RadioGroup
            legend="Projects"
            values={["some", "all"]}
            chosen={isForAll ? "all" : "some"}
            onChange={(value) => setForAll(value === "all")}
            labelOf={(value) => (value === "all" ? "All my projects, also later ones" : "Only these")}
          />
          {!isForAll && (
            <Checkboxes
              legend="Only these projects"
              isLegendHidden
              values={projects.map(({ id }) => id)}
              chosen={projectIds}
              onChange={setPicked}
              labelOf={(id) => projects.find((each) => each.id === id)?.name ?? id}
            />
          )}
          {lacksProjects && <p class="fine">Choose at least one project.</p>}
          {isTooMany && <p class="problem">A key can be limited to at most {MAX_PROJECTS} projects.</p>}
        </>
      )}
      <Select
        label="Expires after"
        labels={shownLifetimes}
        chosen={lifetime}
        onChange={(value) => setLifetime(value)}
      />
      {lifetime === "never" && <p class="note warning">The key works until someone revokes it.</p>}
    </FormDialog>
  );
}

/** Shows a new key, once. */
export const ShownKeyDialog = ({ created, onClose }: { created: CreatedApiKey; onClose(): void }) => (
  <SecretDialog title="Your new API key" label={created.name} secret={created.key} onClose={onClose}>
    <p class="fine">
      Send it in the header <code>Authorization: Bearer svc_…</code>
    </p>
  </SecretDialog>
);
