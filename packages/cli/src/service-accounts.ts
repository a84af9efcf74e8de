import { type Command, Option } from "commander";
import { requireFullId } from "./find.ts";
import { type OnceOptions, onceOf, onceOption } from "./idempotency.ts";
import { type InProject, openProject, projectOption } from "./in-project.ts";
import {
  keyTable,
  type LimitOptions,
  limitOptions,
  limitsOf,
  overlapOption,
  overlapSecondsOf,
  rolledNote,
} from "./key-options.ts";
import { relativeTime, table } from "./table.ts";
import { confirm, jsonText, note, print } from "./terminal.ts";

const account = ["<account>", "the full id of the service account"] as const;
const yes = ["-y, --yes", "do not ask for confirmation"] as const;

export function addServiceAccounts(program: Command): void {
  const accounts = program
    .command("service-accounts")
    .summary("service accounts of a project: create, list, delete, and their keys")
    .description("Service accounts: callers without a person, for CI jobs. They stay when people leave the project.");

  accounts
    .command("create")
    .summary("create a service account")
    .description("Creates a service account and prints its id. Requires a JWT of an admin of the project.")
    .argument("<name>", "what it is for, 1-100 characters")
    .addOption(
      new Option("--role <role>", "its role in the project").choices(["admin", "viewer"]).makeOptionMandatory(),
    )
    .option(...projectOption)
    .option(...onceOption)
    .action(async (name: string, _options, command: Command) => {
      const { json, ...options }: InProject & OnceOptions & { role: "admin" | "viewer" } = command.optsWithGlobals();
      const { api, projectId } = await openProject(options);
      const created = await api.createServiceAccount(projectId, { name, role: options.role }, onceOf(options));
      note(
        `Created the service account. Create a key for it: svc service-accounts create-key ${created.id} ci --project ${projectId}`,
      );
      print(json ? jsonText(created) : created.id);
    });

  accounts
    .command("list")
    .summary("list the service accounts of a project")
    .description("Lists the service accounts of a project, oldest first. Requires an admin.")
    .option(...projectOption)
    .action(async (_options, command: Command) => {
      const { json, ...options }: InProject = command.optsWithGlobals();
      const { api, projectId } = await openProject(options);
      const list = await api.listServiceAccounts(projectId);
      if (json) return print(jsonText(list));
      if (list.length === 0) return note("The project has no service accounts.");
      const rows = list.map(({ id, name, role, created_at }) => [id, name, role, relativeTime(created_at)]);
      print(table(["id", "name", "role", "created"], rows));
    });

  accounts
    .command("delete")
    .summary("delete a service account with its keys, effective immediately")
    .description("Deletes a service account with all of its keys. The service rejects them from the next request on.")
    .argument(...account)
    .option(...projectOption)
    .option(...yes)
    .action(async (id: string, _options, command: Command) => {
      const options: InProject & { yes?: boolean } = command.optsWithGlobals();
      const fullId = requireFullId(id);
      const { api, projectId } = await openProject(options);
      await confirm(`Delete the service account ${fullId} and its keys`, options.yes);
      await api.deleteServiceAccount({ projectId, serviceAccountId: fullId });
      note(`Deleted the service account ${fullId}.`);
    });

  limitOptions(
    accounts
      .command("create-key")
      .summary("create a key for a service account; it is shown only once")
      .description("Creates an API key for a service account and prints it, only once. Requires a JWT of an admin.")
      .argument(...account)
      .argument("<name>", "what the key is for, 1-100 characters")
      .option(...projectOption)
      .option(...onceOption),
  ).action(async (id: string, name: string, _options, command: Command) => {
    const { json, ...options }: InProject & LimitOptions & OnceOptions = command.optsWithGlobals();
    const serviceAccountId = requireFullId(id);
    const limits = limitsOf(options, new Date());
    const { api, projectId } = await openProject(options);
    const ref = { projectId, serviceAccountId };
    const key = await api.createServiceAccountApiKey(ref, { name, ...limits }, onceOf(options));
    note(`Created the key ${key.id}. Save it now: it is not shown again.`);
    print(json ? jsonText(key) : key.key);
  });

  accounts
    .command("list-keys")
    .summary("list the keys of a service account")
    .description("Lists the API keys of a service account, oldest first, with their limits and last use.")
    .argument(...account)
    .option(...projectOption)
    .action(async (id: string, _options, command: Command) => {
      const { json, ...options }: InProject = command.optsWithGlobals();
      const serviceAccountId = requireFullId(id);
      const { api, projectId } = await openProject(options);
      const list = await api.listServiceAccountApiKeys({ projectId, serviceAccountId });
      if (json) return print(jsonText(list));
      if (list.length === 0) return note("The service account has no API keys.");
      print(keyTable(list));
    });

  accounts
    .command("rename-key")
    .summary("rename a key of a service account")
    .description("Changes the name of an API key of a service account.")
    .argument(...account)
    .argument("<id>", "the full id of the key")
    .argument("<name>", "the new name, 1-100 characters")
    .option(...projectOption)
    .action(async (accountId: string, id: string, name: string, _options, command: Command) => {
      const { json, ...options }: InProject = command.optsWithGlobals();
      const [serviceAccountId, fullId] = [requireFullId(accountId), requireFullId(id)];
      const { api, projectId } = await openProject(options);
      const renamed = await api.updateServiceAccountApiKey({ projectId, serviceAccountId }, fullId, { name });
      note(`Renamed the key ${renamed.id}.`);
      if (json) print(jsonText(renamed));
    });

  accounts
    .command("roll-key")
    .summary("replace a key of a service account; the new one is shown only once")
    .description(
      "Replaces the secret of an API key of a service account and prints the new one, only once. Id, name and limits stay. Requires a JWT of an admin.",
    )
    .argument(...account)
    .argument("<id>", "the full id of the key")
    .option(...overlapOption)
    .option(...projectOption)
    .action(async (accountId: string, id: string, _options, command: Command) => {
      const { json, ...options }: InProject & { overlap: string } = command.optsWithGlobals();
      const [serviceAccountId, fullId] = [requireFullId(accountId), requireFullId(id)];
      const overlap_seconds = overlapSecondsOf(options.overlap);
      const { api, projectId } = await openProject(options);
      const rolled = await api.rollServiceAccountApiKey({ projectId, serviceAccountId }, fullId, { overlap_seconds });
      note(rolledNote(rolled.id, options.overlap));
      print(json ? jsonText(rolled) : rolled.key);
    });

  accounts
    .command("delete-key")
    .summary("delete a key of a service account, effective immediately")
    .description("Deletes an API key of a service account. The service rejects it from the next request on.")
    .argument(...account)
    .argument("<id>", "the full id of the key")
    .option(...projectOption)
    .option(...yes)
    .action(async (accountId: string, id: string, _options, command: Command) => {
      const options: InProject & { yes?: boolean } = command.optsWithGlobals();
      const [serviceAccountId, fullId] = [requireFullId(accountId), requireFullId(id)];
      const { api, projectId } = await openProject(options);
      await confirm(`Delete the key ${fullId}`, options.yes);
      await api.deleteServiceAccountApiKey({ projectId, serviceAccountId }, fullId);
      note(`Deleted the key ${fullId}.`);
    });
}
